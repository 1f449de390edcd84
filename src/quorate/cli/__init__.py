"""The command line: one small file per command, loaded only when it is called."""

from __future__ import annotations

from quorate.cli.group import main

__all__ = ["main"]

"""The command line: one small file per command, loaded only when it is called.

Here belongs what is typed and what is printed. What a command does belongs in :mod:`quorate.run`, so that it can be
done without a terminal. Begin with :mod:`~quorate.cli.group`, then any command, such as :mod:`~quorate.cli.status`.
"""

from __future__ import annotations

from quorate.cli.group import main

__all__ = ["main"]

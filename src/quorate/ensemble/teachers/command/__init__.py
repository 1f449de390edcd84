"""Teachers that are commands: a program reads a shard from a file and writes its votes into another."""

from __future__ import annotations

from quorate.ensemble.teachers.command.teacher import CommandTeacher, CommandVoter

__all__ = ["CommandTeacher", "CommandVoter"]

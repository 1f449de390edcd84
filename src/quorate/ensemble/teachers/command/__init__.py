"""Teachers that are commands: a program reads a shard from a file and writes its votes into another.

``teacher`` says what is called with which arguments, ``files`` what stands in the files, where they lie and how they
are removed, ``process`` how long a command may take, what of it is ended, and what is said of one that fails.
"""

from __future__ import annotations

from quorate.ensemble.teachers.command.teacher import CommandTeacher, CommandVoter

__all__ = ["CommandTeacher", "CommandVoter"]

"""Teachers that are prompts: a few rows of a shard, shown to a language model that labels one public row at a time.

Here belongs what turns a shard into a prompt, and what asks an endpoint that speaks the chat-completions protocol.
Nothing is trained. Begin with :mod:`~quorate.ensemble.teachers.prompted.teacher`.
"""

from __future__ import annotations

from quorate.ensemble.teachers.prompted.endpoint import ChatEndpoint, Unanswered
from quorate.ensemble.teachers.prompted.teacher import ChatTeacher, ChatVoter, Prompt, row_texts

__all__ = ["ChatTeacher", "ChatVoter", "ChatEndpoint", "Unanswered", "Prompt", "row_texts"]

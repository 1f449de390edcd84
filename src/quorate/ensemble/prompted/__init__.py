"""Teachers that are prompts: a few rows of a shard, shown to a language model that labels one public row at a time.

Here belongs what turns a shard into a prompt, and what asks an endpoint that speaks the chat-completions protocol.
Nothing is trained. Begin with :mod:`~quorate.ensemble.prompted.teacher`.
"""

from quorate.ensemble.prompted.endpoint import ChatEndpoint, Unanswered
from quorate.ensemble.prompted.prompt import Prompt, row_texts
from quorate.ensemble.prompted.teacher import ChatTeacher, ChatVoter

__all__ = ["ChatTeacher", "ChatVoter", "ChatEndpoint", "Unanswered", "Prompt", "row_texts"]

"""A check of a run: the question, how it was answered, what was seen, and which function looked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quorate.outcomes import Outcome
from quorate.report.plain import Plain, require
from quorate.stored_names import stored_name

LOOKED = (Outcome.PASSED, Outcome.FAILED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Check(Plain):
    """One question about how a run was made. A question that nothing looked into is never "passed".

    Parameters
    ----------
    code : str
        What programs decide by: ``"shards"``, ``"classes"``, ``"preprocessing"``, ``"outside"``, ``"noise"``,
        ``"seed"``, ``"chain"``, ``"audit"``, ``"shard audit"``; of direct runs ``"contributions"``,
        ``"private rows"``, ``"public pool"``, ``"evaluation rows"``.
    question : str
        What was asked; yes is good.
    outcome : Outcome
        How it was answered.
    evidence : str
        What was seen and what follows from it, in a sentence or two. Public.
    ran : str or None
        The function that looked, with its module; None where none did.
    remedy : str or None
        What the owner can do where the answer is not yes.

    Raises
    ------
    InvalidParameter
        An outcome that takes a function that ran has none, or one that takes none has one.

    Examples
    --------
    >>> check = Check(code="seed", question="Is the noise free of a seed?", outcome="passed",
    ...               evidence="Nobody can draw the same noise again.", ran="quorate.run.checks.seed")
    >>> check.holds, check.outcome
    (True, <Outcome.PASSED: 'passed'>)
    >>> Check(code="shards", question="Is each patient in one shard?", outcome="passed", evidence="…")
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: check 'shards': only a function that ran can end in passed or failed; name it
    """

    code: str
    question: str
    outcome: Outcome
    evidence: str
    ran: str | None = None
    remedy: str | None = None

    @property
    def holds(self) -> bool:
        """Whether the answer is yes: something looked, or the code has no other way."""
        return self.outcome in (Outcome.PASSED, Outcome.BY_CONSTRUCTION)

    def _check(self) -> None:
        require(
            (self.outcome in LOOKED) == (self.ran is not None),
            f"check {self.code!r}: only a function that ran can end in passed or failed; "
            + ("name it" if self.ran is None else "leave out ran"),
        )


def name_of(function: Callable[..., Any]) -> str:
    """Return the name that facts have for the function that ran a check, wherever its file moves.

    Examples
    --------
    >>> name_of(require)
    'quorate.report.plain.require'
    """
    return stored_name(function)

"""What a method is: all that the commands of a folder ask of what learns from its private rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.errors import InvalidParameter
from quorate.findings import Finding
from quorate.folder.settings import Settings
from quorate.report import Facts, InternalFacts
from quorate.run.expected import Expected
from quorate.run.look import Look
from quorate.types import Secret, Watch

if TYPE_CHECKING:
    from quorate.folder.audited import RunAudit
    from quorate.voting.ask import Asked


class Method(ABC):
    """All that a method does for the commands of a folder; a `run` is what its :meth:`read` returned."""

    @abstractmethod
    def read(
        self,
        root: Path,
        *,
        begin: bool = True,
        settings: Settings | None = None,
        rehearse: bool = True,
        watch: Watch | None = None,
    ) -> Any:
        """Read settings and files, and check all that may be refused; nothing private is fitted, and nothing charged.

        A model of the user's own is tried on public rows, unless `rehearse` is False: for whoever only reads what a run
        has made. `watch`: as in :meth:`execute`, where the private rows are gone through for that.
        """

    @abstractmethod
    def check(self, run: Any) -> dict[str, Any]:
        """Say what a run would do and cost, in plain values."""

    @abstractmethod
    def told(self, run: Any, found: dict[str, Any]) -> list[tuple[str, str]]:
        """Return the first lines of ``quorate check``: a word and a line each."""

    @abstractmethod
    def cautions(self, run: Any) -> tuple[Finding, ...]:
        """Return what the owner should hear before the budget is spent."""

    def expected(self, run: Any) -> tuple[Expected | None, float]:
        """Rehearse a run on its labelled public rows: the accuracy to expect, and that of the commonest class."""
        raise InvalidParameter("--rehearse plays votes of teachers; quorate plan rehearses the other methods")

    @abstractmethod
    def private_notes(self, run: Any) -> Secret[tuple[Finding, ...]]:
        """Return what there is to say about the private table, to its owner alone."""

    @abstractmethod
    def look(self, run: Any) -> Secret[Look | None]:
        """Look at the private table, for its owner's terminal alone."""

    def promise_notes(self, run: Any) -> Secret[tuple[Finding, ...]]:
        """Return those of them that say that the guarantee will not hold."""
        return Secret(())

    @abstractmethod
    def execute(
        self,
        run: Any,
        *,
        command: str,
        watch: Watch | None = None,
        expected: Expected | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> Facts:
        """Go the whole way, or on from where a killed run stopped, and write the public side.

        `tell` prints a line on the owner's terminal, and nowhere else.
        """

    @abstractmethod
    def audit(self, run: Any, **how: Any) -> RunAudit:
        """Attack what a finished run released, without a look at private rows."""

    @abstractmethod
    def ask(self, run: Any, asked: Any, *, watch: Watch | None = None) -> Asked:
        """Answer questions from what was kept back, or say why there are none."""

    @abstractmethod
    def internal_facts(self, run: Any) -> Secret[InternalFacts]:
        """Gather what only the owner may see."""

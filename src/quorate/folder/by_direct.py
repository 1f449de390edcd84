"""What the commands of a folder do in the direct method: which functions they call, and what they print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.ambient import one_thread
from quorate.direct.foreseen import steps_of
from quorate.errors import PreconditionFailed, naming
from quorate.findings import Finding
from quorate.folder import direct_run
from quorate.folder.direct_run import DirectRun
from quorate.folder.method import Method
from quorate.folder.settings import Settings, keys_of, settings_of
from quorate.report import Facts, InternalFacts
from quorate.run.expected import Expected
from quorate.run.look import Look
from quorate.types import Secret, Watch

if TYPE_CHECKING:
    from quorate.folder.audited import RunAudit
    from quorate.voting.ask import Asked

NOTHING_TO_ASK = (
    'there is nothing to ask: [method] by = "direct" has no teachers. Its model is published, and every prediction is '
    "free: load public/student.skops with skops, and call predict"
)


class Direct(Method):
    """Noisy gradient rounds on the private rows themselves."""

    def read(
        self,
        root: Path,
        *,
        begin: bool = True,
        settings: Settings | None = None,
        rehearse: bool = True,
        watch: Watch | None = None,
    ) -> DirectRun:
        """Read the run."""
        settings = settings_of(root) if settings is None else settings
        with naming(keys_of(settings)):
            return direct_run.read_direct(root, begin=begin, settings=settings, watch=watch)

    @one_thread()
    def check(self, run: DirectRun) -> dict[str, Any]:
        """Say what a run would do and cost."""
        with naming(keys_of(run.settings)):
            return direct_run.check_direct(run)

    def told(self, run: DirectRun, found: dict[str, Any]) -> list[tuple[str, str]]:
        """Return what ``quorate check`` prints: a word and a line each."""
        return steps_of(run.task, found)

    def cautions(self, run: DirectRun) -> tuple[Finding, ...]:
        """Return what the owner should hear before the budget is spent."""
        return run.cautions

    def private_notes(self, run: DirectRun) -> Secret[tuple[Finding, ...]]:
        """Return what the size of the file tells; no other word of a direct run depends on private rows."""
        return Secret(direct_run.size_notes(run))

    @one_thread()
    def look(self, run: DirectRun) -> Secret[Look | None]:
        """Look at the private table, which no other word of a direct run does."""
        return direct_run.look(run)

    def execute(
        self,
        run: DirectRun,
        *,
        command: str,
        watch: Watch | None = None,
        expected: Expected | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> Facts:
        """Go the whole way."""
        with naming(keys_of(run.settings)):
            return direct_run.execute_direct(run, command=command, watch=watch, tell=tell)

    def audit(self, run: DirectRun, **how: Any) -> RunAudit:
        """Attack the rounds on public rows with made-up labels."""
        from quorate.folder.audited_rounds import audit_direct

        return audit_direct(run, **how)

    def ask(self, run: DirectRun, asked: Any, *, watch: Watch | None = None) -> Asked:
        """Refuse a question, and say why there is none."""
        raise PreconditionFailed(NOTHING_TO_ASK)

    def internal_facts(self, run: DirectRun) -> Secret[InternalFacts]:
        """Refuse the internal edition: it shows margins and teachers, and there are none."""
        raise PreconditionFailed(
            'there is no internal edition of this report: [method] by = "direct" has no votes, margins or teachers to '
            "show there. The public one says all there is"
        )

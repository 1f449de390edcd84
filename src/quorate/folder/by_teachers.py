"""What the commands of a folder do where teachers vote: which functions they call, and what they print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.ambient import one_thread
from quorate.errors import InvalidParameter, naming
from quorate.findings import Finding
from quorate.folder import batch, notes
from quorate.folder.loaded import LoadedRun
from quorate.folder.method import Method
from quorate.folder.settings import Settings, keys_of, settings_of
from quorate.planning.planned_run import expected_of, expected_score
from quorate.report import Facts, InternalFacts, Utility
from quorate.run.expected import Expected
from quorate.run.look import Look, Names
from quorate.types import Secret, Watch
from quorate.voting.foreseen import steps_of
from quorate.voting.look import look_at_votes

if TYPE_CHECKING:
    from quorate.folder.audited import RunAudit
    from quorate.voting.ask import Asked


class Teachers(Method):
    """Teachers vote, a mechanism answers, a student is published."""

    def read(
        self,
        root: Path,
        *,
        begin: bool = True,
        settings: Settings | None = None,
        rehearse: bool = True,
        watch: Watch | None = None,
    ) -> LoadedRun:
        """Read the run."""
        settings = settings_of(root) if settings is None else settings
        with naming(keys_of(settings)):
            return batch.load_run(root, begin=begin, settings=settings, rehearse=rehearse)

    @one_thread()
    def check(self, run: LoadedRun) -> dict[str, Any]:
        """Say what a run would do and cost."""
        with naming(keys_of(run.settings)):
            return batch.check(run)

    def told(self, run: LoadedRun, found: dict[str, Any]) -> list[tuple[str, str]]:
        """Return what ``quorate check`` prints: a word and a line each."""
        return steps_of(run.task, found)

    def cautions(self, run: LoadedRun) -> tuple[Finding, ...]:
        """Return what the owner should hear before the budget is spent."""
        return run.cautions

    @one_thread()
    def expected(self, run: LoadedRun) -> tuple[Expected | None, float]:
        """Rehearse a run on its labelled public rows: the accuracy to expect, and that of the commonest class."""
        if run.task.draws_pool:
            raise InvalidParameter(
                "--rehearse plays on public rows, and [data] public names none: of rows that are drawn no accuracy can "
                "be foretold. Leave it out: the run itself scores the student on [data] evaluation"
            )
        if run.evaluation is None:
            raise InvalidParameter(
                "--rehearse plays on public rows with labels; name a table of them: [data] evaluation"
            )
        with naming(keys_of(run.settings)):
            return expected_of(run.task, run.evaluation.X, run.evaluation.truth, run.settings.data.judged)

    def private_notes(self, run: LoadedRun) -> Secret[tuple[Finding, ...]]:
        """Return what there is to say about the private table, to its owner alone."""
        return notes.private_notes(run.settings.data, run.task)

    @one_thread()
    def look(self, run: LoadedRun) -> Secret[Look | None]:
        """Look at the private table."""
        data = run.settings.data
        return look_at_votes(run.task, names=Names(data.private.name, data.public_side))

    def promise_notes(self, run: LoadedRun) -> Secret[tuple[Finding, ...]]:
        """Return those of them that say that the guarantee will not hold."""
        return notes.promise_notes(run.settings.data, run.task)

    def execute(
        self,
        run: LoadedRun,
        *,
        command: str,
        watch: Watch | None = None,
        expected: Expected | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> Facts:
        """Go the whole way."""
        extra = None if expected is None else Utility(expected=expected_score(expected))
        with naming(keys_of(run.settings)):
            return batch.execute(run, command=command, watch=watch, extra=extra)

    def audit(self, run: LoadedRun, **how: Any) -> RunAudit:
        """Attack the mechanism, and the teacher pipeline on public rows."""
        from quorate.folder.audited import audit_run

        return audit_run(run, **how)

    def ask(self, run: LoadedRun, asked: Any, *, watch: Watch | None = None) -> Asked:
        """Ask the ensemble about the rows of a file or a table."""
        from quorate.folder.online import ask

        return ask(run, asked, watch=watch)

    def internal_facts(self, run: LoadedRun) -> Secret[InternalFacts]:
        """Gather what only the owner may see."""
        from quorate.folder.internal import internal_facts

        return internal_facts(run)

"""The method of votes, whole: what a folder and an estimator do with it, and what a check says of it."""

from __future__ import annotations

from typing import Any, Final

from quorate.accounting.figures import at_most, several
from quorate.ledger import Budget, Ledger
from quorate.mechanisms.schedule import form_of, scale_of
from quorate.release import Charge
from quorate.report import Facts
from quorate.run.check_result import unit_line
from quorate.run.facts import RunMetadata, name_of
from quorate.run.stage_store import StageStore
from quorate.types import Watch
from quorate.voting.facts import draft, facts, told
from quorate.voting.flow import RunResult, run_pipeline, schedule
from quorate.voting.models import is_linear
from quorate.voting.prepare import prepare
from quorate.voting.task import Task


def _foreseen(task: Task) -> dict[str, Any]:
    """Return in plain values what a task would do and cost, with the reason of each choice."""
    return {
        "method": "votes",
        "n_teachers": task.recipe.n_teachers,
        "n_queries": task.recipe.n_queries,
        "strategy": None if task.strategy is None else type(task.strategy).__name__,
        "online_answers": task.recipe.online_answers,
        "mechanism": type(task.recipe.mechanism).__name__,
        "form": form_of(task.recipe.mechanism),
        "sigma": scale_of(task.recipe.mechanism),
        "released_by": told(task.recipe.mechanism),
        "epsilon": task.facts.epsilon,
        "delta": task.facts.delta,
        "unit": task.unit,
        "neighbours": task.neighbouring.stated,
        "classes": list(task.inputs.classes),
        "columns": task.facts.width,
        "seeded": task.noise.seeded,
        "n_is_treated_as_public": task.n_was_read,
        "rows_are_treated_as_public": task.rows_were_read,
        "why": list(task.why),
        **({} if task.recipe.pool is None else {"marginals": task.recipe.pool.facts}),
        **({} if task.sets is None else {"held_out": task.sets.facts}),
    }


def _steps(task: Task, summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the first lines of a check: a word and a line each."""
    answers = summary["n_queries"] + summary["online_answers"]
    model = "" if is_linear(task.teacher) else f" ({name_of(task.teacher)})"
    teachers = f"{several(summary['n_teachers'], 'teacher')}{model}"
    budget = f"ε = {at_most(summary['epsilon'], 6)}, δ = {at_most(summary['delta'], 6)}"
    kept = f"({several(summary['n_queries'], 'label')}, {summary['online_answers']:,} kept back for later)"
    return [
        *unit_line(task.neighbouring),
        *([] if task.recipe.pool is None else [task.recipe.pool.step]),
        ("train", f"{teachers}; {task.neighbouring.changing} changes exactly one teacher"),
        ("release", f"{several(answers, 'answer')} {kept}"),
        ("by", summary["released_by"]),
        *([] if task.sets is None else [task.sets.step(task.facts.unit)]),
        ("spend", f"{budget} for {task.neighbouring.any_one}"),
    ]


class Votes:
    """Teachers vote, a mechanism answers, a student is published: a :class:`~quorate.run.method.Method`."""

    prepare = staticmethod(prepare)
    facts = staticmethod(facts)

    def check(self, task: Task) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Say what a task would do and cost."""
        summary = _foreseen(task)
        return summary, _steps(task, summary)

    def charge(self, task: Task, ledger: Ledger, key: str | None = None) -> Charge:
        """Return what a task asks of any ledger."""
        return schedule(task, task.content_key if key is None else key)

    def draft(self, task: Task, budget: Budget, metadata: RunMetadata) -> tuple[Facts, None]:
        """Gather what is known of a report before the charge; the student's form is not known then."""
        return draft(task, budget, metadata), None

    def go(
        self,
        task: Task,
        ledger: Ledger,
        *,
        stages: StageStore | None = None,
        key: str | None = None,
        watch: Watch | None = None,
    ) -> tuple[Task, RunResult]:
        """Go the whole way."""
        key = task.content_key if key is None else key
        result = run_pipeline(task, ledger, stages=stages, key=key, watch=watch)
        return result.task, result


VOTES: Final = Votes()

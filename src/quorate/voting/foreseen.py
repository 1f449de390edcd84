"""What a task of teachers would do and cost, before anything is fitted or charged: the same for a fit and for a run."""

from __future__ import annotations

from typing import Any

from quorate.accounting.figures import at_most, several
from quorate.mechanisms.schedule import form_of, scale_of
from quorate.run.check_result import unit_line
from quorate.run.facts import name_of
from quorate.voting.facts import told
from quorate.voting.models import is_linear
from quorate.voting.task import Task


def foreseen(task: Task) -> dict[str, Any]:
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
    }


def steps_of(task: Task, found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the first lines of a check: a word and a line each."""
    answers = found["n_queries"] + found["online_answers"]
    model = "" if is_linear(task.teacher) else f" ({name_of(task.teacher)})"
    teachers = f"{several(found['n_teachers'], 'teacher')}{model}"
    budget = f"ε = {at_most(found['epsilon'], 6)}, δ = {at_most(found['delta'], 6)}"
    kept = f"({several(found['n_queries'], 'label')}, {found['online_answers']:,} kept back for later)"
    return [
        *unit_line(task.neighbouring),
        *([] if task.recipe.pool is None else [task.recipe.pool.step]),
        ("train", f"{teachers}; {task.neighbouring.changing} changes exactly one teacher"),
        ("release", f"{several(answers, 'answer')} {kept}"),
        ("by", found["released_by"]),
        ("spend", f"{budget} for {task.neighbouring.any_one}"),
    ]

"""Votes of teachers that are prompts: asked block by block, each kept, so that a killed run asks nothing twice.

A request can fail for the sake of the prompt, which hangs on private rows, or because the endpoint is gone, which does
not. So nothing is ever said of a failed prompt: it is an abstention. After each block a public row is asked about, with
nothing private in the prompt, and with a patience of its own. Where that gets no reply the endpoint is gone, and the
run, or whoever asks a question, stops before abstentions are paid for; what was asked since the public row was last
answered is asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from quorate.data import take
from quorate.data.rows import n_rows
from quorate.ensemble import ChatTeacher, Ensemble
from quorate.ensemble.counting import add_votes
from quorate.ensemble.teachers.prompted import Unanswered
from quorate.ensemble.votes import votes_of_prompt
from quorate.errors import TeachersSilent
from quorate.run.stage_store import PROMPTED, NoStages, StageStore
from quorate.types import IntArray, Secret
from quorate.voting.kept_votes import KeptVotes
from quorate.voting.task import Task

BLOCK = 64  # public rows of one teacher: what a killed run asks again at most


def requests(teacher: ChatTeacher, n_teachers: int, answers: int) -> str:
    """Say how often an endpoint is asked, in words for whoever pays for it.

    Examples
    --------
    >>> requests(ChatTeacher("http://127.0.0.1:8000/v1", "some-model"), 50, 300)
    '15,000 requests to http://127.0.0.1:8000/v1: each of 50 teachers is asked about each of 300 rows, 4 at a time'
    """
    endpoint = teacher.endpoint
    return (
        f"{n_teachers * answers:,} requests to {endpoint.url}: each of {n_teachers:,} teachers is asked about each of "
        f"{answers:,} rows, {endpoint.connections:,} at a time"
    )


def are_prompts(task: Task) -> bool:
    """Tell whether the teachers of a task are prompts whose votes are counted."""
    return isinstance(task.teacher, ChatTeacher) and task.recipe.mechanism.takes != "scores"


def votes_by_prompt(
    task: Task,
    ensemble: Ensemble,
    asked: Any,
    *,
    stages: StageStore | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Secret[IntArray]:
    """Count votes as :func:`~quorate.ensemble.count_votes` does, and keep those of each teacher on the way.

    `task`: whose teachers are prompts. `ensemble`: the teachers. `asked`: as teachers see them. `stages`: where votes
    on the run's own queries are kept. Nowhere for questions that come later. `progress`: called with (teachers done, in
    all). Raises TeachersSilent if a public row without private ones beside it gets no reply. Nothing was drawn.
    """
    kept, voters = KeptVotes(task, stages or NoStages(), PROMPTED), ensemble.voters.reveal()
    n_queries = n_rows(asked)
    counts = np.zeros((n_queries, task.n_classes), dtype=np.int64)
    waiting: dict[int, Any] = {}  # votes since the public row was last answered, by teacher
    since = 0
    for number, voter in enumerate(voters):
        codes = kept.of(number)
        while len(codes) < n_queries:
            block = take(asked, np.arange(len(codes), min(len(codes) + BLOCK, n_queries)))
            codes = np.concatenate([codes, votes_of_prompt(voter, block, task.n_classes)])
            waiting[number], since = codes, since + n_rows(block)
            if since >= BLOCK:
                _keep(task, kept, waiting)
                since = 0
        add_votes(codes[np.newaxis], counts)
        if progress is not None:
            progress(number + 1, len(voters))
    _keep(task, kept, waiting)
    return Secret(counts)


def _keep(task: Task, kept: KeptVotes, waiting: dict[int, Any]) -> None:
    """Keep votes once a public row is answered: before that they may be those of an endpoint that is gone."""
    if not waiting:
        return
    see_that_it_answers(task)
    kept.keep(waiting)
    waiting.clear()


def see_that_it_answers(task: Task) -> None:
    """Ask about a public row, where teachers are prompts.

    Raises TeachersSilent if nothing comes back.
    """
    teacher = task.teacher
    if not isinstance(teacher, ChatTeacher):
        return
    try:
        teacher.probe(task.views.teacher(take(task.inputs.public, np.arange(1))))
    except Unanswered as failed:
        raise TeachersSilent(
            f"the endpoint {teacher.endpoint.url} has stopped answering: {failed}. Start it, and ask again: a run in a "
            "folder goes on with the votes that it has"
        ) from None

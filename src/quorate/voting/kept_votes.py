"""Votes of teachers, trained here or by a scheduler, on the way to their sum: a run that is broken off goes on with
them.

Where nothing that was trained can be stored, as with prompts and with commands that train anew at every call, the votes
are all that was done. Those of each teacher are a stage of their own, under a key as that of their sum, and as private.
Of trained teachers that cannot be stored, such as those of a boosting library, the votes of a chunk are kept as a sum.

A request of a prompt can fail for the sake of the prompt, which hangs on private rows, or because the endpoint is gone,
which does not. So nothing is ever said of a failed prompt: it is an abstention. After each block a public row is asked
about, with nothing private in the prompt, and with a patience of its own. Where that gets no reply the endpoint is
gone, and the run, or whoever asks a question, stops before abstentions are paid for; what was asked since the public
row was last answered is asked again.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from quorate.data import take
from quorate.data.rows import n_rows
from quorate.ensemble import (
    ChatTeacher,
    CommandTeacher,
    DaskScheduler,
    Ensemble,
    Voter,
    count_votes,
    dump_voters,
    gather_scores,
    load_voters,
    train_chunk,
    train_elsewhere,
)
from quorate.ensemble.teachers.prompted import Unanswered
from quorate.ensemble.votes import BLOCK, add_votes, code_type, votes_of_each, votes_of_prompt
from quorate.errors import TeachersSilent
from quorate.run.stage_store import CALLED, CHUNK, COUNTED, PROMPTED, NoStages, StageStore, TaskStages, votes_stage
from quorate.types import IntArray, Secret, Watch
from quorate.voting.shard_rows import TaughtShards, rows_by_teacher
from quorate.voting.task import Task

ROUNDS = 4  # of calls side by side before progress is told: the last ones wait for the slowest of their fellows


def votes(
    task: Task, queries: IntArray, stages: StageStore, see: Watch, *, shards: TaughtShards
) -> tuple[Ensemble | None, Secret[Any]]:
    """Return the teachers (where they are needed later) and what a mechanism is to look at: :func:`votes_of`."""
    stage = "scores" if task.recipe.mechanism.takes == "scores" else "votes"
    kept = TaskStages(stages, task.key, task.stage_inputs)
    stored = kept.load(stage)
    if stored is not None:
        asked_later = teachers(task, stages, see, shards=shards) if task.recipe.online_answers else None
        return asked_later, Secret(np.load(io.BytesIO(stored), allow_pickle=False))
    rows = task.views.teacher(take(task.inputs.public, queries))
    chunks = None
    if stages.keeps and can_be_counted_on_the_way(task):
        chunks = CountedChunks(task, kept, rows)
    ensemble = teachers(task, stages, see, shards=shards, chunks=chunks)
    see = _with_stage_names(task, see)
    declared = task.recipe.n_teachers  # in which progress is told: there may be another number of teachers
    see("votes", 0, declared)
    counts = votes_of(
        task,
        ensemble,
        rows,
        progress=lambda done, total: see("votes", declared * done // max(total, 1), declared),
        scheduler=task.config.scheduler,
        stages=stages,
    )
    counts = counts if chunks is None else chunks.beside(counts)
    if stages.keeps:
        content = io.BytesIO()
        np.save(content, counts.reveal(), allow_pickle=False)
        kept.save(stage, content.getvalue())
    return (None if chunks else ensemble), counts  # teachers without those of counted chunks are no ensemble


def _with_stage_names(task: Task, see: Watch) -> Watch:
    """Have stages of teachers that train nothing before they are asked told by what is done in them."""
    names = {}
    if are_prompts(task):
        names = {"teachers": "rows"}
    elif isinstance(task.teacher, CommandTeacher) and not task.teacher.keeps_model:
        names = {"teachers": "rows", "votes": "calls"}
    return lambda stage, done, total: see(names.get(stage, stage), done, total)


def votes_of(
    task: Task,
    ensemble: Ensemble,
    asked: Any,
    *,
    progress: Callable[[int, int], None] | None = None,
    scheduler: DaskScheduler | None = None,
    stages: StageStore | None = None,
) -> Secret[Any]:
    """Votes ``(n_queries, n_classes)``, or scores ``(n_queries, n_teachers)``; `stages` keep the run's own ones."""
    if are_prompts(task):
        return votes_by_prompt(task, ensemble, asked, stages=stages, progress=progress)
    if stages is not None and stages.keeps and are_calls(task):
        return votes_by_call(task, ensemble, asked, stages=stages, progress=progress)
    if task.recipe.mechanism.takes == "scores":
        return gather_scores(ensemble, asked, n_jobs=task.n_jobs, progress=progress, scheduler=scheduler)
    return count_votes(ensemble, asked, n_jobs=task.n_jobs, progress=progress, scheduler=scheduler)


def teachers(
    task: Task,
    stages: StageStore,
    see: Watch,
    *,
    shards: TaughtShards,
    chunks: CountedChunks | None = None,
) -> Ensemble:
    """Train the teachers chunk by chunk, so that a killed run goes on from the last whole chunk. `chunks`
    counts votes of teachers that are not stored, nor returned.
    """
    n_teachers, see = task.recipe.n_teachers, _with_stage_names(task, see)
    parts: dict[int, list[Secret[tuple[Voter, ...]]]] = {}
    wanted: dict[int, range] = {}
    kept = TaskStages(stages, task.key, task.stage_inputs)
    for start in range(0, shards.number, CHUNK):
        stored = kept.load(_stage(start))
        if stored is None and not (chunks is not None and chunks.has(start)):
            wanted[start] = range(start, min(start + CHUNK, shards.number))
        parts[start] = [] if stored is None else [load_voters(stored, task.trainer)]
    for numbers, voters in trained(task, shards, list(wanted.values()), see):
        start = numbers.start // CHUNK * CHUNK
        parts[start].append(voters)
        if stages.keeps and numbers.stop == wanted[start].stop:
            whole = Secret(tuple(voter for part in parts[start] for voter in part.reveal()))
            written = dump_voters(whole, boosting=chunks is None)
            if written is not None:  # what skops cannot write is trained again when it is needed
                kept.save(_stage(start), written.reveal())
            elif chunks is not None:
                chunks.add(start, whole)
                parts[start] = []
    see("teachers", n_teachers, n_teachers)
    return Ensemble.from_chunks([part for chunk in parts.values() for part in chunk], task.n_classes)


def _stage(start: int) -> str:
    return f"teachers-{start:05d}"


class KeptVotes:
    """The votes of each teacher on the run's own queries, as far as they are kept, keyed by the task's inputs."""

    def __init__(self, task: Task, stages: StageStore, kind: str) -> None:
        made_from = task.cache_inputs if stages.keeps else {}  # else private rows, which it hangs on, may be gone
        self._stages, self._kind = TaskStages(stages, task.key, made_from), kind
        self._type = code_type(task.n_classes)

    def of(self, number: int) -> Any:
        """Return the codes of one teacher on the first queries, from none to all, ``(n_known,)``."""
        return np.frombuffer(self._stages.load(votes_stage(self._kind, number)) or b"", dtype=self._type)

    def keep(self, codes: dict[int, Any]) -> None:
        """Keep what is known of some teachers, by number, in place of what was."""
        for number, known in codes.items():
            self._stages.save(votes_stage(self._kind, number), known.tobytes())


class CountedChunks:
    """Summed votes of chunks of teachers that no file can hold; `asked`: the rows that they vote on."""

    def __init__(self, task: Task, stages: TaskStages, asked: Any) -> None:
        self._task, self._stages, self._asked = task, stages, asked
        self._sums: dict[int, Secret[IntArray]] = {}

    def __bool__(self) -> bool:
        """Whether there is any such chunk."""
        return bool(self._sums)

    def has(self, start: int) -> bool:
        """Whether the votes of the chunk that begins with this teacher are known, here or where they are kept."""
        if start not in self._sums and (content := self._stages.load(votes_stage(COUNTED, start))) is not None:
            votes = np.frombuffer(content, dtype=np.int64).reshape(-1, self._task.n_classes)
            self._sums[start] = Secret(votes)
        return start in self._sums

    def add(self, start: int, voters: Secret[tuple[Voter, ...]]) -> None:
        """Count and keep the votes of a whole chunk."""
        self._sums[start] = votes_of(self._task, Ensemble(voters, self._task.n_classes), self._asked)
        self._stages.save(votes_stage(COUNTED, start), self._sums[start].reveal().tobytes())

    def beside(self, counts: Secret[IntArray]) -> Secret[IntArray]:
        """Return the votes of all chunks, with those of the other teachers."""
        return Secret(sum((votes.reveal() for votes in self._sums.values()), start=counts.reveal()))


def can_be_counted_on_the_way(task: Task) -> bool:
    """Tell whether votes are all that is wanted of a task's teachers, which are trained on this machine."""
    elsewhere = isinstance(task.teacher, CommandTeacher | ChatTeacher) or task.config.scheduler is not None
    return not (elsewhere or task.recipe.online_answers or task.recipe.mechanism.takes == "scores")


def are_calls(task: Task) -> bool:
    """Tell whether the teachers of a task are calls of a command whose votes are counted."""
    return isinstance(task.teacher, CommandTeacher) and task.recipe.mechanism.takes != "scores"


def votes_by_call(
    task: Task,
    ensemble: Ensemble,
    asked: Any,
    *,
    stages: StageStore,
    progress: Callable[[int, int], None] | None = None,
) -> Secret[IntArray]:
    """Count votes, and keep those of each teacher, as secret as what is counted, on the way. Progress is told for some
    teachers together, in their order: nobody is to see which call failed and was made once more.
    """
    voters, kept = ensemble.voters.reveal(), KeptVotes(task, stages, CALLED)
    n_queries = n_rows(asked)
    counts = np.zeros((n_queries, task.n_classes), dtype=np.int64)
    at_once = 1 if task.n_jobs == 1 else ROUNDS * task.n_jobs
    if task.config.scheduler is not None:  # its workers are sent many at a time, and how many there are may change
        at_once = max(1, len(voters))
    for first in range(0, len(voters), at_once):
        numbers = range(first, min(first + at_once, len(voters)))
        codes = {number: kept.of(number) for number in numbers}
        for start in range(0, n_queries, BLOCK):
            missing = {number: voters[number] for number in numbers if len(codes[number]) <= start}
            block = asked[start : start + BLOCK]
            for number, of_block in votes_of_each(
                missing, block, task.n_classes, n_jobs=task.n_jobs, scheduler=task.config.scheduler
            ):
                codes[number] = np.concatenate([codes[number], of_block])
                kept.keep({number: codes[number]})  # at once: a call may have taken minutes
        add_votes(np.stack([codes[number] for number in numbers]), counts)
        if progress is not None:
            progress(numbers.stop, len(voters))
    return Secret(counts)


_CELLS = 2**24  # of linear teachers that one process solves in about three seconds


def trained(
    task: Task, shards: TaughtShards, wanted: list[range], see: Watch
) -> Iterator[tuple[range, Secret[tuple[Voter, ...]]]]:
    """Yield the teachers of each range, in one part or in several, in order; ranges as they are done. `see`: told no
    private number.
    """
    if not wanted:
        return iter(())
    return (_here if task.config.scheduler is None else _elsewhere)(task, shards, wanted, see)


def _here(
    task: Task, shards: TaughtShards, wanted: list[range], see: Watch
) -> Iterator[tuple[range, Secret[tuple[Voter, ...]]]]:
    n_teachers, n_jobs = task.recipe.n_teachers, task.n_jobs
    if task.solves:  # how many processes are worth their start: a matter of speed, which no teacher can tell
        n_jobs = min(n_jobs, 1 + len(shards.of_row.reveal()) * task.views.width // _CELLS)
    for part in rows_by_teacher(task, shards.of_row, wanted):
        start = part.numbers.start // CHUNK * CHUNK
        # Where else a chunk is cut hangs on private shard sizes, and that there are more shards on the number of units.
        if part.numbers.start == start < n_teachers:
            see("teachers", start, n_teachers)
        voters = train_chunk(
            task.trainer,
            part.X,
            part.codes,
            part.shards,
            numbers=part.numbers,
            n_teachers=shards.number,
            n_classes=task.n_classes,
            key=task.key,
            seeds=shards.seeds,
            n_jobs=n_jobs,
        )
        yield part.numbers, voters


def _elsewhere(
    task: Task, shards: TaughtShards, wanted: list[range], see: Watch
) -> Iterator[tuple[range, Secret[tuple[Voter, ...]]]]:
    assert task.config.scheduler is not None  # noqa: S101 - the caller's condition
    n_teachers = task.recipe.n_teachers
    ranges = {numbers.start: numbers for numbers in wanted}
    trained: dict[int, dict[int, Voter]] = {start: {} for start in ranges}
    done = n_teachers - sum(min(numbers.stop, n_teachers) - min(numbers.start, n_teachers) for numbers in wanted)
    see("teachers", done, n_teachers)
    voters = train_elsewhere(
        task.trainer,
        rows_by_teacher(task, shards.of_row, wanted),
        n_teachers=shards.number,
        n_classes=task.n_classes,
        key=task.key,
        seeds=shards.seeds,
        scheduler=task.config.scheduler,
    )
    for number, voter in voters:
        start = number // CHUNK * CHUNK
        trained[start][number] = voter.reveal()
        if len(trained[start]) < len(ranges[start]):
            continue
        if start < n_teachers:
            done += min(ranges[start].stop, n_teachers) - start
            see("teachers", done, n_teachers)
        whole = trained.pop(start)
        yield ranges[start], Secret(tuple(whole[number] for number in ranges[start]))


PROMPTED_AT_ONCE = 64  # public rows of one teacher: what a killed run asks again at most


def requests(teacher: ChatTeacher, n_teachers: int, answers: int) -> str:
    """Say how often an endpoint is asked, in words for whoever pays for it."""
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
    """Count and keep votes on the run's own queries; raises TeachersSilent where a public row gets no reply."""
    kept, voters = KeptVotes(task, stages or NoStages(), PROMPTED), ensemble.voters.reveal()
    n_queries = n_rows(asked)
    counts = np.zeros((n_queries, task.n_classes), dtype=np.int64)
    waiting: dict[int, Any] = {}  # votes since the public row was last answered, by teacher
    since = 0
    for number, voter in enumerate(voters):
        codes = kept.of(number)
        while len(codes) < n_queries:
            block = take(asked, np.arange(len(codes), min(len(codes) + PROMPTED_AT_ONCE, n_queries)))
            codes = np.concatenate([codes, votes_of_prompt(voter, block, task.n_classes)])
            waiting[number], since = codes, since + n_rows(block)
            if since >= PROMPTED_AT_ONCE:
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
    """Ask about a public row, where teachers are prompts; raises TeachersSilent if nothing comes back."""
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

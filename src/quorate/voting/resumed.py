"""A fit that goes on after its process ended: the same teachers again, for what its ledger still owes.

Nothing of the teachers outlives a fit in memory. What does is the ledger, and the key beside it, readable by its owner
alone, by which private data are known again. The key of a fit (which unit goes to which teacher, and the teachers' own
seeds) is derived from that one and from a random number in the name of the charge; so whoever has the ledger, its key
and the data can train the same teachers again, and nobody else learns anything of who is where. The name of the charge
holds a keyed hash of all that the votes are made from, by which a fit of other arguments or rows is told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from quorate.errors import PreconditionFailed
from quorate.labelling import stored_labels
from quorate.ledger import Ledger
from quorate.release import Charge
from quorate.run.stage_store import NoStages
from quorate.types import Secret, Watch, derive
from quorate.voting.claims import shards_are_right
from quorate.voting.flow import RunResult, answering_purposes, run_pipeline, schedule, teach
from quorate.voting.kept_votes import teachers
from quorate.voting.shard_rows import limit_of, shards_to_train
from quorate.voting.task import Task

_FIT = "fit"


def fit_key(beside_ledger: Secret[bytes], nonce: str) -> Secret[bytes]:
    """Return the key of one fit, 32 bytes: of the key beside its ledger, and a random number that the ledger holds."""
    return Secret(derive(beside_ledger, f"fit {nonce}"))


def charge_name(task: Task, nonce: str) -> str:
    """Return the idempotency key of a fit's charge, by which it is found again."""
    return f"{_FIT} {nonce} {task.content_key}"


def nonces_of(ledger: Ledger) -> list[str]:
    """Return the numbers of the fits that a ledger was charged for, newest first."""
    named = (reservation.key.split(" ") for reservation in ledger.reservations())
    return [words[1] for words in named if len(words) == 3 and words[0] == _FIT][::-1]


def find_fit(ledger: Ledger, of: Callable[[str], Iterable[Task]]) -> tuple[Task, Charge] | None:
    """Return the newest fit that a ledger was charged for, of the task that `of` makes of its number, if any."""
    for nonce in nonces_of(ledger):
        for named in of(nonce):
            for classes_by_shard in (True, False):  # another fit where a parameter of the teacher names a class
                task = replace(named, config=replace(named.config, classes_by_shard=classes_by_shard))
                charge = schedule(task, charge_name(task, nonce))
                if charge.find(ledger) is not None:
                    return task, charge
    return None


def go_on(task: Task, charge: Charge, ledger: Ledger, *, watch: Watch | None = None) -> RunResult:
    """Go on with a fit of :func:`find_fit`, whether or not its labels are all released; nothing is charged."""
    if charge.find(ledger) is None:
        raise PreconditionFailed("the ledger holds no charge of this fit; give the ledger it was fitted with")
    try:
        reservation = charge.reserve(ledger)  # charges nothing again, and refuses a promise that was not made then
    except PreconditionFailed:
        raise PreconditionFailed(
            "this fit was charged with another promise than these arguments make, such as n_records= or unit= that was "
            "not given then; give the arguments of the fit. Nothing was charged"
        ) from None
    if task.strategy is not None or task.draws_pool or reservation.remaining("label"):
        return run_pipeline(task, ledger, key=charge.key, watch=watch)
    see = watch or (lambda stage, done, total: None)
    released = stored_labels(task.recipe.mechanism, reservation, n_classes=task.n_classes)
    shards = shards_to_train(task)
    owed = any(reservation.remaining(purpose) for purpose in answering_purposes(task, reservation))
    ensemble = teachers(task, NoStages(), see, shards=shards) if owed else None
    student = teach(task, task.queries, released)
    return RunResult(
        task=task,
        model=student,
        released=released,
        queries=task.queries,
        charge=charge,
        reservation=reservation,
        ensemble=ensemble,
        checks=(shards_are_right(task.neighbouring, task.partition),),
        limit=limit_of(task, student, reservation),
    )

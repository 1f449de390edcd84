"""Why one unit moved several teachers: the likely cause, read off what kind of change moved whom."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.audit.probe import Probe

RESIZED = "the number of teachers depends on the rows: fix it beforehand."
STOPPED = (
    "the rows of one unit can stop the whole training, and that it stopped is an output: let a teacher that cannot be "
    "trained abstain."
)
SEVERAL_SHARDS = "the rows of one unit lie in several shards: split by unit (groups), not by row."
BY_POSITION = (
    "rows are dealt out by position or by their number (blocks, renumbering, equal sizes): when a unit comes or goes, "
    "others change shard. Assign each unit by a keyed hash of its id."
)
POOLED_FEATURES = (
    "something is fitted on the features of all rows together: a scaler, an encoder, a vocabulary or a feature "
    "selection. Put it inside each teacher, or fit it on public data."
)
POOLED_LABELS = (
    "something is fitted on the labels of all rows together: class weights, a target encoding or a feature selection; "
    "or the teachers share one optimiser. Put it inside each teacher."
)
SHARED_STOPPING = (
    "the teachers share a rule that only some records trip: when to stop, a step size, a tolerance. "
    "Let each teacher stop by its own shard."
)
CHAIN = (
    "the teachers after the changed one moved too: something is handed on from teacher to teacher, such as a random "
    "generator, a warm start or a cache. Derive each teacher's seed from its number."
)


def likely_causes(probes: Sequence[Probe], n_teachers: int) -> tuple[str, ...]:
    """Return likely causes, the likeliest first; none where no probe moved more than one teacher.

    Reasoning: what is fitted on pooled features moves everybody whenever any feature changes, and nobody else when
    only a label does; a shared stopping rule moves everybody or nobody, depending on the record; a partition by
    position is blind to replacement in place; a unit spread over shards moves no more than one teacher a row.
    """
    causes = []
    if any(probe.stopped for probe in probes):
        causes.append(STOPPED)
        probes = [probe for probe in probes if not probe.stopped]
    if any(probe.resized for probe in probes):
        causes.append(RESIZED)
    in_place = [probe for probe in probes if probe.touched in {"features", "outlier", "label", "contradiction"}]
    wide = [probe for probe in in_place if probe.moved > 1]
    if wide:
        causes.append(_of_replacement(probes, in_place, wide, n_teachers))
    elif any(probe.moved > 1 for probe in probes):
        causes.append(BY_POSITION)
        if _is_chain(probes, n_teachers):  # consecutive blocks move in the same way
            causes.append(CHAIN)
    return tuple(dict.fromkeys(causes))


def _of_replacement(probes: Sequence[Probe], in_place: Sequence[Probe], wide: Sequence[Probe], n_teachers: int) -> str:
    by_features = [probe for probe in in_place if probe.touched != "label"]
    by_label = [probe for probe in in_place if probe.touched == "label"]
    one_row = [probe for probe in probes if probe.touched == "one row"]
    if one_row and all(probe.moved <= 1 for probe in one_row) and max(probe.moved for probe in wide) < n_teachers:
        return SEVERAL_SHARDS
    if by_label and all(probe.moved > 1 for probe in by_label):
        return CHAIN if _is_chain(wide, n_teachers) else POOLED_LABELS
    if all(probe.moved > 1 for probe in by_features) and all(probe.moved <= 1 for probe in by_label):
        return POOLED_FEATURES
    return CHAIN if _is_chain(wide, n_teachers) else SHARED_STOPPING


def _is_chain(probes: Sequence[Probe], n_teachers: int) -> bool:
    """Whether always the teachers from some number on moved, and not always all of them."""
    moved = [probe.teachers.reveal() for probe in probes if probe.moved > 1]
    tails = all(numbers == frozenset(range(min(numbers), n_teachers)) for numbers in moved)
    return bool(moved) and tails and any(len(numbers) < n_teachers for numbers in moved)

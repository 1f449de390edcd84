"""Voters as bytes, without pickle: what cannot be written safely is refitted when it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.ensemble.class_names import LabelledEstimator
from quorate.ensemble.classifier import ClassifierVoter
from quorate.ensemble.command import CommandTeacher, CommandVoter
from quorate.ensemble.linear_storage import dump_linear, is_linear_file, load_linear
from quorate.ensemble.prior_matching import MatchedVoter
from quorate.ensemble.teachers import AbstainingVoter, ConstantVoter, Teacher, Voter
from quorate.errors import PreconditionFailed
from quorate.types import Secret

_FORMAT = "quorate voters 1"


def dump_voters(voters: Secret[tuple[Voter, ...]]) -> Secret[bytes] | None:
    """Write plain logistic regressions as arrays (:mod:`quorate.ensemble.linear_storage`), all else with skops.

    Returns
    -------
    Secret[bytes] or None
        None where skops cannot write one of them, or would read it back only by trusting a type it does not trust
        by itself (decision trees are such a type): teachers are then refitted, which gives the same voters.

    Examples
    --------
    >>> written = dump_voters(Secret((ConstantVoter(1), AbstainingVoter())))
    >>> load_voters(written.reveal()).reveal()[1]
    AbstainingVoter()
    """
    arrays = dump_linear(voters.reveal())
    if arrays is not None:
        return Secret(arrays)
    from quorate.deferred import skops

    records = [_record(voter) for voter in voters.reveal()]
    if None in records:
        return None
    try:
        written: bytes = skops.io.dumps({"format": _FORMAT, "voters": records})
        if skops.io.get_untrusted_types(data=written):
            return None
        one = next((record for record in records if record is not None and "estimator" in record), None)
        if one is not None:  # the others are of the same kind: what was just written is not all read again
            load_voters(skops.io.dumps({"format": _FORMAT, "voters": [one]}))
    except Exception:  # noqa: BLE001 - what went wrong depends on private rows, and refitting is the way on in any case
        return None
    return Secret(written)


def load_voters(data: bytes, teacher: Teacher | None = None) -> Secret[tuple[Voter, ...]]:
    """Read what :func:`dump_voters` wrote, trusting no type beyond skops' own list.

    Parameters
    ----------
    data : bytes
        What was written.
    teacher : Teacher, optional
        Who trained them: the files that a command left are asked by the command of the settings, and by no other.

    Raises
    ------
    PreconditionFailed
        If `data` is not such a file, or holds a type that is not trusted.

    Examples
    --------
    >>> load_voters(b"something else")
    Traceback (most recent call last):
    quorate.errors.PreconditionFailed: this is not a file of teachers, or one that was altered. Delete it to refit...
    """
    try:
        if is_linear_file(data):
            return Secret(load_linear(data))
        from quorate.deferred import skops

        content: Any = skops.io.loads(data, trusted=[])
        if content["format"] != _FORMAT:
            raise ValueError  # noqa: TRY301
        return Secret(tuple(_voter(record, teacher) for record in content["voters"]))
    except Exception:  # noqa: BLE001 - whatever a broken file breaks
        # From None: the cause may quote what is in the file.
        raise PreconditionFailed(
            "this is not a file of teachers, or one that was altered. Delete it to refit the teachers."
        ) from None


def _record(voter: Voter) -> dict[str, Any] | None:
    if type(voter) is AbstainingVoter:
        return {"kind": "abstaining"}
    if type(voter) is ConstantVoter:
        return {"kind": "constant", "code": int(voter.code)}
    if type(voter) is ClassifierVoter:
        return {"kind": "classifier", **_of_estimator(voter.estimator), "codes": np.asarray(voter.codes)}
    if type(voter) is MatchedVoter:
        return {
            "kind": "matched",
            **_of_estimator(voter.estimator),
            "codes": np.asarray(voter.codes),
            "threshold": float(voter.threshold),
        }
    if type(voter) is CommandVoter and voter.model is not None:
        model = {name: np.frombuffer(content, np.uint8) for name, content in voter.model.items()}
        return {"kind": "command", "seed": voter.seed, "model": model}
    return None


def _of_estimator(estimator: Any) -> dict[str, Any]:
    if isinstance(estimator, LabelledEstimator):
        return {"estimator": estimator.estimator, "labels": estimator.labels}
    return {"estimator": estimator}


def _estimator(record: dict[str, Any]) -> Any:
    return LabelledEstimator(record["estimator"], list(record["labels"])) if "labels" in record else record["estimator"]


def _voter(record: dict[str, Any], teacher: Teacher | None) -> Voter:
    match record["kind"]:
        case "abstaining":
            return AbstainingVoter()
        case "constant":
            return ConstantVoter(int(record["code"]))
        case "classifier":
            return ClassifierVoter(_estimator(record), np.asarray(record["codes"], dtype=np.int64))
        case "matched":
            codes = np.asarray(record["codes"], dtype=np.int64)
            return MatchedVoter(_estimator(record), codes, float(record["threshold"]))
        case "command" if isinstance(teacher, CommandTeacher):
            model = {str(name): np.asarray(content, np.uint8).tobytes() for name, content in record["model"].items()}
            return CommandVoter(teacher, int(record["seed"]), model=model)
        case _:
            raise ValueError

"""How small a fault an audit finds: the stored table, what a row of it says, and which rows hold for an audit.

A row of ``detectable.json`` (:mod:`quorate.audit.measured_sizes`) says of one fault: whoever audits this mechanism at
this setting, by the same attack, with no fewer trials and at no higher confidence, finds it with this probability or
more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from importlib.resources import files
from math import isclose
from typing import Any

from quorate.accounting import Event, Repeated
from quorate.accounting import epsilon as price
from quorate.audit.claims import proportion_lower
from quorate.audit.goodness_of_fit import GoodnessOfFit
from quorate.audit.plans import Attack, sparse_vector_of
from quorate.audit.schedules import ScheduleAudit
from quorate.errors import InvalidParameter
from quorate.mechanisms import REGISTERED

TABLE = "detectable.json"
FORMAT = 1
_ROUNDING = 1e-12  # of a confidence that is divided among the parts of an audit
_SAME = 1e-9  # relative, of two floats that were calibrated on different machines


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What the answers to an audit depend on, but for the number of runs.

    `mechanism`: its class name; with its module where it is none of the package's.
    `fields`: its fields; empty where it is none of the package's.
    `answers`: how many are answered in a run, or asked in a stream.
    `epsilon`, `delta`: what was charged for a run: ε at δ.
    `n_teachers`, `n_classes`: None where they change nothing: between two tied classes only differences of votes count,
    and the stream with which a sparse vector's answers are compared has votes of its own.
    """

    mechanism: str
    fields: tuple[tuple[str, float | int | str], ...]
    answers: int
    epsilon: float
    delta: float
    n_teachers: int | None
    n_classes: int | None

    def same_as(self, other: Setting) -> bool:
        """Whether two settings are one, floats to nine digits."""
        return _alike(_tree(self), _tree(other))


def setting_of(mechanism: Any, event: Event, n_teachers: int, n_classes: int, delta: float) -> Setting:
    """Return the setting of a run that was charged `event`."""
    kind = type(mechanism)
    registered = REGISTERED.get(kind.__name__) is kind
    compared = sparse_vector_of(mechanism) is not None
    tied = n_classes == 2 and getattr(mechanism, "test", None) is None
    return Setting(
        mechanism=kind.__name__ if registered else f"{kind.__module__}.{kind.__qualname__}",
        fields=tuple((field.name, getattr(mechanism, field.name)) for field in fields(mechanism)) if registered else (),
        answers=event.times if isinstance(event, Repeated) else getattr(mechanism, "n_queries", 1),
        epsilon=price(event, delta),
        delta=delta,
        n_teachers=None if compared or tied else n_teachers,
        n_classes=None if compared else n_classes,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class DetectableSize:
    """The smallest fault of one kind that an audit of one setting finds with a probability.

    `fault`: a key of :data:`quorate.audit.measured_sizes.FAULTS`. `size`: per cent of noise that is missing, or of how
    many answers one has no noise. `found`: False where not even the grossest fault of the kind, which is then the size,
    is found with that probability. `probability`, `certainty`: a fault of this size is found with it or more; with what
    certainty that was measured. `attack`: which one finds it; an audit makes others beside it. `runs`, `trials`: the
    number that was asked for; those that the attack counts. `confidence`, `share`: of all bounds and comparisons of
    such an audit together, and of the attack by itself. `audits`, `hits`: how many audits of the faulty mechanism were
    made, and in how many of them the fault was found.
    """

    setting: Setting
    fault: str
    size: int
    found: bool
    probability: float
    certainty: float
    attack: str
    runs: int
    trials: int
    confidence: float
    share: float
    audits: int
    hits: int

    @property
    def fault_in_words(self) -> str:
        """What is wrong with the noise."""
        return fault_in_words(self.fault, self.size)

    @property
    def setting_in_words(self) -> str:
        """Where it was measured, and with how many runs."""
        setting = self.setting
        parts = [
            "one answer" if setting.answers == 1 else f"{setting.answers:,} answers",
            *([] if setting.n_teachers is None else [f"{setting.n_teachers:,} teachers"]),
            *([] if setting.n_classes is None else [f"{setting.n_classes:,} classes"]),
            f"ε = {setting.epsilon:.4g} at δ = {setting.delta:.4g}".replace("e-0", "e-"),
        ]
        return f"{', '.join(parts)}; {self.runs:,} runs at confidence {100 * self.confidence:.10g} %"

    @property
    def proved(self) -> float:
        """The probability of finding it that the counts prove, at level `certainty` (Clopper–Pearson)."""
        return float(proportion_lower(self.hits, self.audits, 1 - self.certainty))

    def holds_for(self, setting: Setting, audit: ScheduleAudit) -> bool:
        """Whether an audit of `setting` made this attack at least as well as it was made here."""
        parts: list[Attack | GoodnessOfFit] = [*audit.attacks, *audit.comparisons]
        is_measured = any(
            part.name == self.attack and part.trials >= self.trials and part.confidence <= self.share + _ROUNDING
            for part in parts
        )
        return is_measured and self.setting.same_as(setting)


def fault_in_words(fault: str, size: int) -> str:
    """Return what is wrong with a mechanism that has a fault of this size."""
    if fault == "less noise":
        return f"noise smaller by {size} %"
    return "no noise on any answer" if size == 1 else f"one answer in {size:,} without noise"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """What is known of the faults that an audit would have found.

    `rows`: those that hold for the audit; where there are none, those of the mechanism at the setting that was
    measured. `here`: whether they hold for the audit.
    """

    rows: tuple[DetectableSize, ...]
    here: bool


def sizes_for(setting: Setting, audit: ScheduleAudit) -> Sizes:
    """Return which rows of the stored table hold for an audit, else what was measured of its mechanism elsewhere."""
    of_mechanism = [row for row in stored_sizes() if row.setting.mechanism == setting.mechanism]
    here = tuple(row for row in of_mechanism if row.holds_for(setting, audit))
    return Sizes(rows=here or tuple(of_mechanism), here=bool(here))


@lru_cache(maxsize=1)
def stored_sizes() -> tuple[DetectableSize, ...]:
    """Return the stored table."""
    return read_sizes(files("quorate.audit").joinpath(TABLE).read_text(encoding="utf-8"))


def read_sizes(text: str) -> tuple[DetectableSize, ...]:
    """Read what :func:`write_sizes` wrote, or refuse what is no such table."""
    try:
        tree = json.loads(text)
        if tree["format"] == FORMAT:
            return tuple(_row(row) for row in tree["rows"])
    except (ValueError, KeyError, TypeError):
        pass
    raise InvalidParameter(
        f'sizes must be a JSON object with "format": {FORMAT} and "rows"; measure them anew with '
        "quorate audit --sizes --measure FILE, where there is no FILE yet"
    )


def write_sizes(rows: Iterable[DetectableSize]) -> str:
    """Return a table as JSON."""
    tree = {"format": FORMAT, "rows": [asdict(row) | {"setting": _tree(row.setting)} for row in rows]}
    return json.dumps(tree, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _tree(setting: Setting) -> dict[str, Any]:
    return asdict(setting) | {"fields": dict(setting.fields)}


def _row(tree: dict[str, Any]) -> DetectableSize:
    setting = tree["setting"] | {"fields": tuple(tree["setting"]["fields"].items())}
    return DetectableSize(**tree | {"setting": Setting(**setting)})


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=_SAME)
    return bool(one == other)

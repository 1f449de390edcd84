"""What is asked of a run, whichever method it has; each method's own configuration adds its fields to this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.data.labels import TargetRange
from quorate.ledger.budget import Composition
from quorate.students.prediction_sets import COVERAGE

if TYPE_CHECKING:
    from quorate.ensemble.workers.cluster.scheduler import DaskScheduler


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodConfig:
    """What is asked of every method: constructor arguments of an estimator, or the sections of ``quorate.toml``."""

    epsilon: float
    delta: float
    n_records: int | None = None
    unit: str | None = None
    target_range: TargetRange | None = None  # where a number is predicted
    composition: Composition = "sum"  # of the ledger to charge
    calibration_share: float | None = None  # of the units, held out for prediction sets, or intervals
    coverage: float = COVERAGE  # of these
    scheduler: DaskScheduler | None = None  # whose workers work for the run; by default this machine

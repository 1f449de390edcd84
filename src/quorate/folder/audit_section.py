"""What an audit of a mechanism found, as a report and ``audit.json`` hold it."""

from __future__ import annotations

from typing import Any

from quorate.audit import ScheduleAudit
from quorate.audit.detectable import DetectableSize, Sizes
from quorate.report import Audit, AuditLine, ChargeLine, Comparison, FaultSize, FaultSizes, StageLine


def audit_section(schedule: ScheduleAudit, sizes: Sizes | None) -> Audit:
    """Return what was found about the mechanism, as a report shows it."""
    return Audit(
        lines=tuple(
            AuditLine(
                attack=attack.name,
                claimed_epsilon=attack.claimed,
                lower_bound=attack.proved,
                confidence=attack.result.confidence,
                trials=attack.result.trials,
            )
            for attack in schedule.attacks
        ),
        comparisons=tuple(
            Comparison(
                name=comparison.name,
                event=comparison.event,
                observed=comparison.observed,
                expected=comparison.expected,
                violated=comparison.violated,
                confidence=comparison.confidence,
                trials=comparison.trials,
            )
            for comparison in schedule.comparisons
        ),
        stage=None
        if (stage := schedule.stage) is None
        else StageLine(claimed_epsilon=stage.claimed, exact_epsilon=stage.exact),
        sizes=None if sizes is None else fault_sizes(sizes),
        charge=None
        if (charge := schedule.charge) is None
        else ChargeLine(
            charged_epsilon=charge.charged_epsilon,
            released_epsilon=charge.released_epsilon,
            violated=charge.violated,
        ),
        sees=schedule.sees,
        does_not_see=schedule.does_not_see,
    )


def fault_sizes(sizes: Sizes) -> FaultSizes:
    """Return how small a fault would have been found, as a report shows it.

    Examples
    --------
    >>> fault_sizes(Sizes(rows=(), here=False))
    FaultSizes(faults=(), certainty=None, elsewhere=None)
    """
    return FaultSizes(
        faults=tuple(
            FaultSize(fault=row.fault_in_words, attack=row.attack, probability=row.probability, found=row.found)
            for row in sizes.rows
        ),
        certainty=min((row.certainty for row in sizes.rows), default=None),
        elsewhere=None if sizes.here or not sizes.rows else sizes.rows[0].setting_in_words,
    )


def size_tree(size: DetectableSize) -> dict[str, Any]:
    """Return one size as plain values, for ``audit.json``."""
    return {
        "fault": size.fault,
        "size": size.size,
        "found": size.found,
        "probability": size.probability,
        "certainty": size.certainty,
        "attack": size.attack,
        "measured_at": size.setting_in_words,
    }

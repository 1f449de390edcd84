"""What an audit found: its verdict, ``audit.json``, the section of a report, and how the two are published."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from typing import Any, TypeVar

from quorate.audit import Attack, ScheduleAudit, ShardAudit, Sizes, audit_schedule, audit_shards
from quorate.audit.detectable import DetectableSize
from quorate.findings import Finding, Outcome
from quorate.folder.folder import RunFolder
from quorate.folder.published import FACTS, publish_files
from quorate.report import (
    Audit,
    AuditLine,
    ChargeLine,
    Comparison,
    Facts,
    FaultSize,
    FaultSizes,
    StageLine,
    render_html,
    render_json,
    sight_sentences,
    size_sentences,
)
from quorate.report.facts import name_of

Line = TypeVar("Line", Comparison, ChargeLine)
FORMAT = 1
NOT_A_PROOF = "That is not a proof: another attack may find more."


@dataclass(frozen=True, kw_only=True, slots=True)
class RunAudit:
    """What the audit of a run found, of the mechanism (`schedule`) and of the teacher pipeline (`shards`, or why not).
    `sizes`: how small a fault would have been found, where that was measured. `seeded`: whether the run's own noise
    was. `seed`: of the audit. `beside`: what was looked at beside the mechanism. `ran`: the name of what attacked it.
    """

    schedule: ScheduleAudit
    sizes: Sizes | None = None
    delta: float
    shards: ShardAudit | None = None
    without_shards: str | None = None
    seeded: bool
    seed: int | None
    seconds: float
    beside: str = "Shards"
    ran: str = name_of(audit_schedule)

    @property
    def attacks(self) -> tuple[Attack, ...]:
        """Attacks on the mechanism, each with a bound on ε."""
        return self.schedule.attacks

    @property
    def confidence(self) -> float:
        """With which all bounds and comparisons hold together."""
        return self.schedule.confidence

    @property
    def violated(self) -> bool:
        """Whether the mechanism contradicts what was charged, or a unit moved more than one teacher."""
        return self.schedule.violated or (self.shards is not None and self.shards.violated)

    @property
    def verdict(self) -> str:
        """A few plain sentences."""
        sentences = []
        by_chance = (
            f"A correct mechanism looks like this in at most {100 * (1 - self.confidence):.3g} % of audits; audit "
            "again with more --runs and --confidence 0.999999, and if it stays, the guarantee does not hold."
        )
        if any(attack.violated for attack in self.attacks):
            sentences.append(f"VIOLATED: an attack on the mechanism proves more than was claimed. {by_chance}")
        elif any(comparison.violated for comparison in self.schedule.comparisons):
            sentences.append(
                "VIOLATED: the mechanism does not answer with the probabilities for which its price was proved. "
                f"{by_chance}"
            )
        if self.schedule.stage is not None and self.schedule.stage.violated:
            sentences.append("VIOLATED: one sparse-vector stage loses more than was charged for it, by an exact sum.")
        if self.schedule.charge is not None and self.schedule.charge.violated:
            sentences.append(self.schedule.charge.verdict)
        if self.shards is not None and self.shards.violated:
            sentences.append(f"VIOLATED: {self.shards.verdict.removeprefix('VIOLATED: ')}")
        if not sentences:
            sentences.append(
                f"No violation found, at confidence {100 * self.confidence:.10g} % for all bounds together. "
                f"{NOT_A_PROOF}"
            )
        if self.seeded:
            sentences.append("The run's own noise was seeded: it has no guarantee, whatever an audit finds.")
        return " ".join(sentences)

    @property
    def sight_sentences(self) -> tuple[str, ...]:
        """Which kinds of fault were looked for, and which were not, in sentences."""
        return sight_sentences(self.schedule.sees, self.schedule.does_not_see)

    @property
    def size_sentences(self) -> tuple[str, ...]:
        """How small a fault would have been found, in sentences."""
        return () if self.sizes is None else size_sentences(fault_sizes(self.sizes))

    @property
    def shards_in_words(self) -> str:
        """What became of the shard audit, in a sentence or two."""
        if self.shards is None:
            return self.without_shards or ""
        return self.shards.verdict

    def tree(self) -> dict[str, Any]:
        """Plain values, for ``audit.json``."""
        return {
            "format": FORMAT,
            "violated": self.violated,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "delta": self.delta,
            "attacks": [_attack_tree(attack) for attack in self.attacks],
            "comparisons": [asdict(fit) | {"violated": fit.violated} for fit in self.schedule.comparisons],
            "charge": None if (charge := self.schedule.charge) is None else asdict(_shown(ChargeLine, charge)),
            "sees": list(self.schedule.sees),
            "does_not_see": list(self.schedule.does_not_see),
            "sizes": None
            if self.sizes is None
            else {
                "measured_at_this_setting": self.sizes.here,
                "faults": [size_tree(size) for size in self.sizes.rows],
                "verdict": " ".join(self.size_sentences),
            },
            "stage": None if (stage := self.schedule.stage) is None else asdict(stage) | {"violated": stage.violated},
            "shards": None
            if self.shards is None
            else {
                "violated": self.shards.violated,
                "most_teachers_moved": self.shards.worst,
                "changes_tried": len(self.shards.probes),
                "rows": "public rows with made-up labels",
            },
            "shards_verdict": self.shards_in_words,
            "seeded_run": self.seeded,
            "seed": self.seed,
            "seconds": self.seconds,
            "version": version("quorate"),
        }


def _attack_tree(attack: Attack) -> dict[str, Any]:
    return {
        "attack": attack.name,
        "guessed_by": attack.result.attack,
        "claim": repr(attack.result.claimed),
        "claimed_epsilon": attack.claimed,
        "proved_epsilon": attack.proved,
        "violated": attack.violated,
        "confidence": attack.result.confidence,
        "trials": attack.result.trials,
        "seconds": attack.result.seconds,
    }


def with_audit(facts: Facts, audit: RunAudit) -> Facts:
    """Return the facts of a run with what its audit found, in place of an earlier one: a section, and two checks."""
    added = [
        Finding(
            code="audit",
            words="Do attacks prove no more than was claimed?",
            outcome=Outcome.FAILED if audit.schedule.violated else Outcome.PASSED,
            evidence=f"Measured on the run's own mechanism at its own noise. {NOT_A_PROOF}",
            ran=audit.ran,
        )
    ]
    if audit.shards is not None:
        added.append(
            Finding(
                code="shard audit",
                words=f"Does one changed {facts.setup.unit} change one teacher?",
                outcome=Outcome.FAILED if audit.shards.violated else Outcome.PASSED,
                evidence=f"Tried with the run's teacher and partition on public rows. {audit.shards.verdict}",
                ran=name_of(audit_shards),
            )
        )
    kept = [check for check in facts.checks if check.code not in {"audit", "shard audit"}]
    return replace(facts, audit=audit_section(audit.schedule, audit.sizes), checks=(*kept, *added))


def publish_audit(folder: RunFolder, facts: Facts, audit: RunAudit) -> Facts:
    """Write ``public/audit.json``, and the report and the facts with what was found; return those facts."""
    facts_ = with_audit(facts, audit)
    content = json.dumps({"run": facts.provenance.run, "ledger_head": facts.provenance.ledger_head, **audit.tree()},
                         ensure_ascii=False, indent=2, allow_nan=False)  # fmt: skip
    publish_files(
        folder,
        {
            "audit.json": (content + "\n").encode(),
            "report.html": render_html(facts_).encode(),
            FACTS: render_json(facts_).encode(),
        },
    )
    return facts_


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
        comparisons=tuple(_shown(Comparison, comparison) for comparison in schedule.comparisons),
        stage=None
        if (stage := schedule.stage) is None
        else StageLine(claimed_epsilon=stage.claimed, exact_epsilon=stage.exact),
        sizes=None if sizes is None else fault_sizes(sizes),
        charge=None if schedule.charge is None else _shown(ChargeLine, schedule.charge),
        sees=schedule.sees,
        does_not_see=schedule.does_not_see,
    )


def _shown(kind: type[Line], part: Any) -> Line:
    """Return what a report shows of a part of what was found: its fields of the same names."""
    return kind(**{field.name: getattr(part, field.name) for field in fields(kind)})


def fault_sizes(sizes: Sizes) -> FaultSizes:
    """Return how small a fault would have been found, as a report shows it."""
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

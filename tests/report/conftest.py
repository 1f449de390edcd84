"""Facts of a made-up run, whose figures are all different so that a test can tell them apart."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.accounting import Guarantee
from quorate.findings import Finding, Outcome
from quorate.report import (
    AgreementFacts,
    AnswerCounts,
    AttackCurve,
    Audit,
    AuditLine,
    BudgetRaise,
    Choice,
    ExPost,
    Facts,
    FaultSize,
    FaultSizes,
    Fitted,
    InternalFacts,
    Part,
    Provenance,
    QualityFacts,
    Score,
    Setup,
    Spending,
    StabilityFacts,
    TeacherFacts,
    Utility,
)

HEAD = "9f2c41d07be35a8866c1f0a2d94e7713b05fa6e8c2d13947ab60e5f18c7d2b3a"

CHECKS = (  # as long as those of a real run, so that the sheets of a printed report are counted on real words
    (
        "shards", "Does each patient belong to exactly one teacher?", "passed",
        ("All rows were looked at before any teacher was fitted: each is in one shard, the rows of each patient are in "
        "the same one, and its number is the keyed hash of its identity, modulo the number of teachers. So adding, "
        "removing or replacing one patient changes exactly one teacher."),
    ),
    (
        "classes", "Was the class list declared, and not read off the private labels?", "by construction",
        "The list is an argument, and a label outside it is refused. Where the owner has it from is not seen here.",
    ),
    (
        "preprocessing", "Did quorate fit nothing on the pooled private rows?", "passed",
        ("No step of teacher or student was fitted when it came. Each teacher fits its own on its own shard; an "
        "encoder, where there is one, is fitted on public rows."),
    ),
    (
        "outside", "Was nothing fitted on the private rows before quorate got them?", "not covered",
        ("Quorate sees the rows as they arrive. A step in a Pipeline around the classifier that was fitted on them (a "
        "scaler, an encoder, a selection of columns) would carry each row into every shard, and the guarantee would "
        "not cover it."),
    ),
    (
        "noise", "Is the noise drawn exactly, from the distribution that the price assumes?", "by construction",
        "Every noise is an integer from an exact sampler; there is no other way to draw it.",
    ),
    (
        "seed", "Does the noise come from the operating system, and from no given seed?", "passed",
        "The noise is that of the operating system: nobody can draw it again.",
    ),
    ("chain", "Is the ledger whole?", "passed", "All 7 entries were read again and every rule replayed."),
    ("audit", "Do attacks prove no more than was claimed?", "not run", "The release was not attacked."),
)  # fmt: skip


def made_up_check(code: str, question: str, outcome: str, evidence: str) -> Finding:
    """A check whose function, where one looked, is named after its code."""
    looked = outcome in ("passed", "failed")
    return Finding(
        code=code,
        words=question,
        outcome=Outcome(outcome),
        evidence=evidence,
        ran=f"quorate.checks.{code}" if looked else None,
        remedy="Put such steps into teacher= (a Pipeline), or fit them on public rows."
        if outcome == "not covered"
        else None,
    )


def made_up_facts(**changes: Any) -> Facts:
    facts = Facts(
        guarantee=Guarantee(
            epsilon=0.99871,
            delta=1e-5,
            unit="patient",
            neighbours="add, remove or replace one patient",
            mechanism="GaussianNoisyMax(sigma=45.7, form='binary'), 1,237 answers",
            accounting="exact Gaussian composition, quorate 0.1.0",
            caveats=("Timing, and the operator's access to the machine, are not covered",),
        ),
        setup=Setup(
            n_teachers=251,
            partition="hash",
            unit="patient",
            classes=("no", "readmitted"),
            n_public=4013,
            n_queries=1037,
            teacher="GradientBoostingClassifier",
            student="LogisticRegression",
            mechanism="GaussianNoisyMax",
            online_answers=200,
            n_records=20011,
            recipe=(
                "251 teachers: about 80 records each is enough for a boosted tree.",
                "1,037 queries: beyond that, more labels would be noisier and the student no better.",
            ),
            data_collection="Discharge letters of one hospital, 2019 to 2024.",
        ),
        spending=Spending(
            budget_epsilon=1.0,
            budget_delta=1e-5,
            spent_epsilon=0.99871,
            spent_delta=1e-5,
            left_epsilon=0.00129,
            left_delta=0.0,
            answers_left=183,
            parts=(
                Part(
                    purpose="label",
                    mechanism="GaussianNoisyMax",
                    reserved=1037,
                    asked=1037,
                    answered=1037,
                    share=0.8383,
                    sigma=45.71828,
                    form="binary",
                ),
                Part(
                    purpose="online answer",
                    mechanism="GaussianNoisyMax",
                    reserved=200,
                    asked=17,
                    answered=17,
                    share=0.1617,
                    sigma=45.71828,
                    form="binary",
                ),
            ),
        ),
        answers=AnswerCounts(asked=1037, per_class=(811, 226)),
        provenance=Provenance(
            run="Readmission within 30 days",
            started="2026-08-21T10:04:09Z",
            command="quorate run",
            seeded=False,
            noise="operating system's entropy, exact integer samplers",
            ledger_head=HEAD,
            ledger_entries=7,
            versions=(("quorate", "0.1.0"), ("numpy", "2.4.1"), ("scikit-learn", "1.9.1")),
            hashes=(("student", "41c7aa02" * 8), ("labels", "77d0be19" * 8)),
            public_digests=(("public pool", "c0ffee12" * 8),),
            registry=(("Released by", "St. Elsewhere, data office"), ("Purpose", "planning of follow-up visits")),
        ),
        utility=Utility(
            student=Score(
                n_rows=2003, accuracy=0.8397, balanced_accuracy=0.7613, recall=(0.912, 0.6106), class_rows=(1523, 480)
            ),
            ensemble=Score(n_rows=1037, accuracy=0.8514, balanced_accuracy=0.7722, recall=(0.9231, 0.6213)),
            non_private=Score(n_rows=2003, accuracy=0.8632, balanced_accuracy=0.7941, recall=(0.9317, 0.6565)),
        ),
        attacker=AttackCurve(
            false_alarms=(0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 1.0), misses=(1.0, 0.973, 0.9071, 0.66, 0.38, 0.16, 0.0),
            told_apart=557, allowed=732,
        ),
        choices=(
            Choice(epsilon=0.5, sigma=91.3, n_answers=1031, expected_accuracy=0.8112),
            Choice(epsilon=1.0, sigma=45.72, n_answers=1037, expected_accuracy=0.8391, chosen=True),
            Choice(epsilon=2.0, sigma=23.91, n_answers=1041, expected_accuracy=0.8472),
            Choice(epsilon=4.0, sigma=12.84, n_answers=1043, expected_accuracy=0.8503),
            Choice(epsilon=8.0, sigma=7.13, n_answers=1049, expected_accuracy=0.8511),
        ),
        checks=tuple(made_up_check(*check) for check in CHECKS),
        fitted=Fitted(name="StandardScaler → LogisticRegression"),
        audit=Audit(
            lines=(
                AuditLine(
                    attack="one vote moved at the margin", claimed_epsilon=1.0, lower_bound=0.7312, confidence=0.95,
                    trials=20000,
                ),
                AuditLine(
                    attack="one patient's rows replaced", claimed_epsilon=1.0, lower_bound=0.2241, confidence=0.95,
                    trials=2000,
                ),
            ),
            sizes=FaultSizes(
                faults=(
                    FaultSize(fault="noise smaller by 13 %", attack="one vote moved at the margin", probability=0.9),
                    FaultSize(
                        fault="no noise on any answer", attack="one patient's rows replaced", probability=0.91,
                        found=False,
                    ),
                ),
                certainty=0.97,
                elsewhere="53 answers; 70,000 runs",
            ),
        ),
    )  # fmt: skip
    return replace(facts, **changes)


def many_classes(n_classes: int, *, name: str = "class") -> Facts:
    facts = made_up_facts()
    recall = tuple((c % 97) / 97 if c % 11 else None for c in range(n_classes))
    score = Score(n_rows=2003, accuracy=0.8397, balanced_accuracy=0.7613, recall=recall)
    return replace(
        facts,
        setup=replace(facts.setup, classes=tuple(f"{name} {c}" for c in range(n_classes)), n_queries=10 * n_classes),
        answers=AnswerCounts(
            asked=10 * n_classes, per_class=tuple(c % 10 for c in range(n_classes)), declined=n_classes
        ),
        utility=Utility(student=score, ensemble=score, non_private=score),
    )


def seeded(facts: Facts) -> Facts:
    checks = tuple(replace(check, outcome="failed") if check.code == "seed" else check for check in facts.checks)
    provenance = replace(facts.provenance, seeded=True, noise="a given seed")
    return replace(facts, provenance=provenance, checks=checks)


def with_raises(facts: Facts) -> Facts:
    raises = (
        BudgetRaise(time="2026-03-01T09:00:00Z", epsilon=0.75, delta=1e-6, reason="approved by the board"),
        BudgetRaise(time="2026-05-07T09:00:00Z", epsilon=1.0, delta=1e-5, reason="second year of the study"),
    )
    return replace(facts, spending=replace(facts.spending, raises=raises))


def with_odometer(facts: Facts) -> Facts:
    ex_post = ExPost(epsilon=0.8123, delta=1e-5, meaning="The loss so far, valid whenever you choose to stop.")
    return replace(facts, spending=replace(facts.spending, ex_post=ex_post))


def planted_internal_facts() -> InternalFacts:
    return InternalFacts(
        margins=((0, 70707), (31, 80808), (239, 90909)),
        teachers=tuple(
            TeacherFacts(index=i, n_records=30303 + i, status="planted-state", accuracy=0.5151) for i in range(251)
        ),
        high_margin=((0.0, 0.0303), (0.25, 0.51), (0.5, 1.0)),
        agreement=AgreementFacts(plurality=0.98765, correlation=0.4321, cumulated=((0.1, 0.1), (60.6, 50.5))),
        stability=StabilityFacts(mean=0.06162, standard_error=0.0012, n_records=919, exchanges=17),
        quality=QualityFacts(beta=0.07, weak=(0.01, 0.2, 0.5), strong=(0.02, 0.4, 1.0)),
        notes=("planted-note",),
    )


@pytest.fixture(scope="session")
def facts():
    return made_up_facts()


@pytest.fixture(scope="session")
def runs():
    """How to make facts of other runs."""
    return SimpleNamespace(
        made_up=made_up_facts,
        many_classes=many_classes,
        seeded=seeded,
        with_odometer=with_odometer,
        with_raises=with_raises,
        internal=planted_internal_facts,
    )

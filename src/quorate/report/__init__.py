r"""The report: from facts that may be published to a page, a terminal table, a model card and JSON.

Here belongs how facts are said. Gathering them belongs in :mod:`quorate.run`; nothing here computes a price or reads a
table. Begin with :mod:`~quorate.report.facts`, then :mod:`~quorate.report.page`.

Examples
--------
>>> from quorate.accounting import Guarantee
>>> from quorate.report import AnswerCounts, Facts, Outputs, Provenance, Setup, Spending
>>> from quorate.report import model_card, render_html, render_json, render_text
>>> facts = Facts(
...     guarantee=Guarantee(epsilon=1.0, delta=1e-5, unit="patient", neighbours="add, remove or replace one patient",
...                         mechanism="100 noisy votes, sigma 15", accounting="exact Gaussian composition"),
...     setup=Setup(n_teachers=250, partition="hash", unit="patient", classes=["no", "yes"], n_public=4000,
...                 n_queries=100, teacher="GradientBoostingClassifier", student="LogisticRegression",
...                 mechanism="GaussianNoisyMax"),
...     spending=Spending(budget_epsilon=2, budget_delta=2e-5, spent_epsilon=1, spent_delta=1e-5, left_epsilon=1,
...                       left_delta=1e-5, answers_left=12),
...     answers=AnswerCounts(asked=100, per_class=[80, 20]),
...     checks=[dict(code="shards", question="Does each patient belong to one teacher?", outcome="passed",
...                   evidence="One vote can change.", ran="quorate.ensemble.partition.check_partition")],
...     provenance=Provenance(run="ward 7", started="2026-08-21T10:00:00Z", command="quorate run",
...                           seeded=False, noise="operating system", ledger_head="9f2c", ledger_entries=3))
>>> print(render_text(facts, width=72, outputs=Outputs(report="run/public/report.html")), end="")
ward 7 · done
────────────────────────────────────────────────────────────────────────
teachers    250 · one patient → exactly one teacher; checked
queries     100 asked · 100 answered · 0 declined · 0 never asked
            no  80 ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪
            yes 20 ▪▪▪▪▪
guarantee   ε ≤ 1, δ ≤ 1e-5 for any one patient
spent       ε 1 of 2, δ 1e-5 of 2e-5
left        12 answers, already charged; ε 1 of 2, δ 1e-5 of 2e-5
report      run/public/report.html
────────────────────────────────────────────────────────────────────────
>>> render_html(facts).startswith("<!doctype html>"), render_json(facts)[:16], "# ward 7" in model_card(facts)
(True, '{\n  "format": 2,', True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.accounting import worlds_told_apart
from quorate.deferred import on_demand

if TYPE_CHECKING:
    from quorate.report.card import model_card
    from quorate.report.chart import Axis, Chart
    from quorate.report.facts import Facts, Provenance, Rounds, Setup, render_json
    from quorate.report.findings import (
        AttackCurve,
        Audit,
        AuditLine,
        ChargeLine,
        Choice,
        ColumnImportance,
        Comparison,
        FaultSize,
        FaultSizes,
        Fitted,
        StageLine,
    )
    from quorate.report.internal import AgreementFacts, InternalFacts, QualityFacts, StabilityFacts, TeacherFacts
    from quorate.report.measurement import sight_sentences, size_sentences
    from quorate.report.page import render_html
    from quorate.report.spending import AnswerCounts, BudgetRaise, ExPost, Part, Spending
    from quorate.report.student_file import StudentFile
    from quorate.report.text import Outputs, render_text
    from quorate.report.utility import ExpectedScore, Score, Utility

__all__ = [
    "Facts",
    "Setup",
    "Rounds",
    "Spending",
    "BudgetRaise",
    "Part",
    "ExPost",
    "AnswerCounts",
    "Utility",
    "Score",
    "Choice",
    "Fitted",
    "ColumnImportance",
    "StudentFile",
    "AttackCurve",
    "Audit",
    "AuditLine",
    "ChargeLine",
    "Comparison",
    "ExpectedScore",
    "StageLine",
    "FaultSize",
    "FaultSizes",
    "Provenance",
    "InternalFacts",
    "TeacherFacts",
    "AgreementFacts",
    "StabilityFacts",
    "QualityFacts",
    "Outputs",
    "Chart",
    "Axis",
    "render_text",
    "render_html",
    "render_json",
    "model_card",
    "sight_sentences",
    "size_sentences",
    "worlds_told_apart",
]

__getattr__ = on_demand(__name__)

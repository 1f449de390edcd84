"""A method that nobody knows but one row of a table: one noisy sum of class means, from `init` to `predict`."""

from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from tests.folder.conftest import charges, edit

from quorate import plugins
from quorate.accounting import Neighbouring, epsilon
from quorate.audit import audit_schedule
from quorate.data import n_rows
from quorate.data.unit_ids import one_row_of_each
from quorate.errors import InvalidParameter
from quorate.findings import Finding, Outcome
from quorate.folder.audits import audit_run, charged_event
from quorate.folder.cell_run import CellRun
from quorate.folder.settings import arguments_of, read_settings
from quorate.folder.status import read_status
from quorate.ledger import GuaranteeScope
from quorate.mechanisms import NoisySum, Schedule
from quorate.release import guarantee_of
from quorate.release.block import release_once
from quorate.report import AnswerCounts, Facts
from quorate.report.method import ByRounds
from quorate.report.spending import part_of
from quorate.run.cell_task import CellRows, CellTask
from quorate.run.checks import checks_of_cells, facts_of_cells
from quorate.run.facts import Result
from quorate.run.method import Method
from quorate.run.method_config import MethodConfig
from quorate.run.public_facts import unit_of
from quorate.run.schema import Schema, check_pool
from quorate.run.usable_rows import PrivateTable
from quorate.types import Secret

PURPOSE = "sum of class means"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeansConfig(MethodConfig):
    classes: tuple


@dataclass(frozen=True, kw_only=True)
class MeansTask(CellTask):
    answers: ClassVar[str] = PURPOSE
    mechanism: NoisySum
    rows: Secret = field(repr=False)  # one of each unit
    n_units: int

    n_declared = property(lambda self: self.n_units)
    neighbouring = property(lambda self: Neighbouring.of("replace", self.unit))
    event = property(lambda self: self.mechanism.event)
    scope = property(lambda self: GuaranteeScope.about(self.neighbouring, caveats=()))

    def charges(self):
        parts = (self.fingerprint, self.unit, self.classes, self.public_digest, repr(self.mechanism))
        key = f"class means {blake2b(repr(parts).encode(), digest_size=16).hexdigest()}"
        return self.attempts(key, {PURPOSE: 1})

    def scaled(self, numbers):
        """Numbers from 0 to 1, by the least and the largest of the pool."""
        pool = self.schema.numbers(self.schema.pool)
        low, width = pool.min(axis=0), np.ptp(pool, axis=0) + (np.ptp(pool, axis=0) == 0)
        return low, width, np.clip((numbers - low) / width, 0, 1)

    def sums(self):
        private, total = self.private.reveal(), None
        one_each = np.isin(np.arange(len(private.codes)), self.rows.reveal())
        for at, numbers in private.blocks():
            steps = np.floor(self.mechanism.grid / (1 + numbers.shape[1]) * self.scaled(numbers)[2])
            steps = np.column_stack([np.full(len(at), self.mechanism.grid // (1 + numbers.shape[1])), steps])
            each = [steps[one_each[at] & (private.codes[at] == c)].sum(axis=0) for c in range(len(self.classes))]
            total = np.concatenate(each) + (0 if total is None else total)
        return Secret(total.astype(np.int64))


def prepare(config, X, y, *, public, groups, fingerprint_key, noise, key=None, terms=None):
    pool, unit = check_pool(public), unit_of(config.unit, grouped=groups is not None)
    schema, key = Schema.of(pool.rows(), given=pool.given), fingerprint_key if key is None else key
    how = {"asked": config, "classes": config.classes, "budget": (config.epsilon, config.delta), "unit": unit}
    rows = CellRows.read(PrivateTable.of(schema, X), y, groups, **how, n_records=config.n_records, key=key)
    budget = Schedule(answers=1, epsilon=config.epsilon, delta=config.delta)
    mechanism = NoisySum.calibrated({"grid": 1000, "form": "shares", "noise": "gaussian"}, budget)
    return MeansTask(
        schema=schema, private=Secret(rows.private), records=rows.records, classes=config.classes, unit=unit,
        grouped=groups is not None, n_was_read=config.n_records is None, epsilon=config.epsilon, delta=config.delta,
        fingerprint=rows.fingerprint(fingerprint_key), noise=noise, mechanism=mechanism,
        rows=Secret(one_row_of_each(rows.slots, key)), n_units=rows.n_units,
    )  # fmt: skip


def model_of(task, answer):
    """The nearest noisy class mean, as a linear model."""
    low, width, _ = task.scaled(task.schema.numbers(task.schema.pool[:1]))
    numbers = np.asarray(answer, dtype=float).reshape(len(task.classes), -1)
    means = numbers[:, 1:] / np.maximum(numbers[:, :1], 1)
    linear = LogisticRegression()
    linear.classes_ = np.asarray(task.classes)
    weights, offsets = 2 * means / width, -(means**2).sum(axis=1) - (2 * means * low / width).sum(axis=1)
    linear.coef_, linear.intercept_ = np.diff(weights, axis=0), np.diff(offsets)
    return Pipeline([("encoder", FrozenEstimator(task.schema.published_encoder)), ("linear", linear)])


def go(task, ledger, *, stages=None, watch=None):
    ledger.bind(task.fingerprint)
    charge = task.charge_on(ledger)
    reservation = charge.reserve(ledger)
    if reservation.remaining(PURPOSE):
        release_once(task.sums(), task.mechanism, reservation, task.noise, purpose=PURPOSE)
    [block] = reservation.blocks(PURPOSE)
    return Result(task=task, model=model_of(task, block.answers[0]), charge=charge, reservation=reservation)


def check(task):
    price = {"epsilon": task.epsilon, "delta": task.delta, "price": epsilon(task.event, task.delta)}
    found = {"method": "means", **price, "unit": task.unit, "classes": list(task.classes), "seeded": task.noise.seeded}
    return found, [("learn", "the mean of each class"), ("release", "one noisy sum; every prediction is free")]


def nothing(task, **charged):
    width = task.schema.numbers(task.schema.pool[:1]).shape[1]
    return Result(task=task, model=model_of(task, np.zeros(len(task.classes) * (1 + width))), **charged)


def promised(task, ledger):
    words = "one noisy sum of class means"
    return guarantee_of(ledger, task.event, delta=task.delta, mechanism=words, seeded=task.noise.seeded)


def facts(task, result, ledger, metadata):
    setup = {"n_teachers": 0, "partition": "none", "n_queries": 0, "teacher": "none", "mechanism": "NoisySum"}
    built = {"outcome": Outcome.BY_CONSTRUCTION}
    learning = Finding(code="contributions", words="Does each unit add one row?", evidence="One is chosen.", **built)
    fitted = Finding(code="preprocessing", words="Was nothing fitted?", evidence="Ends are of public rows.", **built)
    return facts_of_cells(
        task, result, ledger, metadata, promised=promised(task, ledger), n_units=task.n_units,
        setup={**setup, "n_public": n_rows(task.schema.pool)},
        parts=[part_of(result.reservation, PURPOSE, mechanism="NoisySum", sigma=2.0, reserved=1, share=1.0)],
        answers=AnswerCounts(asked=0, per_class=(0,) * len(task.classes)), method="means",
        checks=checks_of_cells(task, ledger, metadata, learning=learning, preprocessing=fitted),
    )  # fmt: skip


MEANS = Method(
    prepare=prepare, check=check, cautions=lambda task, **how: (), charge=MeansTask.charge_on, nothing=nothing, go=go,
    promised=promised, facts=facts,
)  # fmt: skip


class MeansWords(ByRounds):
    def first_figure(self, facts):
        return "means", f"{len(facts.setup.classes)}"

    last_figure = first_figure

    def where_a_unit_goes(self, facts):
        return "Contribution", "one row of each unit is added to one sum"

    def spending(self, facts):
        return ("One noisy sum of class means.",)

    def model(self, facts):
        return "The model gives a row the class whose noisy mean is nearest."

    card = counted = model

    def text_rows(self, facts, room):
        return [("means", "one noisy sum")]


@dataclass(frozen=True, slots=True)
class MeansRun(CellRun):
    method: ClassVar = MEANS
    nothing_to_ask: ClassVar = "there is nothing to ask: the mean of a class has no teachers"
    no_internal: ClassVar = "there is no internal edition of this report"
    why_not_rehearsed = "not rehearsed: nobody has tried"

    def expected(self):
        raise InvalidParameter("--rehearse is for other methods")

    @staticmethod
    def _task(read):
        return read.prepared(MEANS, MeansConfig(**arguments_of(read.settings, MeansConfig)))


@audit_run.register
def _(run: MeansRun, options):
    begun, attack = options.clock(), partial(audit_schedule, run.task.mechanism, charged_event(run))
    schedule = options.attack(attack, n_teachers=run.task.n_units, n_classes=len(run.task.classes), delta=1e-5)
    return options.found(schedule, begun=begun, delta=1e-5, without_shards="There are none.", seeded=False)


@pytest.fixture
def means(monkeypatch):
    """The row that a method of quorate's own has in the table."""
    here = MeansRun.__module__
    method = plugins.KnownMethod("means of classes", PURPOSE, f"{here}:MeansRun.read", f"{here}:MeansWords")
    monkeypatch.setitem(plugins.METHODS, "means", method)


@pytest.fixture
def root(means, make_run, cli, tmp_path):
    """What `quorate init` wrote, by this method."""
    made = make_run("tables")
    tables = [part for name in ("private", "public", "evaluation") for part in (f"--{name}", made / f"{name}.csv")]
    given = ("--label", "ill", "--classes", "no,yes", "--n-records", 400, "--epsilon", 4, "--delta", 1e-5)
    cli.ok("init", root := tmp_path / "run", "--from", *tables[1:], *given, "--yes")
    edit(root, 'by = "auto"', 'by = "means"')
    return root


def test_one_row_of_a_table_makes_a_method_that_is_checked_and_takes_no_key_of_another(root, cli):
    assert "one noisy sum" in cli.ok("check", root)
    assert read_status(root).stages == {"answers": False, "model and report": False}
    for section, wrong in (("[student]", 'shares = "kernel"'), ("[method]", "rounds = 3")):
        edit(root, f"\n{section}", f"\n{section}\n{wrong}")
        assert 'by = "means" has none' in cli.refused(2, "check", root)
        edit(root, f"{section}\n{wrong}", section)


@pytest.mark.heavy
def test_every_command_knows_such_a_method(root, cli, tmp_path):
    assert "accuracy" in cli.ok("run", root)
    assert read_status(root).stages == {"answers": True, "model and report": True}
    assert "finished" in cli.ok("status", root)
    cli.ok("run", root)
    assert charges(root) == 1
    published = Facts.from_json((root / "public" / "facts.json").read_text())
    assert (published.by, published.rounds) == ("means", None)
    assert published.utility.student.accuracy > 0.6
    assert 3.9 < published.guarantee.epsilon <= 4.0
    cli.ok("report", root)
    assert "nearest" in (root / "public" / "report.html").read_text()
    assert "No violation found" in cli.ok("audit", root, "--runs", "2000")
    cli.ok("plan", root)
    cli.ok("export", root, "--to", tmp_path / "out")
    public, predicted = tmp_path / "tables" / "public.csv", tmp_path / "predicted.csv"
    cli.ok("predict", root, public, "--out", predicted)
    assert len(pl.read_csv(predicted)) == 150
    assert "nothing to ask" in cli.refused(4, "ask", root, public)
    edit(root, 'by = "means"', 'by = "auto"')
    assert read_settings(root / "quorate.toml").chosen == "means"  # what was begun by it goes on by it

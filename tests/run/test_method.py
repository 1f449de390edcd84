"""What a folder and an estimator do with a method is the same, whichever it is."""

import pytest
from tests.estimators.small_task import POOL, SETTINGS, X, Y

from quorate import PublicPool
from quorate.direct.config import DirectConfig
from quorate.direct.method import ROUNDS
from quorate.ledger import Budget, Ledger
from quorate.noise import SeededNoise
from quorate.run.facts import RunMetadata
from quorate.run.method import check_of
from quorate.types import Secret
from quorate.voting.config import RunConfig
from quorate.voting.method import VOTES

KEY = Secret(bytes(32))
TABLES = {"public": PublicPool(POOL), "groups": None}
METADATA = RunMetadata(title="a ward", command="fit", started="2026-01-01T00:00:00+00:00")


def votes_task():
    config = RunConfig(**SETTINGS, n_records=len(Y))
    return VOTES, VOTES.prepare(config, X, Y, **TABLES, key=KEY, fingerprint_key=KEY, noise=SeededNoise(1))


def rounds_task():
    declared = {name: SETTINGS[name] for name in ("classes", "epsilon", "delta")}
    config = DirectConfig(**declared, n_records=len(Y))
    return ROUNDS, ROUNDS.prepare(config, X, Y, **TABLES, fingerprint_key=KEY, noise=SeededNoise(1))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("made", [votes_task, rounds_task], ids=["votes", "direct"])
def test_a_method_checks_drafts_charges_once_and_tells_what_it_did(made):
    method, task = made()
    checked = check_of(method, task, notes=(), cautions=())
    assert checked.found["epsilon"] == task.facts.epsilon if method is VOTES else task.epsilon
    with Ledger(budget=Budget(4.0, 1e-5)) as ledger:
        charge = method.charge(task, ledger)
        drafted, _ = method.draft(task, ledger.budget, METADATA)
        assert charge.find(ledger) is None, "neither a check nor a draft charges"
        charge.check_affordable(ledger)
        result = method.go(task, ledger)
        assert [each.key for each in ledger.reservations()] == [charge.key]
        assert method.go(task, ledger).model is not None
        assert len(ledger.reservations()) == 1, "the same work is charged once"
        facts = method.facts(result.task, result, ledger, METADATA)
    assert facts.spending.run_epsilon == drafted.spending.run_epsilon
    assert facts.guarantee.epsilon == facts.spending.spent_epsilon <= 4.0
    assert result.model.predict(POOL[:3]).shape == (3,)

"""The pure rules against a naive model that keeps nothing but lists."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from quorate.errors import (
    BudgetExhausted,
    InvalidParameter,
    LedgerMismatch,
    PreconditionFailed,
    QuorateError,
    QuotaExhausted,
)
from quorate.ledger.budget import Budget, BudgetUnits
from quorate.ledger.chain import extend, verify
from quorate.ledger.entries import (
    BudgetRaised,
    Closed,
    Content,
    Drawn,
    Opened,
    Part,
    QuotaSet,
    Reserved,
    SameRelease,
    Started,
)
from quorate.ledger.fields import Json
from quorate.ledger.rules import admit_answers, admit_binding, admit_draw, admit_reservation, apply
from quorate.ledger.state import LedgerState

TIME = "2026-01-01T00:00:00.000000Z"
STORE = Json.of({"store": "none"})
few_keys = st.sampled_from(["k1", "k2", "k3"])
clients = st.sampled_from(["ann", "bob"])


class NaiveModel:
    """What a ledger should do, in the plainest words, with exact fractions."""

    def __init__(self) -> None:
        self.cap, self.session, self.closed = Fraction(1), 1, False
        self.fingerprints: list[str] = []
        self.reservations: list[dict] = []
        self.blocks: list[dict] = []
        self.requests: dict = {}
        self.quotas: dict[str, int] = {}
        self.given: dict[str, int] = {"ann": 0, "bob": 0}

    def over_quota(self, client: str, count: int) -> bool:
        return client in self.quotas and self.given[client] + count > self.quotas[client]

    @property
    def spent(self) -> Fraction:
        return sum((one["epsilon"] for one in self.reservations), Fraction(0))


class LedgerMachine(RuleBasedStateMachine):
    reservations = Bundle("reservations")
    blocks = Bundle("blocks")

    def __init__(self) -> None:
        super().__init__()
        self.model, self.state, self.lines, self.session = NaiveModel(), LedgerState(), [], None

    def write(self, content: Content) -> int:
        session = None if isinstance(content, Started) else self.session
        [entry] = extend(self.state.head, [content], time=TIME, session=session)
        apply(self.state, entry)
        self.session = entry.session
        self.lines.append(entry.to_json())
        return entry.sequence

    def attempt(self, decide, expected: type[QuorateError] | None) -> int | None:
        """Do as the shell does; the outcome must be the model's, and a refusal must change nothing."""

        def act() -> int:
            decided = decide()
            return self.write(decided) if isinstance(decided, Content) else decided

        if expected is None:
            return act()
        before = self.state.copy()
        with pytest.raises(expected):
            act()
        assert self.state == before
        return None

    @initialize()
    def open(self) -> None:
        budget = Budget(1.0, 1e-5)
        self.write(Opened(budget=budget, limit=budget.limit, ledger="0" * 32, store=STORE))

    @rule(target=reservations, tenths=st.integers(1, 4), count=st.integers(0, 6), key=few_keys, client=clients)
    def reserve(self, tenths, count, key, client):
        model, body = self.model, ("reserved", tenths, count)
        known = model.requests.get((client, key))
        expected: type[QuorateError] | None = None
        if known is not None:
            expected = None if known["body"] == body else PreconditionFailed
        elif model.closed:
            expected = PreconditionFailed
        elif model.spent + Fraction(tenths, 10) > model.cap:
            expected = BudgetExhausted
        content = Reserved(
            event=Json.of({"tenths": tenths}),
            amounts=BudgetUnits(epsilon_e9=tenths * 10**8),
            purposes={"label": count},
            client=client,
            key=key,
        )
        sequence = self.attempt(lambda: admit_reservation(self.state, content, stated=False), expected)
        if sequence is not None and known is None:
            one = {"sequence": sequence, "epsilon": Fraction(tenths, 10), "count": count, "drawn": 0}
            model.reservations.append(one)
            model.requests[client, key] = {"body": body, "reservation": one, "blocks": []}
        if sequence is not None and known is not None:
            assert sequence == known["reservation"]["sequence"]
        return sequence

    @rule(target=blocks, which=reservations, count=st.integers(1, 4), key=st.none() | few_keys, client=clients)
    def draw(self, which, count, key, client):
        model = self.model
        reservation = next((one for one in model.reservations if one["sequence"] == which), None)
        if reservation is None:  # the reservation was refused
            return None
        body, known = ("drawn", which, count), model.requests.get((client, key)) if key else None
        answered = None
        expected: type[QuorateError] | None = None
        if known is not None and known["body"] != body:
            expected = PreconditionFailed
        elif known is not None and (stored := [block for block in known["blocks"] if block["answers"] is not None]):
            answered = stored[0]
        elif reservation["drawn"] + count > reservation["count"]:
            expected = BudgetExhausted
        elif model.over_quota(client, count):
            expected = QuotaExhausted
        content = Drawn(reservation=which, purpose="label", first=0, count=count, client=client, key=key)
        sequence = self.attempt(lambda: admit_draw(self.state, content), expected)
        if answered is not None:
            assert sequence == answered["sequence"]
        elif sequence is not None:
            block = {"sequence": sequence, "count": count, "session": model.session, "answers": None}
            assert self.state.blocks[sequence].drawn.first == reservation["drawn"]
            reservation["drawn"] += count
            model.given[client] += count
            model.blocks.append(block)
            if key:
                model.requests.setdefault((client, key), {"body": body, "blocks": []})["blocks"].append(block)
        return sequence

    @rule(target=blocks, which=reservations, counts=st.tuples(st.integers(1, 3), st.integers(1, 3)), key=few_keys)
    def draw_together(self, which, counts, key):
        """Ann and Bob share a block; Ann's part has a key."""
        model = self.model
        reservation = next((one for one in model.reservations if one["sequence"] == which), None)
        if reservation is None:
            return None
        body, known = ("part", which, counts[0]), model.requests.get(("ann", key))
        expected: type[QuorateError] | None = None
        if reservation["drawn"] + sum(counts) > reservation["count"]:
            expected = BudgetExhausted
        elif known is not None and (
            known["body"] != body or any(block["answers"] is not None for block in known["blocks"])
        ):
            expected = PreconditionFailed
        elif model.over_quota("ann", counts[0]) or model.over_quota("bob", counts[1]):
            expected = QuotaExhausted
        parts = (Part(client="ann", count=counts[0], key=key), Part(client="bob", count=counts[1]))
        content = Drawn(reservation=which, purpose="label", first=0, count=sum(counts), client="local", parts=parts)
        sequence = self.attempt(lambda: admit_draw(self.state, content), expected)
        if sequence is not None:
            block = {"sequence": sequence, "count": sum(counts), "session": model.session, "answers": None}
            reservation["drawn"] += sum(counts)
            model.given["ann"] += counts[0]
            model.given["bob"] += counts[1]
            model.blocks.append(block)
            model.requests.setdefault(("ann", key), {"body": body, "blocks": []})["blocks"].append(block)
        return sequence

    @rule(client=clients, quota=st.none() | st.integers(0, 12))
    def set_quota(self, client, quota):
        same = self.model.quotas.get(client) == quota
        content = QuotaSet(client=client, quota=quota, reason="r")
        self.attempt(lambda: content, PreconditionFailed if same else None)
        if not same:
            self.model.quotas.pop(client, None)
            if quota is not None:
                self.model.quotas[client] = quota

    @rule(which=blocks, letter=st.integers(0, 1), extra=st.sampled_from([0, 0, 0, 1]))
    def store(self, which, letter, extra):
        block = next((one for one in self.model.blocks if one["sequence"] == which), None)
        if block is None:
            return
        answers = [letter] * (block["count"] + extra)
        expected: type[QuorateError] | None = None
        if block["answers"] is not None:
            expected = None if block["answers"] == answers else PreconditionFailed
        elif block["session"] != self.model.session:
            expected = PreconditionFailed
        elif extra:
            expected = InvalidParameter
        self.attempt(lambda: admit_answers(self.state, which, Json.of(answers)), expected)
        if expected is None:
            block["answers"] = answers

    @rule(fingerprint=st.sampled_from("abc"))
    def bind(self, fingerprint):
        known = self.model.fingerprints
        expected = LedgerMismatch if known and fingerprint not in known else None
        self.attempt(lambda: admit_binding(self.state, fingerprint), expected)
        if not known:
            known.append(fingerprint)

    @rule(fingerprint=st.sampled_from("abc"))
    def same_release(self, fingerprint):
        known = self.model.fingerprints
        refused = self.model.closed or not known or fingerprint in known
        self.attempt(lambda: SameRelease(fingerprint=fingerprint, reason="r"), PreconditionFailed if refused else None)
        if not refused:
            known.append(fingerprint)

    @rule(tenths=st.integers(5, 20))
    def raise_budget(self, tenths):
        budget = Budget(tenths / 10, 1e-5)
        expected: type[QuorateError] | None = None
        if self.model.closed:
            expected = PreconditionFailed
        elif Fraction(tenths, 10) <= self.model.cap:
            expected = InvalidParameter
        self.attempt(lambda: BudgetRaised(budget=budget, limit=budget.limit, reason="r"), expected)
        if expected is None:
            self.model.cap = Fraction(tenths, 10)

    @rule()
    def restart(self):
        self.model.session = self.write(Started(store=STORE))

    @rule(sure=st.sampled_from([False] * 9 + [True]))
    def close_release(self, sure):
        if sure:
            self.attempt(lambda: Closed(reason="r"), PreconditionFailed if self.model.closed else None)
            self.model.closed = True

    @rule(lost=consumes(blocks))
    def forget(self, lost):
        """A client forgets a block: nothing changes."""

    @invariant()
    def the_sums_are_the_models_and_within_the_cap(self):
        if self.state.budget is None:
            return
        assert Fraction(self.state.spent.epsilon_e9, 10**9) == self.model.spent <= self.model.cap
        for one in self.model.reservations:
            left = self.state.reservations[one["sequence"]].remaining("label")
            assert left == one["count"] - one["drawn"] >= 0
        assert self.state.quotas == self.model.quotas
        assert all(self.state.drawn_by.get(client, 0) == given for client, given in self.model.given.items())
        for block in self.model.blocks:
            answers = self.state.blocks[block["sequence"]].answers
            assert (None if answers is None else answers.value) == block["answers"]

    def teardown(self):
        """Replayed from its lines, the chain gives the same state."""
        assert verify(self.lines) == self.state


TestLedgerMachine = pytest.mark.heavy(LedgerMachine.TestCase)
TestLedgerMachine.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)

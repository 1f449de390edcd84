"""Events: what their fields take, what is equal, and a JSON that never changes."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from tests.accounting.slow_prices import events

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GridGaussian,
    Parallel,
    PureDP,
    Repeated,
    from_json,
    to_json,
)
from quorate.accounting.event import KINDS
from quorate.errors import InvalidParameter

BAD_NUMBERS = [float("nan"), float("inf"), -float("inf"), "1", True, np.True_, None, 1 + 1j, 10**400, [1.0]]


REFUSED = {
    "must be a number > 0": [
        (build, bad)
        for kind in (Gaussian, DiscreteGaussian, DiscreteLaplace)
        for build in (lambda bad, kind=kind: kind(bad, 1.0), lambda bad, kind=kind: kind(1.0, bad))
        for bad in (*BAD_NUMBERS, 0, -1, 0.0)
    ],
    "sigma must be a number >= 1024": [
        (lambda bad: GridGaussian(bad, 1.0, 1), bad) for bad in (2.0**10 - 1, float("nan"))
    ],
    "l2_sensitivity must be": [(lambda bad: GridGaussian(2.0**10, bad, 1), 0.0)],
    "numbers must be": [(lambda bad: GridGaussian(2.0**10, 1.0, bad), 0)],
    "epsilon must be": [
        (build, bad) for build in (PureDP, lambda bad: ApproxDP(bad, 0.1)) for bad in (*BAD_NUMBERS, -1e-300)
    ],
    "delta must be": [(lambda bad: ApproxDP(1.0, bad), bad) for bad in (*BAD_NUMBERS, -1e-300, 1.0000001)],
    "times must be a whole number": [
        (lambda bad: Repeated(PureDP(1), bad), bad) for bad in (-1, 1.0, 2.5, True, "3", None, np.float64(3))
    ],
    "events must": [(Composed, bad) for bad in (PureDP(1), [1.0], "abc", (PureDP(1), "x"), 5, ({},))],
    "event must be an Event": [(lambda bad: Repeated(bad, 3), 1.0)],
}


@pytest.mark.parametrize("said", REFUSED)
def test_a_field_that_is_not_of_its_kind_or_out_of_range_is_refused(said):
    for build, bad in REFUSED[said]:
        with pytest.raises(InvalidParameter, match=said):
            build(bad)


def test_ints_floats_and_numpy_scalars_give_equal_events():
    assert Gaussian(40, 1) == Gaussian(40.0, 1.0) == Gaussian(np.int64(40), np.float32(1))
    assert len({Gaussian(40, 1), Gaussian(40.0, np.float64(1))}) == 1
    assert PureDP(-0.0).to_json() == PureDP(0).to_json()
    assert Repeated(PureDP(1), np.int32(3)) == Repeated(PureDP(1), 3)
    assert Composed([PureDP(1)]) == Composed((PureDP(1),))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (Gaussian(2, 1), {"sigma": 2.0, "l2_sensitivity": 1.0}),
        (DiscreteGaussian(2, 1), {"sigma": 2.0, "l2_sensitivity": 1.0}),
        (DiscreteLaplace(2, 1), {"scale": 2.0, "sensitivity": 1.0}),
        (PureDP(2), {"epsilon": 2.0}),
        (ApproxDP(2, 0.5), {"epsilon": 2.0, "delta": 0.5}),
        (Repeated(PureDP(2), 7), {"event": PureDP(2), "times": 7}),
        (Composed((PureDP(2),)), {"events": (PureDP(2),)}),
    ],
)
def test_fields_are_taken_by_position_and_by_name_in_the_same_order(event, fields):
    assert type(event)(**fields) == event
    assert type(event)(*fields.values()) == event
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        setattr(event, next(iter(fields)), 3.0)


def test_messages_name_the_parameter_and_what_it_got():
    with pytest.raises(InvalidParameter, match=r"^sigma must be a number > 0, got -3$"):
        Gaussian(-3, 1)


GOLDEN = (Path(__file__).parent / "golden" / "events.jsonl").read_text(encoding="utf-8").splitlines()
PUBLISHED = [
    Gaussian(40.0, 1.0),
    Gaussian(0.1, 2**0.5),
    DiscreteGaussian(109.872372, 2**0.5),
    DiscreteLaplace(20.0, 1.0),
    PureDP(0.5),
    PureDP(0.0),
    ApproxDP(0.5, 1e-6),
    Composed(()),
    Composed((PureDP(0.5), Repeated(DiscreteGaussian(40.0, 1.0), 977))),
    Repeated(ApproxDP(1e-7, 1e-300), 0),
    GridGaussian(2.0**20, 2.0**18, 300),
    Parallel((PureDP(0.5), Repeated(Gaussian(40.0, 1.0), 9))),
]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("event", "line"), list(zip(PUBLISHED, GOLDEN, strict=True)))
def test_the_json_of_a_published_event_never_changes(event, line):
    assert to_json(event) == event.to_json() == line
    assert from_json(line) == event


def test_every_kind_of_event_has_a_golden_line():
    assert all(any(f'"kind":"{kind}"' in line for line in GOLDEN) for kind in KINDS)


@pytest.mark.heavy
@given(event=events)
@settings(max_examples=200, deadline=None)
def test_an_event_reads_back_as_itself(event):
    assert from_json(to_json(event)) == event
    assert to_json(from_json(to_json(event))) == to_json(event)


@pytest.mark.default_cases(5)
@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        "",
        "[]",
        "3",
        "null",
        '{"epsilon":0.5}',
        '{"epsilon":0.5,"kind":"pure"}',
        '{"epsilon":0.5,"kind":["pure_dp"]}',
        '{"epsilon":0.5,"extra":1,"kind":"pure_dp"}',
        '{"kind":"pure_dp"}',
        *(
            f'{{"epsilon":{bad},"kind":"pure_dp"}}'
            for bad in ("NaN", "Infinity", "1e999", "-1", '"0.5"', "true", "9" * 5000)
        ),
        '{"epsilon":0.5,"epsilon":0.1,"kind":"pure_dp"}',
        '{"event":{"epsilon":0.5,"kind":"pure_dp"},"kind":"repeated","times":2.0}',
        '{"event":{"epsilon":0.5,"kind":"pure_dp"},"kind":"repeated","times":-2}',
        '{"event":{"epsilon":0.5,"kind":"nothing"},"kind":"repeated","times":2}',
        '{"events":{"epsilon":0.5,"kind":"pure_dp"},"kind":"composed"}',
        '{"events":[1],"kind":"composed"}',
        '{"events":[' * 100_000,
    ],
)
def test_what_is_not_exactly_an_event_is_refused(text):
    with pytest.raises(InvalidParameter):
        from_json(text)

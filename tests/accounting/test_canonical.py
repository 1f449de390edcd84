from pathlib import Path

import pytest
from hypothesis import given, settings
from random_events import events

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    GridGaussian,
    PureDP,
    Repeated,
    from_json,
    to_json,
)
from quorate.accounting.event import KINDS
from quorate.errors import InvalidParameter, UnsupportedEvent

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


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "null",
        '{"epsilon":0.5}',
        '{"epsilon":0.5,"kind":"pure"}',
        '{"epsilon":0.5,"kind":["pure_dp"]}',
        '{"epsilon":0.5,"extra":1,"kind":"pure_dp"}',
        '{"kind":"pure_dp"}',
        '{"epsilon":NaN,"kind":"pure_dp"}',
        '{"epsilon":Infinity,"kind":"pure_dp"}',
        '{"epsilon":1e999,"kind":"pure_dp"}',
        '{"epsilon":-1,"kind":"pure_dp"}',
        '{"epsilon":"0.5","kind":"pure_dp"}',
        '{"epsilon":true,"kind":"pure_dp"}',
        '{"epsilon":0.5,"epsilon":0.1,"kind":"pure_dp"}',
        '{"event":{"epsilon":0.5,"kind":"pure_dp"},"kind":"repeated","times":2.0}',
        '{"event":{"epsilon":0.5,"kind":"pure_dp"},"kind":"repeated","times":-2}',
        '{"event":{"epsilon":0.5,"kind":"nothing"},"kind":"repeated","times":2}',
        '{"events":{"epsilon":0.5,"kind":"pure_dp"},"kind":"composed"}',
        '{"events":[1],"kind":"composed"}',
        '{"epsilon":' + "9" * 5000 + ',"kind":"pure_dp"}',
        '{"events":[' * 100_000,
    ],
)
def test_what_is_not_exactly_an_event_is_refused(text):
    with pytest.raises(InvalidParameter):
        from_json(text)


def test_bytes_and_objects_are_refused():
    with pytest.raises(InvalidParameter):
        from_json(b"{}")


def test_an_event_without_a_published_kind_has_no_json():
    class Home(Event):
        pass

    with pytest.raises(UnsupportedEvent, match="Home"):
        to_json(Home())

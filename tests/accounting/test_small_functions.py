"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

from quorate.accounting.attacker import closeness, epsilon_caution
from quorate.accounting.composition import collect
from quorate.accounting.data_dependent.noisy_max import checked_noise
from quorate.accounting.data_dependent.smooth import decay_is_allowed
from quorate.accounting.event import KINDS
from quorate.accounting.events import ApproxDP, Composed, DiscreteGaussian, Repeated
from quorate.accounting.figures import plural
from quorate.accounting.neighbouring import Neighbouring


def test_attacker() -> None:
    assert (
        closeness(Neighbouring.of("add-remove-replace", "person"), 0.05, 0.0)
        == "Whether or not any one person is in the data, what was published is almost as likely to come out the same: "
        "its probability differs by a factor of at most 1.052."
    )


def test_budget_cautions() -> None:
    assert (epsilon_caution(10.0, 1e-5, "record").applies, epsilon_caution(10.1, 1e-5, "record").code) == (
        False,
        "epsilon-promises-little",
    )


def test_composition() -> None:
    assert collect(Composed((Repeated(DiscreteGaussian(40, 2**0.5), 10), ApproxDP(0.5, 1e-6)))).lattices == (
        (40.0, 20),
    )


def test_data_dependent_noisy_max() -> None:
    assert checked_noise("discrete") == "discrete"


def test_data_dependent_smooth() -> None:
    assert (decay_is_allowed(10.0, 0.04), decay_is_allowed(10.0, 0.06)) == (True, False)


def test_event() -> None:
    from quorate.accounting import PureDP

    assert KINDS["pure_dp"] is PureDP


def test_figures() -> None:
    assert (plural("record"), plural("class"), plural("entry"), plural("day")) == (
        "records",
        "classes",
        "entries",
        "days",
    )

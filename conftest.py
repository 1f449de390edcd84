"""Settings of all tests, those in docstrings among them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from quorate.ledger import uncounted

# Tests start many processes. They compile each file once for all, also where the environment says otherwise: a machine
# that keeps no bytecode would take longer over compiling than over testing.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What a test starts hears that its terminal was closed, also where the tests were started to outlive theirs (nohup).
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test fails for being slow, since machines are shared.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


def forget_fits() -> None:
    """Begin as a new process: what tests fit without a ledger is about rows that have nothing to do with each other."""
    uncounted.IN_THIS_PROCESS = uncounted.UncountedFits()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that says so may fit several times; in any other one a second fit without a ledger is an error."""
    for item in items:
        if item.get_closest_marker("several_fits"):
            item.add_marker(pytest.mark.filterwarnings("ignore::quorate.PrivacyWarning"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What one test fits is none of the next one's."""
    forget_fits()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """What a fixture of several tests fits is none of theirs."""
    shared = fixturedef.scope != "function"
    if shared:
        forget_fits()
    result = yield
    if shared:
        forget_fits()
    return result

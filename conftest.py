"""Settings of all tests, those in docstrings among them."""

from __future__ import annotations

import gc
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.doctest import DoctestItem, DoctestModule
from hypothesis import settings
from threadpoolctl import threadpool_limits

from quorate.accounting.spend import _least
from quorate.direct.before_pool import _noise
from quorate.mechanisms.schedule import _calibrated
from quorate.noise import OSNoise
from quorate.release import model_digest
from quorate.stored_names import is_named, stored_name
from quorate.types import WordArray

session = import_module("quorate.release.session")  # the room has a function of that name

# Tests start many processes. They compile each file once for all, also where the environment says otherwise: a machine
# that keeps no bytecode would take longer over compiling than over testing.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Where nothing says how many worker processes there are, there is one, as on a machine with one processor: what most
# tests train is done before a second one has loaded its libraries. Tests of several say how many.
os.environ["LOKY_MAX_CPU_COUNT"] = "1"

# Workers of the tests share the processors. A numerical library that counts them all keeps a thread for each: one for
# what is loaded and, by the environment, for what is loaded later, here and in what tests start. Where the environment
# says how many, it is as it says, and threads that wait for work sleep instead of spinning.
LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
if not any(name in os.environ for name in LIBRARIES):
    threadpool_limits(1)
    os.environ.update(dict.fromkeys(LIBRARIES, "1"))
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

SOURCES = Path(__file__).parent / "src"

# It has no example, and every worker that looks for some would load torch for it.
collect_ignore = ["src/quorate/experiments/small_net.py"]

# What a test starts hears that its terminal was closed, also where the tests were started to outlive theirs (nohup).
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test fails for being slow, since machines are shared; what is tried does not change from one run to the next, so
# that more of it would be tried again and again; ``--afresh`` tries a hundred new examples.
settings.register_profile("shared machine", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("afresh", deadline=None)


class FromTheName:
    """What the operating system's entropy is replaced by, so that a test's verdict is the same in every run.

    Thousands of tests look at noisy results; if each failed once in ten thousand runs, hardly a run would pass, and
    nobody would believe one that failed. Noise, secret keys and the examples of Hypothesis follow from the name of
    the test or of the shared fixture; ``pytest --afresh`` draws them anew. Names (``secrets.token_hex``) stay random,
    and so does all that other processes draw: a child that was forked does not repeat what its parent draws.
    """

    system = (OSNoise.words, secrets.token_bytes, secrets.randbits)

    def __init__(self, name: str) -> None:
        self.process = os.getpid()
        self.stream = np.random.Philox(key=int.from_bytes(blake2b(name.encode(), digest_size=16).digest(), "big"))

    def put_in_place(self) -> None:
        """Draw from here from now on."""
        OSNoise.words, secrets.token_bytes, secrets.randbits = self.words, self.token_bytes, self.randbits  # type: ignore[method-assign,assignment]

    @property
    def words(self) -> Any:
        """What takes the place of ``OSNoise.words``."""

        def words(source: OSNoise, n: int) -> WordArray:
            drawn = self.system[0](source, n)  # it checks `n`, and is what a child process gets
            if os.getpid() == self.process:
                drawn = self.stream.random_raw(len(drawn))
                drawn.setflags(write=False)
            return drawn

        return words

    def token_bytes(self, n: int = 32) -> bytes:
        """Return `n` bytes."""
        return OSNoise().words(-(-n // 8)).tobytes()[:n]

    def randbits(self, k: int) -> int:
        """Return an integer of `k` bits."""
        return int.from_bytes(self.token_bytes(-(-k // 8)), "big") >> (-k % 8)


def name_in_a_key(thing: Any) -> str:
    """What stands in a key for a class or function. One of this package without a name would not outlive a move."""
    name = stored_name(thing)
    if name.startswith("quorate.") and not is_named(thing):
        raise AssertionError(f"{name} has no stored name: see quorate.stored_names")
    return name


model_digest.stored_name = name_in_a_key


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--afresh``."""
    parser.addoption("--afresh", action="store_true", help="draw noise, keys and examples anew, not from tests' names")


def pytest_configure(config: pytest.Config) -> None:
    """Fix what Hypothesis tries, or do not."""
    settings.load_profile("afresh" if config.getoption("--afresh") else "shared machine")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Each test draws what its name says."""
    if not item.config.getoption("--afresh"):
        FromTheName(item.nodeid).put_in_place()
    changes = "monkeypatch" in getattr(item, "fixturenames", ())
    if changes:  # the code, perhaps: what was calibrated by other code is not what it would calibrate
        forget_calibrations()
    try:
        return (yield)
    finally:
        if changes:
            forget_calibrations()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[Any]:
    """Look for examples where there are any: to search a module takes as long as to collect its tests.

    A module of the package is imported as everybody imports it. Where the package is installed, and not linked, pytest
    would execute the file in the checkout beside it: a second copy, which its room then names in place of the first.
    """
    found = yield
    if file_path.suffix != ".py":
        return found
    if ">>>" not in file_path.read_text(encoding="utf-8"):
        return [each for each in found if not isinstance(each, DoctestModule)]
    if SOURCES in file_path.parents:
        import_module(".".join(file_path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"))
    return found


def forget_calibrations() -> None:
    """Work out anew what a release costs and which noise a budget buys."""
    for remembered in (_least, _calibrated, _noise):
        remembered.cache_clear()


@pytest.fixture
def brief_rehearsals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play few rows of a plan, by few teachers and twice: for tests of what is said, and not of how near it comes."""
    from quorate.planning.rehearsal import rehearsal

    brief = rehearsal.Effort(folds=2, repeats=1, teachers=16, n_asked=60, every_row=False)
    monkeypatch.setattr(rehearsal.Effort, "of", lambda n_public, *_, **__: replace(brief, n_asked=min(n_public, 60)))
    monkeypatch.setattr(rehearsal, "FOLDS", 2)
    monkeypatch.setattr(rehearsal, "REPEATS", 1)


def forget_fits() -> None:
    """Begin as a new process: what tests fit without a ledger is about rows that have nothing to do with each other."""
    session.IN_THIS_PROCESS = session.UncountedFits()


def _is_public(path: str) -> bool:
    """Return whether the name of an example is one that the package or its room shows, or of a class that is."""
    package, room, *names = path.split(".")
    if find_spec(f"{package}.{room}") is None:  # a name of the package itself
        return room in import_module(package).__all__
    return any(
        not set(names).isdisjoint(getattr(import_module(at), "__all__", ())) for at in (package, f"{package}.{room}")
    )


def _asks_postgresql(item: pytest.Item) -> bool:
    """Return whether a test is about a PostgreSQL server, which takes longer to set up than most tests together."""
    cases: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    named = [case for case in cases.values() if isinstance(case, str)]
    return "server" in getattr(item, "fixturenames", ()) or "postgresql" in named


# Rooms that no room of the product imports: of their tests a default run takes those of a few modules alone.
LEAVES = {SOURCES.parent / "tests" / room for room in ("learners", "theory", "experiments")}
OF_EVERY_RUN = {
    f"test_{name}.py" for name in (
        "cautions", "check", "contract", "keys", "private_learner", "sklearn_manners", "papers_page", "statements",
        "measured_tables",
    )
}  # fmt: skip

# The mark that says how many cases a run takes, and what all other cases are.
LESS_OFTEN = {"default_cases": pytest.mark.heavy, "heavy_cases": pytest.mark.faults}
# What says of a test of a module that is mostly heavy that it, or some of its cases, are not.
OF_EVERY_RUN_HERE = ("quick", "default_cases", "faults")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Do what the marks ask for, before the selection (``-m``) looks at them.

    A test that says so may fit several times; in any other one a second fit without a ledger is an error. Of a test
    whose cases check the same, a run takes as many as the mark says, spread evenly; the others run less often.
    Examples of names that no room shows are heavy, as are most tests of a leaf and what asks a PostgreSQL server.
    """
    cases: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("several_fits"):
            item.add_marker(pytest.mark.filterwarnings("ignore::quorate.PrivacyWarning"))
        for mark in LESS_OFTEN:
            if item.get_closest_marker(mark):
                cases.setdefault((mark, item.nodeid.partition("[")[0]), []).append(item)
        rare = item.get_closest_marker("mostly_heavy") and not any(map(item.get_closest_marker, OF_EVERY_RUN_HERE))
        hidden = isinstance(item, DoctestItem) and not _is_public(item.name)
        of_a_leaf = item.path.name not in OF_EVERY_RUN and not LEAVES.isdisjoint(item.path.parents)
        if rare or hidden or of_a_leaf or _asks_postgresql(item):
            item.add_marker(pytest.mark.heavy)
    for (mark, _), alike in cases.items():
        (n,) = alike[0].get_closest_marker(mark).args  # type: ignore[union-attr]
        kept = {len(alike) * place // n for place in range(n)}
        for place, item in enumerate(alike):
            if place not in kept:
                item.add_marker(LESS_OFTEN[mark])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Collect without looking for garbage: what there is, modules and tests, stays to the end of the session."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What one test fits is none of the next one's."""
    forget_fits()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """What a fixture of several tests fits is none of theirs; its noise is the same whichever of them comes first."""
    shared = fixturedef.scope != "function"
    if not shared:
        return (yield)
    forget_fits()
    before = OSNoise.words, secrets.token_bytes, secrets.randbits
    if not request.config.getoption("--afresh"):
        FromTheName(f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}").put_in_place()
    try:
        return (yield)
    finally:
        OSNoise.words, secrets.token_bytes, secrets.randbits = before  # type: ignore[method-assign]
        forget_fits()

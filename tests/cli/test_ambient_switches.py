"""Both methods and the command line, under all switches of a process at once: the same result, the same bytes."""

import doctest
import json
import locale
import os
import re
import shlex
import subprocess
import sys
import warnings
from contextlib import ExitStack, contextmanager, suppress
from decimal import Context, localcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from pkgutil import walk_packages

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.folder.conftest import write_run
from tests.shell import shell

import quorate
from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool, QuorateWarning, check, load
from quorate.accounting import delta, explain, rdp, trade_off
from quorate.learners import NoisyThreshold
from quorate.learners.concepts import Thresholds
from quorate.mechanisms import StableSparseVector

GIVEN = {"classes": ["no", "yes"], "epsilon": 3.9401, "delta": 1e-5, "n_records": 300, "unsafe_noise_seed": 1}
METHODS = {
    "votes": lambda: PrivateClassifier(**GIVEN, n_teachers=10, n_jobs=1, allow_hopeless=True),
    "votes by a pipeline": lambda: PrivateClassifier(
        make_pipeline(StandardScaler(), SelectKBest(k=2), DecisionTreeClassifier(max_depth=2)),
        **GIVEN, n_teachers=10, n_jobs=1, allow_hopeless=True,
    ),
    "direct": lambda: PrivateLogisticRegression(**GIVEN),
}  # fmt: skip

OF_SKLEARN = {"enable_metadata_routing": True, "assume_finite": True, "skip_parameter_validation": True}
OF_POLARS = {
    "decimal_separator": ",", "thousands_separator": ".", "float_precision": 1, "fmt_str_lengths": 1, "tbl_rows": 1,
    "engine_affinity": "streaming", "streaming_chunk_size": 3,
}  # fmt: skip


@contextmanager
def every_switch():
    """Set all that a user may set in a process, as unlike the defaults as it can be."""
    before = locale.setlocale(locale.LC_ALL)
    torch = sys.modules.get("torch")
    with ExitStack() as stack:
        stack.enter_context(sklearn.config_context(transform_output="pandas", **OF_SKLEARN))
        stack.enter_context(np.errstate(all="raise"))
        stack.enter_context(np.printoptions(precision=1, threshold=3))
        stack.enter_context(localcontext(Context(prec=3)))
        stack.enter_context(pd.option_context("display.max_rows", 1, "mode.string_storage", "python"))
        stack.enter_context(pl.Config(**OF_POLARS))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        warnings.filterwarnings("default", module="quorate")
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
            with suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, name)
                break
        if torch is not None:
            torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            locale.setlocale(locale.LC_ALL, before)
            if torch is not None:
                torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.normal(size=500), "b": rng.normal(size=500), "w": rng.choice(["n", "s"], 500)})
    y = np.where(X["a"] + (X["w"] == "s") + rng.normal(0, 0.3, 500) > 0.5, "yes", "no")
    return {"X": X[:300], "y": y[:300].tolist(), "U": X[300:400], "E": X[400:], "e": y[400:].tolist()}


def _outcome(method, tables):
    model, public = METHODS[method](), PublicPool(tables["U"])
    if method == "votes by a pipeline":
        tables = {**tables, "X": tables["X"][["a", "b"]], "E": tables["E"][["a", "b"]]}
        public = PublicPool(tables["U"][["a", "b"]])
    checked = str(check(model, tables["X"], tables["y"], public=public))
    model.fit(tables["X"], tables["y"], public=public)
    facts = json.loads(model.facts(evaluation=(tables["E"], tables["e"])).to_json())
    facts["provenance"] = None  # when it was
    published = model.model_ if method == "direct" else model.student_
    return checked, model.predict_proba(tables["E"]).tobytes(), facts, str(model.guarantee_), type(published).__name__


@pytest.mark.heavy
@pytest.mark.parametrize("method", METHODS)
def test_a_fit_is_the_same_under_every_switch(method, tables):
    plain = _outcome(method, tables)
    with every_switch():
        switched = _outcome(method, tables)
    assert switched == plain
    assert "3.94," not in plain[3].replace("3.9401", "")


def _by_plan():
    known = {"n_records": 3_000, "n_classes": 2, "n_public": 100, "width": 3, "rehearse": "no"}
    plan = quorate.plan(epsilon=1.3, delta=1e-5, **known, n_teachers=[100], queries=[100])
    return str(plan), json.dumps(plan.tree())


def _by_a_learner():
    rng = np.random.default_rng(3)
    age, learner = (
        rng.integers(0, 128, (400, 1)),
        NoisyThreshold(concepts=Thresholds(bits=7), epsilon=1.5, unsafe_noise_seed=1),
    )
    ill = (age[:, 0] > 60).astype(int)
    said = str(check(learner, age, ill)), learner.rows_needed(), learner.check(400), learner.check_fit(age, ill)
    learner.fit(age, ill)
    return said, learner.concept_, str(learner.guarantee_), learner.predict(age).tolist()


def _by_a_price():
    event = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=10).event
    return explain(event, 1e-6), delta(event, 0.5), rdp(event, [2.0, 60.0]).tolist(), trade_off(event)


@pytest.mark.parametrize("act", [pytest.param(_by_plan, marks=pytest.mark.heavy), _by_a_learner, _by_a_price])
def test_what_needs_no_estimator_is_the_same_under_every_switch(act):
    plain = act()
    with every_switch():
        switched = act()
    assert switched == plain


SEEDED = {"run.unsafe_noise_seed": 1, "data.evaluation": "evaluation.csv", "budget.epsilon": 3.9401}
RUNS = {"votes": SEEDED, "direct": {**SEEDED, "method.by": "direct"}}
COMMANDS = (
    "check run",
    "run run",
    "report run",
    "report run --edition internal",
    "report run --json",
    "status run",
    "predict run run/evaluation.csv --out predicted.csv",
)
# When it was, and the key beside a ledger, by which its entries are told from those of another one.
OF_ONE_RUN = re.compile(rb"\d{4}\\?-\d\d\\?-\d\dT[\d:\\+]*|\b[0-9a-f]{64}\b|\b[0-9a-f]{8,16}(?=\xe2\x80\xa6)")


def _written(place):
    """What commands wrote that leaves the run or its owner reads, without what no two runs share."""
    pages = [*(place / "run" / "public").rglob("*"), *(place / "run" / "private").glob("*.html")]
    files = [*(path for path in pages if path.is_file()), place / "predicted.csv"]
    return {str(path.relative_to(place)): OF_ONE_RUN.sub(b"", path.read_bytes()) for path in files}


def _place(tmp_path, name, method):
    (tmp_path / name).mkdir()
    return write_run(tmp_path / name / "run", **RUNS[method]).parent


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["direct", pytest.param("votes", marks=pytest.mark.heavy)])
def test_commands_print_and_write_the_same_under_every_switch(method, tmp_path, monkeypatch, cli):
    outcomes = []
    for name, switches in (("plain", ExitStack), ("switched", every_switch)):
        place = _place(tmp_path, name, method)
        monkeypatch.chdir(place)
        said = []
        for command in COMMANDS:
            with switches():
                code, *streams = cli(*command.split())
            said.append((command, code, *(OF_ONE_RUN.sub(b"", stream.encode()) for stream in streams)))
        with switches():
            loaded, rows = load(place / "run"), pd.read_csv(place / "run" / "evaluation.csv")
            said.append(
                ("load", 0, loaded.predict_proba(rows.drop(columns="ill")).tobytes(), loaded.summary().encode())
            )
        outcomes.append((place, said))
    (one, plain), (other, switched) = outcomes
    refused = ["report run --edition internal"] if method == "direct" else []  # which has nothing to show there
    assert [command for command, code, *_ in plain if code] == refused
    assert switched == plain
    assert b"3.94" in plain[1][2].replace(b"3.9401", b"3.94")
    assert _written(other) == _written(one)


# A process whose user has set everything before it calls commands. Its streams are set by the shell that starts it.
PROCESS = """
import sys
import pandas, polars, sklearn
from quorate.cli import main
from tests.cli.test_ambient_switches import IN_A_PROCESS, every_switch
if "torch" in sys.argv:  # it takes longer to load than all the others together
    import torch
for command in IN_A_PROCESS:
    with every_switch():
        try:
            main(command.split())
        except SystemExit as end:
            if end.code:
                raise
"""
STREAMS = {
    "a pipe that ends": ("votes", "2>&1 | head -c 1 >/dev/null"),
    "closed": ("direct", ">&- 2>&-"),
    "another encoding": ("votes", ">out 2>err"),
}


def _by_a_process(place, streams, *libraries):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
    line = f"set -o pipefail; {shlex.quote(sys.executable)} -c {shlex.quote(PROCESS)} {' '.join(libraries)} {streams}"
    return subprocess.run(["bash", "-c", line], cwd=place, env=environment, timeout=600, check=False).returncode


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """What the commands of a method print and write where nobody has set anything; worked out once."""

    @cache
    def outcome(method):
        place = _place(tmp_path_factory.mktemp("usual"), "plain", method)
        return place, [shell(f"quorate {command}", place) for command in IN_A_PROCESS]

    return outcome


IN_A_PROCESS = [command for command in COMMANDS if command.startswith(("run", "predict")) or command == "report run"]


@pytest.mark.heavy
@pytest.mark.parametrize("streams", STREAMS)
def test_a_process_with_every_switch_and_other_streams_writes_the_same(streams, tmp_path, usual):
    method, redirected = STREAMS[streams]
    place = _place(tmp_path, "switched", method)
    plain, told = usual(method)
    assert {code for code, *_ in told} == {0}
    torch = ["torch"] if method == "direct" and find_spec("torch") is not None else []
    assert _by_a_process(place, redirected, *torch) == 0
    if streams == "another encoding":
        expected = [
            "".join(stream).encode("latin-1", "quorate.escaped")
            for stream in zip(*(said for _, *said in told), strict=True)
        ]
        said = [(place / name).read_bytes() for name in ("out", "err")]
        assert [OF_ONE_RUN.sub(b"", text) for text in said] == [OF_ONE_RUN.sub(b"", text) for text in expected]
    assert _written(place) == _written(plain)


FOLLOWS_ITS_USER = {"quorate.data.encoding.public_encoder"}  # the example itself calls what scikit-learn was told of


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("part", range(4))  # each has examples of every room
def test_every_example_of_the_library_comes_out_the_same_under_every_switch(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    modules = [import_module(module.name) for module in walk_packages(quorate.__path__, "quorate.")]
    shown = {
        f"{getattr(module, name).__module__}.{name}"
        for module in modules
        if module.__name__.count(".") == 1  # what a room shows
        for name in getattr(module, "__all__", ())
        if hasattr(getattr(module, name), "__module__")
    }
    finder, tests = doctest.DocTestFinder(), []
    for module in modules:
        for test in finder.find(module):
            inside = test.name.startswith(tuple(f"{name}." for name in shown))
            if test.examples and (test.name in shown or inside) and test.name not in FOLLOWS_ITS_USER:
                tests.append(test)
    assert len(tests) > 150
    said = StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in tests[part::4]:
        with every_switch(), np.printoptions(precision=8, threshold=1_000):  # the examples print arrays themselves
            warnings.filterwarnings("ignore", category=QuorateWarning)
            runner.run(test, out=said.write)
    assert not runner.summarize(verbose=False).failed, said.getvalue()

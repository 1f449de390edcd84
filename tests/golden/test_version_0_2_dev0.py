"""Runs and a fit begun before a relation could be chosen go on: for the change, and at the price, of their charge.

The archives are never made anew. What made them, each in the version it stands for, is the file
``tests/golden/version_0_2_dev0/make.py`` of commit 3f36d38a.
"""

import importlib.metadata
import json
import shutil
import sys
import tarfile
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from tests.golden.folders import command

from quorate import PrivateLogisticRegression
from quorate.errors import BudgetExhausted, LedgerMismatch
from quorate.ledger import Ledger

ARCHIVES = Path(__file__).parent / "version_0_2_dev0"
CLAIMED = {
    "direct-run": "add, remove or replace one record",
    "direct-run-read": "replace one record",
    "direct-fit": "add, remove or replace one record",
    "votes-strategy": "add, remove or replace one record",
    "votes-run": "add, remove or replace one record",
    "votes-by-default": "add, remove or replace one record",
    "votes-command": "add, remove or replace one record",
    "direct-relation": "add or remove one record",
    "direct-default-map": "add or remove one record",
}
STATED = {"direct-relation", "direct-default-map"}  # begun when a relation could be chosen
MADE_WITH = dict(line.split() for line in (ARCHIVES / "versions.txt").read_text(encoding="utf-8").splitlines())
VERSION = importlib.metadata.version
HOW = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "rounds": 5, "n_records": 240}

pytestmark = pytest.mark.filterwarnings("ignore:Trying to unpickle")


def pretend(versions, monkeypatch):
    """Let libraries have other versions than they have, for the package's modules."""

    def version(name):
        return versions.get(name) or VERSION(name)

    for module in list(sys.modules.values()):
        if module is not None and module.__name__.startswith("quorate") and hasattr(module, "version"):
            monkeypatch.setattr(module, "version", version)
    monkeypatch.setattr(importlib.metadata, "version", version)


@pytest.fixture(autouse=True)
def libraries(monkeypatch):
    """Let the libraries have the versions that the run of votes was made with: its keys are made from them."""
    pretend(MADE_WITH, monkeypatch)


def unpacked(name, place):
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        archive.extractall(place, filter="data")
    root = place / "run"
    if (root / "private").exists():
        (root / "private").chmod(0o700)
    if (settings := root / "quorate.toml").exists():  # the one key that had another name, which no command wrote
        settings.write_text(settings.read_text(encoding="utf-8").replace("\njobs = ", "\nn_jobs = "), encoding="utf-8")
    return root


def fit(root, act, **more):
    with np.load(root / "rows.npz") as rows:
        X, y = rows["X"], rows["y"]
    estimator = PrivateLogisticRegression(**{**HOW, **more}, ledger=root / "ledger.db")
    return getattr(estimator, act)(X, y)


def go_on(name, root):
    if name == "direct-fit":
        fit(root, "resume")
        return
    code, said = command("run", root, "--json")
    assert code == 0, said


def entries(root):
    with Ledger(root / "ledger.db") as ledger:
        return ledger.export()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", list(CLAIMED))
def test_what_was_begun_goes_on_as_it_was_charged(name, tmp_path):
    root = unpacked(name, tmp_path)
    before = entries(root)
    go_on(name, root)
    after = entries(root)
    assert after[: len(before)] == before
    charged = [entry for entry in after if entry["kind"] == "reserved"]
    assert len(charged) == 1
    assert ("also" in charged[0]) == (name in STATED)
    drawn = sum(entry["count"] for entry in after if entry["kind"] == "drawn")
    assert drawn == sum(charged[0]["purposes"].values())
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        assert ledger.scope.neighbours == CLAIMED[name]
    if name != "direct-fit":
        promised = json.loads((root / "public" / "guarantee.json").read_text(encoding="utf-8"))
        assert (promised["neighbours"], "also" in promised) == (CLAIMED[name], name in STATED)
        assert command("audit", root, "--runs", "400")[0] == 0 if name == "direct-run" else True
    go_on(name, root)
    assert entries(root) == after or name == "direct-fit"


def fit_with_ids(root, ids):
    with np.load(root / "rows.npz") as rows:
        X, y = rows["X"], rows["y"]
    estimator = PrivateLogisticRegression(**{**HOW, "n_records": 5}, ledger=root / "ledger.db")
    return estimator.fit(X, y, groups=ids * 48)


def test_a_fit_whose_ids_read_the_same_goes_on(tmp_path):
    root = unpacked("direct-fit-ids", tmp_path)
    before = entries(root)
    assert fit_with_ids(root, ["P-7", 12, True, date(2024, 3, 1), "12.5"]).n_rounds_ == 4  # one was drawn and lost
    after = entries(root)
    assert after[: len(before)] == before
    assert sum(entry["kind"] == "reserved" for entry in after) == 1


def test_a_fit_whose_ids_read_otherwise_is_refused_before_anything_is_drawn(tmp_path):
    root = unpacked("direct-fit-ids-read-otherwise", tmp_path)
    before = entries(root)
    with pytest.raises(LedgerMismatch, match=r"another data set.*read in another way") as refusal:
        fit_with_ids(root, ["P-7", " 12", "1.0", True, date(2024, 3, 1)])
    assert "\n" not in str(refusal.value)
    assert [entry["kind"] for entry in entries(root)[len(before) :]] in ([], ["started"])


@pytest.mark.heavy
def test_the_same_call_of_fit_goes_on_too_and_a_relation_that_was_asked_for_is_another_fit(tmp_path):
    root = unpacked("direct-fit", tmp_path)
    shutil.copytree(root, other := tmp_path / "other")
    fitted = fit(root, "fit")
    assert (fitted.guarantee_.neighbours, fitted.guarantee_.epsilon) == (CLAIMED["direct-fit"], 1.0)
    assert fitted.guarantee_.also == ()
    assert fitted.plan_.neighbours is None
    assert fit(root, "fit", neighbours="replace").plan_.neighbours is None  # its noise is that for replacing one
    with pytest.raises(BudgetExhausted):
        fit(other, "fit", neighbours="add-or-remove")


@pytest.mark.heavy
def test_a_run_that_does_not_know_its_own_charge_again_is_seen(tmp_path, monkeypatch):
    pretend({**MADE_WITH, "numpy": "0.0"}, monkeypatch)
    code, said = command("run", unpacked("votes-run", tmp_path), "--json")
    assert code == 3, said  # a second charge, which this budget has no room for


def test_no_path_of_the_machine_is_in_an_archive():
    for place in ARCHIVES.glob("*.tar.xz"):
        with tarfile.open(place) as archive:
            for member in archive.getmembers():
                assert (member.uname, member.gname, member.uid) == ("", "", 0)
                file = archive.extractfile(member)
                content = b"" if file is None else file.read()
                assert not any(each in content for each in (b"/tmp/", b"/home/", b"/root/", b"/work/", b"/Users/"))

"""Runs of version 0.1 go on: a killed one with no second charge or draw, and a finished one is still of use."""

from __future__ import annotations

import importlib.metadata
import json
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.golden.folders import command

from quorate.ledger import Ledger

ARCHIVES = Path(__file__).parent / "version_0_1"
KILLED = ("before-teachers", "after-teachers", "after-votes", "amid-labels", "before-student", "amid-stream",
          "amid-strategy")  # fmt: skip
FINISHED = ("finished", "finished-stream")

pytestmark = pytest.mark.filterwarnings("ignore:Trying to unpickle")  # the models are of an earlier scikit-learn


MADE_WITH = dict(line.split() for line in (ARCHIVES / "versions.txt").read_text(encoding="utf-8").splitlines())
VERSION = importlib.metadata.version


def pretend(versions: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let libraries have other versions than they have, for the package's modules."""

    def version(name: str) -> str:
        return versions.get(name) or VERSION(name)

    for module in list(sys.modules.values()):
        if module is not None and module.__name__.startswith("quorate") and hasattr(module, "version"):
            monkeypatch.setattr(module, "version", version)
    monkeypatch.setattr(importlib.metadata, "version", version)


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the libraries have the versions that the runs were made with: keys are made from them.

    With other libraries version 0.1 itself would not know its own votes again. The version of quorate stays as it is:
    a later one must know them.
    """
    pretend(MADE_WITH, monkeypatch)


def unpacked(name: str, place: Path) -> Path:
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        archive.extractall(place, filter="data")
    root = place / "run"
    (root / "private").chmod(0o700)
    return root


@dataclass(frozen=True)
class Durable:
    """What lies in a folder at one moment: entries, what was charged and drawn, the stages' files."""

    entries: list[dict[str, Any]]
    charged: list[dict[str, Any]]
    drawn: dict[str, int]
    stored: dict[int, Any]
    stages: dict[str, bytes]

    @classmethod
    def of(cls, root: Path) -> Durable:
        with Ledger(root / "ledger.db") as ledger:
            entries = ledger.export()
        drawn: dict[str, int] = {}
        for entry in entries:
            if entry["kind"] == "drawn":
                drawn[entry["purpose"]] = drawn.get(entry["purpose"], 0) + entry["count"]
        return cls(
            entries=entries,
            charged=[entry for entry in entries if entry["kind"] == "reserved"],
            drawn=drawn,
            stored={entry["block"]: entry["answers"] for entry in entries if entry["kind"] == "stored"},
            stages={path.name: path.read_bytes() for path in (root / "private").glob("*.stage")},
        )


def labels(root: Path) -> list[str]:
    return (root / "public" / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]


def done(*arguments: object) -> str:
    code, said = command(*arguments)
    assert code == 0, said
    return said


@pytest.mark.heavy
@pytest.mark.parametrize("name", KILLED)
def test_a_killed_run_goes_on_with_no_second_charge_and_no_second_draw(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    before = Durable.of(root)
    done("run", root, "--json")
    after = Durable.of(root)

    assert after.entries[: len(before.entries)] == before.entries
    assert len(after.charged) == 1
    assert before.charged in ([], after.charged)
    assert {
        stage: after.stages[stage] for stage in before.stages
    } == before.stages  # what was fitted is not fitted again
    assert after.stored.items() >= before.stored.items()
    purposes = after.charged[0]["purposes"]
    assert after.drawn["label"] <= purposes["label"]
    assert after.drawn.get("online answer", 0) == 0
    if name != "amid-strategy":  # one that may stop early
        assert after.drawn["label"] == purposes["label"] == len(labels(root))
    # A block that was drawn and never stored is lost: its answers were paid for, and are not drawn again.
    blocks = [entry for entry in after.entries if entry["kind"] == "drawn" and entry["purpose"] == "label"]
    lost = sum(block["count"] for block in blocks if block["sequence"] not in after.stored)
    assert sum(",interrupted" in line for line in labels(root)) == lost
    assert (lost > 0) == name.startswith("amid")
    done("ledger", "verify", root)

    done("run", root, "--json")
    assert Durable.of(root).entries[len(after.entries) :] == []


@pytest.mark.heavy
def test_a_run_that_does_not_know_its_own_work_again_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend({**MADE_WITH, "numpy": "0.0"}, monkeypatch)
    fitted, charged = unpacked("after-votes", tmp_path / "a"), unpacked("amid-labels", tmp_path / "b")
    before = Durable.of(fitted)
    done("run", fitted, "--json")
    assert Durable.of(fitted).stages != before.stages
    code, said = command("run", charged, "--json")
    assert code == 3, said  # a second charge, which this budget has no room for


@pytest.mark.heavy
@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_run_is_of_use(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    before, published = Durable.of(root), labels(root)
    promised = json.loads((root / "public" / "guarantee.json").read_text(encoding="utf-8"))

    done("ledger", "verify", root)
    assert json.loads(done("status", root, "--json"))
    for edition in ("public", "internal"):
        done("report", root, "--edition", edition)
    code, said = command("export", root, "--to", tmp_path / "refused")
    assert (code, "--unverified" in said) == (4, True)  # that version noted no sums of what it published
    done("export", root, "--to", tmp_path / "outbox", "--unverified")
    assert {"labels.csv", "student.skops", "guarantee.json", "manifest.json"} <= {
        path.name for path in (tmp_path / "outbox").iterdir()
    }

    if name == "finished-stream":  # its labels used up all stages: nothing is left to ask with
        code, said = command("ask", root, root / "new.csv", "--json")
        assert code == 3, said
        asked = Durable.of(root)
        assert asked == before
    else:
        answered = json.loads(done("ask", root, root / "new.csv", "--json"))
        assert json.loads(done("ask", root, root / "new.csv", "--json"))["answers"] == answered["answers"]
        asked = Durable.of(root)
        assert asked.charged == before.charged
        assert asked.drawn == {**before.drawn, "online answer": 2}
        assert asked.stages == before.stages

    done("run", root, "--json")
    assert Durable.of(root).entries == asked.entries
    # Version 0.1 wrote "declined" for rows that were never asked.
    assert [line.replace(",never asked", ",declined") for line in labels(root)] == published
    done("export", root, "--to", tmp_path / "verified")
    assert (
        json.loads((root / "public" / "guarantee.json").read_text(encoding="utf-8"))["epsilon"] == promised["epsilon"]
    )


def test_no_path_of_the_machine_is_in_an_archive() -> None:
    for name in (*KILLED, *FINISHED):
        with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
            for member in archive.getmembers():
                assert (member.uname, member.gname, member.uid) == ("", "", 0)
                file = archive.extractfile(member)
                content = b"" if file is None else file.read()
                assert not any(place in content for place in (b"/tmp/", b"/home/", b"/root/", b"/work/", b"/Users/"))

"""What leaves the building is what the run wrote: no stranger's file, no link, no file that was changed since."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from quorate.errors import PreconditionFailed
from quorate.export.package import export_files
from quorate.folder import published
from quorate.folder.batch import load_run
from quorate.folder.folder import RunFolder
from quorate.folder.methods import execute
from quorate.folder.published import NAMES, publish_files, read_facts, read_published

WRITTEN = {"labels.csv", "guarantee.json", "model_card.md", "report.html", "student.skops", "facts.json"}


@pytest.fixture(scope="module")
def done_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.folder.conftest import SETTINGS, toml, visits

    root = tmp_path_factory.mktemp("done") / "run"
    root.mkdir()
    rows, ill = visits(200, seed=1)
    rows.insert_column(0, __import__("polars").Series("ill", ill)).write_csv(root / "private.csv")
    visits(60, seed=2)[0].write_csv(root / "public.csv")
    (root / "quorate.toml").write_text(toml(SETTINGS), encoding="utf-8")
    execute(load_run(root), command="quorate run")
    return root


@pytest.fixture
def run(done_once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(done_once, tmp_path / "run")


@pytest.mark.heavy
def test_a_run_notes_what_it_published_where_others_do_not_write(run: Path) -> None:
    noted = RunFolder(run).published
    sums = json.loads(noted.read_text())["sha256"]
    assert sums.keys() == WRITTEN
    assert all(sums[name] == [sha256((run / "public" / name).read_bytes()).hexdigest()] for name in WRITTEN)
    assert noted.stat().st_mode & 0o777 == 0o600


@pytest.mark.heavy
def test_only_what_was_published_is_exported_and_the_rest_is_named(run: Path, cli: Any, tmp_path: Path) -> None:
    (run / "public" / "notes.txt").write_text("patients of ward 7")
    (run / "public" / "more").mkdir()
    (run / "public" / "key").symlink_to(run / "private" / "run.key")
    code, said, told = cli("export", run, "--to", tmp_path / "out")
    assert code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*WRITTEN, "manifest.json"}
    assert "notes.txt" not in said
    assert told == "not copied, since this run did not publish it: 'key', 'more', 'notes.txt'\n"
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())["sha256"]
    assert all(manifest[name] == sha256((tmp_path / "out" / name).read_bytes()).hexdigest() for name in WRITTEN)


def swap(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"a", b"b", 1))


def link_to_the_votes(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.parents[1] / "private" / "votes.stage")


def link_to_the_same(file: Path) -> None:
    kept = file.rename(file.with_name("kept"))
    file.symlink_to(kept)


def hard_link_to_the_votes(file: Path) -> None:
    file.unlink()
    os.link(file.parents[1] / "private" / "votes.stage", file)


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def remove(file: Path) -> None:
    file.unlink()


CHANGES: dict[Callable[[Path], None], str] = {
    swap: "is not what this run wrote there",
    link_to_the_votes: "is a symbolic link",
    link_to_the_same: "is a symbolic link",
    hard_link_to_the_votes: "is not what this run wrote there",
    pipe: "is no regular file",
    folder: "is no regular file",
    remove: "is missing",
}


@pytest.mark.heavy
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", ["student.skops", "labels.csv", "facts.json"])
def test_a_file_that_was_changed_is_refused_in_one_line_and_nothing_is_copied(
    run: Path, cli: Any, tmp_path: Path, change: Callable[[Path], None], name: str
) -> None:
    assert (run / "private" / "votes.stage").exists()
    change(run / "public" / name)
    code, said, told = cli("export", run, "--to", tmp_path / "out")
    assert (code, said) == (4, "")
    unfinished = change is remove and name == "facts.json"
    expected = "has no finished run yet" if unfinished else f"public/{name} {CHANGES[change]}"
    assert expected in told
    assert len(told.splitlines()) == 2  # the line, and what was charged
    assert "quorate run" in told
    assert not (tmp_path / "out").exists()
    if name == "facts.json":  # nor is a report written from facts that are somebody else's
        assert cli("report", run)[0] == cli("status", run)[0] == 4 or change is remove


def test_a_public_folder_that_is_a_link_is_refused(run: Path, cli: Any, tmp_path: Path) -> None:
    (run / "public").rename(tmp_path / "elsewhere")
    (run / "public").symlink_to(tmp_path / "elsewhere")
    code, _, told = cli("export", run, "--to", tmp_path / "out")
    assert (code, "is a link or no folder" in told) == (4, True)


@pytest.mark.heavy
def test_the_same_command_writes_a_changed_public_side_anew_at_no_charge(run: Path, cli: Any, tmp_path: Path) -> None:
    before = (run / "ledger.db.anchor").read_bytes()
    swap(run / "public" / "student.skops")
    assert cli("run", run)[0] == 0
    assert (run / "ledger.db.anchor").read_bytes() == before
    assert cli("export", run, "--to", tmp_path / "out")[0] == 0


def test_a_report_that_is_written_again_may_be_exported(run: Path, cli: Any, tmp_path: Path) -> None:
    swap(run / "public" / "report.html")
    assert cli("export", run, "--to", tmp_path / "refused")[0] == 4
    assert cli("report", run)[0] == 0
    assert cli("export", run, "--to", tmp_path / "out")[0] == 0


@pytest.mark.heavy
def test_a_run_of_a_version_that_noted_no_sums_is_told_what_to_do(run: Path, cli: Any, tmp_path: Path) -> None:
    RunFolder(run).published.unlink()
    (run / "public" / "notes.txt").write_text("patients of ward 7")
    told = cli.refused(4, "export", run, "--to", tmp_path / "refused")
    assert f"quorate run {run} notes it" in told
    assert "--unverified" in told
    assert cli("report", run)[0] == 0
    assert cli("export", run, "--to", tmp_path / "unverified", "--unverified")[0] == 0
    assert {path.name for path in (tmp_path / "unverified").iterdir()} == {*WRITTEN, "manifest.json"}
    assert cli("run", run)[0] == 0
    assert cli("export", run, "--to", tmp_path / "out")[0] == 0


def test_links_are_not_followed_in_a_run_without_sums_either(run: Path, tmp_path: Path) -> None:
    RunFolder(run).published.unlink()
    link_to_the_votes(run / "public" / "student.skops")
    with pytest.raises(PreconditionFailed, match="is a symbolic link"):
        export_files(run, tmp_path / "out", unverified=True)


def test_sums_win_over_the_wish_to_take_files_as_they_are(run: Path, tmp_path: Path) -> None:
    swap(run / "public" / "student.skops")
    with pytest.raises(PreconditionFailed, match="is not what this run wrote there"):
        export_files(run, tmp_path / "out", unverified=True)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        '{"format": "quorate published 1"}',
        '{"format": 2, "sha256": {}}',
        '{"format": "quorate published 1", "sha256": {"../private/run.key": ["0"]}}',
    ],
)
def test_damaged_sums_are_refused(run: Path, tmp_path: Path, damage: str) -> None:
    RunFolder(run).published.write_text(damage)
    with pytest.raises(PreconditionFailed, match=r"published\.json is damaged"):
        export_files(run, tmp_path / "out")


class _Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("anew", "after"), [*((True, n) for n in range(4)), *((False, n) for n in range(5))])
def test_a_crash_while_publishing_leaves_nothing_that_must_be_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch, anew: bool, after: int
) -> None:
    """What is finished then can be exported; what is written anew is not finished before it is whole."""
    root, done = RunFolder(run), []
    real = published.write_atomically

    def write(path: Path, content: bytes, *, mode: int = 0o644) -> None:
        if len(done) == after:
            raise _Killed
        done.append(path)
        real(path, content, mode=mode)

    facts = (root.public / "facts.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(published, "write_atomically", write)
        with pytest.raises(_Killed):
            publish_files(root, {"report.html": b"new", "audit.json": b"{}", "facts.json": facts + b"\n"}, anew=anew)
    if published.is_finished(root):
        assert not anew
        assert read_facts(run)
        for path in root.public.iterdir():
            read_published(root, path.name)
    else:
        assert anew


def test_every_name_that_is_published_is_known(run: Path) -> None:
    editions = {"report.de.html", "report.fr.html"}
    assert set(NAMES) == {*WRITTEN, "audit.json", "prompt.json", "pool.parquet", *editions}

"""Files of a run: what leaves is what the run wrote, and no stranger's; a stage is whole, of its key, or absent."""

import io
import json
import os
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from tests.folder.conftest import PUBLISHED, Killed

from quorate.deferred import skops
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.export.package import export_files
from quorate.folder import published
from quorate.folder.folder import RunFolder
from quorate.folder.published import NAMES, publish_files, read_facts, read_published, student_from, untrusted_types
from quorate.ledger import Budget, Ledger
from quorate.run.stage_store import FolderStages, NoStages, stage_key
from quorate.types import Secret
from quorate.voting.models import model_of


@pytest.fixture
def run(finished_run):
    return finished_run()


def test_only_what_was_published_is_exported_and_the_rest_is_named(run, cli, tmp_path):
    (run / "public" / ".labels.csv.77.part").write_text("half")  # as a crash leaves it, and of no account
    (run / "public" / "notes.txt").write_text("patients of ward 7")
    (run / "public" / "more").mkdir()
    (run / "public" / "key").symlink_to(run / "private" / "run.key")
    code, said, told = cli("export", run, "--to", tmp_path / "out")
    assert code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*PUBLISHED, "manifest.json"}
    assert "notes.txt" not in said
    assert told == "not copied, since this run did not publish it: 'key', 'more', 'notes.txt'\n"
    sums = {name: sha256((tmp_path / "out" / name).read_bytes()).hexdigest() for name in PUBLISHED}
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["sha256"] == sums
    noted = RunFolder(run).published  # where others do not write
    assert json.loads(noted.read_text())["sha256"] == {name: [found] for name, found in sums.items()}
    assert noted.stat().st_mode & 0o777 == 0o600
    assert "is not empty; name a new folder" in cli.refused(4, "export", run, "--to", tmp_path / "out")


def test_the_model_does_not_tell_when_it_was_written(run):
    with zipfile.ZipFile(run / "public" / "student.skops") as model:
        assert {part.date_time for part in model.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def swap(file):
    file.write_bytes(file.read_bytes().replace(b"a", b"b", 1))


def instead(make):
    """What puts something else in the place of a file."""

    def change(file):
        file.unlink()
        make(file)

    return change


def votes_beside(file):
    return file.parents[1] / "private" / "votes.stage"


def link_to_the_same(file):
    file.symlink_to(file.rename(file.with_name("kept")))


CHANGES = {
    "swapped": (swap, "is not what this run wrote there"),
    "a link to the votes": (instead(lambda file: file.symlink_to(votes_beside(file))), "is a symbolic link"),
    "a link to the same": (link_to_the_same, "is a symbolic link"),
    "a hard link": (instead(lambda file: os.link(votes_beside(file), file)), "is not what this run wrote there"),
    "a pipe": (instead(os.mkfifo), "is no regular file"),
    "a folder": (instead(Path.mkdir), "is no regular file"),
    "gone": (Path.unlink, "is missing"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("name", ["student.skops", "labels.csv", "facts.json"])
def test_a_file_that_was_changed_is_refused_in_one_line_and_nothing_is_copied(run, cli, tmp_path, what, name):
    (change, said_of_it), facts_gone = CHANGES[what], (what, name) == ("gone", "facts.json")
    assert votes_beside(run / "public" / name).exists()
    change(run / "public" / name)
    code, said, told = cli("export", run, "--to", tmp_path / "out")
    assert (code, said) == (4, "")
    assert ("has no finished run yet" if facts_gone else f"public/{name} {said_of_it}") in told
    assert len(told.splitlines()) == 2  # the line, and what was charged
    assert "quorate run" in told
    assert not (tmp_path / "out").exists()
    if name == "facts.json":  # nor is a report written from facts that are somebody else's
        assert cli("report", run)[0] == cli("status", run)[0] == 4 or facts_gone


def test_a_public_folder_that_is_a_link_is_refused(run, cli, tmp_path):
    (run / "public").rename(tmp_path / "elsewhere")
    (run / "public").symlink_to(tmp_path / "elsewhere")
    code, _, told = cli("export", run, "--to", tmp_path / "out")
    assert (code, "is a link or no folder" in told) == (4, True)


@pytest.mark.parametrize(
    ("name", "verb"), [("report.html", "report"), pytest.param("student.skops", "run", marks=pytest.mark.heavy)]
)
def test_what_was_changed_is_written_anew_at_no_charge_and_may_be_exported(run, cli, tmp_path, name, verb):
    before = (run / "ledger.db.anchor").read_bytes()
    swap(run / "public" / name)
    assert cli("export", run, "--to", tmp_path / "refused")[0] == 4
    assert cli(verb, run)[0] == 0
    assert (run / "ledger.db.anchor").read_bytes() == before
    assert cli("export", run, "--to", tmp_path / "out")[0] == 0


@pytest.mark.heavy
def test_a_run_whose_sums_are_gone_is_told_what_to_do(run, cli, tmp_path):
    RunFolder(run).published.unlink()
    assert f"quorate run {run} writes it again" in cli.refused(4, "export", run, "--to", tmp_path / "refused").words
    assert cli("report", run)[0] == 0
    assert cli("run", run)[0] == 0
    assert cli("export", run, "--to", tmp_path / "out")[0] == 0


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
def test_damaged_sums_are_refused(run, tmp_path, damage):
    RunFolder(run).published.write_text(damage)
    with pytest.raises(PreconditionFailed, match=r"published\.json is damaged"):
        export_files(run, tmp_path / "out")


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("anew", "after"), [*((True, n) for n in range(4)), *((False, n) for n in range(5))])
def test_a_crash_while_publishing_leaves_nothing_that_must_be_refused(run, monkeypatch, anew, after):
    """What is finished then can be exported; what is written anew is not finished before it is whole."""
    root, done = RunFolder(run), []
    real = published.write_atomically

    def write(path, content, *, mode=0o644):
        if len(done) == after:
            raise Killed
        done.append(path)
        real(path, content, mode=mode)

    facts = (root.public / "facts.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(published, "write_atomically", write)
        with pytest.raises(Killed):
            publish_files(root, {"report.html": b"new", "audit.json": b"{}", "facts.json": facts + b"\n"}, anew=anew)
    if published.is_finished(root):
        assert not anew
        assert read_facts(run)
        for path in root.public.iterdir():
            read_published(root, path.name)
    else:
        assert anew


def test_every_name_that_is_published_is_known(run):
    editions = {"report.de.html", "report.fr.html"}
    assert set(NAMES) == {*PUBLISHED, "audit.json", "prompt.json", "pool.parquet", *editions}


def opened(content):
    return student_from(content, place="student.skops", trusted=(), name_them_in="trusted=", anew="export it again")


def model():
    return skops.io.dumps(LogisticRegression().fit(np.eye(4), [0, 1, 0, 1]))


def damaged(content):
    """The description is whole, and the numbers that it describes are cut off."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as read, zipfile.ZipFile(made, "w") as written:
        for name in read.namelist():
            kept = read.read(name)
            written.writestr(name, kept[:20] if name.endswith(".npy") else kept)
    return made.getvalue()


def test_what_a_model_of_trees_has_to_be_trusted_with_is_named():
    made = RandomForestClassifier(2, random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    assert untrusted_types(skops.io.dumps(made)) == ["sklearn.tree._tree.Tree"]
    assert untrusted_types(model()) == []


@pytest.mark.parametrize("content", [lambda _: b"", lambda _: b"no archive", lambda whole: whole[:300], damaged])
def test_a_model_is_opened_and_a_damaged_file_is_refused_in_one_line(content):
    assert opened(model()).predict(np.eye(4)).shape == (4,)
    with pytest.raises(PreconditionFailed, match=r"^student.skops cannot be read; export it again$") as refused:
        opened(content(model()))
    assert refused.value.__cause__ is None


KEY, OTHER = Secret(bytes(32)), Secret(bytes([1]) * 32)


def test_a_stage_is_loaded_under_its_own_key_alone(tmp_path):
    stages = FolderStages(tmp_path / "private")
    assert stages.load("votes", "k1") is None
    stages.save("votes", "k1", b"\n\x00first")
    assert stages.load("votes", "k1") == b"\n\x00first"
    assert stages.load("votes", "k2") is None
    assert stages.load("labels", "k1") is None
    stages.save("votes", "k2", b"second")
    assert stages.load("votes", "k1") is None


def test_a_stage_that_was_cut_or_altered_counts_as_absent(tmp_path):
    stages = FolderStages(tmp_path)
    stages.save("votes", "k1", b"what was computed")
    path = tmp_path / "votes.stage"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert stages.load("votes", "k1") is None
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert stages.load("votes", "k1") is None


def test_an_estimator_in_memory_keeps_no_stage():
    NoStages().save("votes", "k", b"secret")
    assert NoStages().load("votes", "k") is None
    assert not NoStages().keeps


@given(st.dictionaries(st.text(), st.integers() | st.text(), max_size=4))
def test_a_stage_key_depends_on_everything_and_on_no_order(cache_inputs):
    key = stage_key(KEY, "votes", cache_inputs)
    assert key == stage_key(KEY, "votes", dict(reversed(cache_inputs.items())))
    others = {
        stage_key(OTHER, "votes", cache_inputs),
        stage_key(KEY, "labels", cache_inputs),
        stage_key(KEY, "votes", {**cache_inputs, "one more\0": 1}),
    }
    assert len({key, *others}) == 4


def test_a_folder_knows_a_ledger_by_its_anchor_too(tmp_path):
    folder = RunFolder(tmp_path)
    assert not folder.has_ledger
    Ledger(folder.ledger, budget=Budget(1.0, 1e-5)).close()
    assert folder.has_ledger
    folder.ledger.unlink()
    assert folder.has_ledger


def test_a_model_that_is_not_built_in_says_what_is():
    with pytest.raises(InvalidParameter, match='use "logistic", "tree", "forest" or "boosting"'):
        model_of("svm", "teacher", folder=Path())

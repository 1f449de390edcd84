"""Stages keyed by content, and the files of a run's folder: whole or absent, and the owner's alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.errors import InvalidParameter, LedgerMismatch, PreconditionFailed
from quorate.ledger import Budget, Ledger
from quorate.run.folder import RunFolder, fingerprint_key, read_or_create_key, write_atomically
from quorate.run.models import built_in, model_of
from quorate.run.stages import FolderStages, NoStages, stage_key
from quorate.types import Secret

KEY, OTHER = Secret(bytes(32)), Secret(bytes([1]) * 32)


def test_a_stage_is_loaded_under_its_own_key_alone(tmp_path: Path) -> None:
    stages = FolderStages(tmp_path / "private")
    assert stages.load("votes", "k1") is None
    stages.save("votes", "k1", b"\n\x00first")
    assert stages.load("votes", "k1") == b"\n\x00first"
    assert stages.load("votes", "k2") is None
    assert stages.load("labels", "k1") is None
    stages.save("votes", "k2", b"second")
    assert stages.load("votes", "k1") is None


def test_a_stage_that_was_cut_or_altered_counts_as_absent(tmp_path: Path) -> None:
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


def test_an_estimator_in_memory_keeps_no_stage() -> None:
    NoStages().save("votes", "k", b"secret")
    assert NoStages().load("votes", "k") is None
    assert not NoStages().keeps


@given(st.dictionaries(st.text(), st.integers() | st.text(), max_size=4))
def test_a_stage_key_depends_on_everything_and_on_no_order(made_from: dict[str, object]) -> None:
    key = stage_key(KEY, "votes", made_from)
    assert key == stage_key(KEY, "votes", dict(reversed(made_from.items())))
    others = {
        stage_key(OTHER, "votes", made_from),
        stage_key(KEY, "labels", made_from),
        stage_key(KEY, "votes", {**made_from, "one more\0": 1}),
    }
    assert len({key, *others}) == 4


def test_a_file_is_written_whole_with_its_mode_and_nothing_beside_it(tmp_path: Path) -> None:
    for mode in (0o600, 0o644):
        write_atomically(tmp_path / "file", b"new", mode=mode)
        assert (tmp_path / "file").read_bytes() == b"new"
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_key_is_drawn_once_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.key"
    first = read_or_create_key(path).reveal()
    assert len(first) == 32
    assert read_or_create_key(path).reveal() == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["run.key"]
    for content in (b"", first[:-1], first + b"\n"):
        path.write_bytes(content)
        with pytest.raises(PreconditionFailed, match="not a key of 32 bytes"):
            read_or_create_key(path)


def test_of_two_processes_that_draw_a_key_at_once_the_first_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.key"
    monkeypatch.setattr(Path, "exists", lambda self: False)  # both looked before either wrote
    assert read_or_create_key(path).reveal() == read_or_create_key(path).reveal()


def test_the_key_that_binds_data_is_the_ledgers_own(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    key = fingerprint_key(path).reveal()
    assert fingerprint_key(path).reveal() == key
    with Ledger(path, budget=Budget(1.0, 1e-5)) as ledger:
        assert fingerprint_key(ledger).reveal() == key
        (tmp_path / "ledger.db.key").unlink()
        fingerprint_key(ledger)  # bound to nothing yet: a new key does no harm
        ledger.bind("0" * 64)
        (tmp_path / "ledger.db.key").unlink()
        with pytest.raises(LedgerMismatch, match="Restore it from a backup"):
            fingerprint_key(ledger)
    with pytest.raises(LedgerMismatch, match="Restore it from a backup"):
        fingerprint_key(path)
    assert not (tmp_path / "ledger.db.key").exists()


def test_a_ledger_in_memory_has_one_key_while_it_lives() -> None:
    first, second = (Ledger(budget=Budget(1.0, 1e-5)) for _ in range(2))
    assert fingerprint_key(first).reveal() == fingerprint_key(first).reveal()
    assert len({fingerprint_key(each).reveal() for each in (first, second, None, None)}) == 4


def test_a_folder_knows_a_ledger_by_its_anchor_too(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert not folder.has_ledger
    Ledger(folder.ledger, budget=Budget(1.0, 1e-5)).close()
    assert folder.has_ledger
    folder.ledger.unlink()
    assert folder.has_ledger


@pytest.mark.parametrize("name", ["logistic", "forest", "boosting"])
@pytest.mark.parametrize("role", ["teacher", "student"])
def test_every_built_in_model_is_an_unfitted_classifier(name: str, role: str) -> None:
    from quorate.ensemble import check_unfitted

    check_unfitted(built_in(name, role))  # type: ignore[arg-type]


def test_a_model_that_is_not_built_in_says_what_is() -> None:
    with pytest.raises(InvalidParameter, match='use "logistic", "forest" or "boosting"'):
        model_of("svm", "teacher", folder=Path())

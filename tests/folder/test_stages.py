"""Stages keyed by content, and the files of a run's folder: whole or absent, and the owner's alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.errors import InvalidParameter
from quorate.folder.folder import RunFolder
from quorate.ledger import Budget, Ledger
from quorate.run.stage_store import FolderStages, NoStages, stage_key
from quorate.types import Secret
from quorate.voting.models import built_in, model_of

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


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", ["logistic", "forest", "boosting"])
@pytest.mark.parametrize("role", ["teacher", "student"])
def test_every_built_in_model_is_an_unfitted_classifier(name, role):
    from quorate.ensemble import check_unfitted

    check_unfitted(built_in(name, role))


def test_a_model_that_is_not_built_in_says_what_is():
    with pytest.raises(InvalidParameter, match='use "logistic", "tree", "forest" or "boosting"'):
        model_of("svm", "teacher", folder=Path())

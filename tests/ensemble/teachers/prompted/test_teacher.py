"""A prompt holds rows of one shard alone, and a vote is a function of that shard, public facts and the endpoint."""

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from tests.ensemble.teachers.prompted.one_store import OneStore
from tests.ensemble.teachers.prompted.stand_in import BAD, endpoint, slow

from quorate.audit import audit_shards
from quorate.ensemble import ChatTeacher, Ensemble, count_votes, hash_shards, train_teachers
from quorate.ensemble.teachers.prompted import Prompt, Unanswered, row_texts
from quorate.ensemble.teachers.prompted import teacher as teacher_module
from quorate.ensemble.teachers.prompted.teacher import most_similar, spread_over_classes
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import Secret

K, N = 6, 60
RNG = np.random.default_rng(4)
PRIVATE = pl.DataFrame(
    {"note": [f"patient{row} is {'good' if row % 2 else 'bad'}" for row in range(N)], "age": RNG.integers(1, 90, N)}
)
CODES = np.arange(N) % 2
LABELS = np.array(["bad", "good"])[CODES]
PUBLIC = pl.DataFrame({"note": ["he is good", "she is bad", "they are good"], "age": [40, 50, 60]})
SHARDS = hash_shards([bytes([row]) for row in range(N)], K, Secret(bytes(32)))


def trained(url: str, **more: Any) -> Ensemble:
    teacher = ChatTeacher(url, "toy", classes=["bad", "good"], text="note", **more)
    return train_teachers(teacher, PRIVATE, CODES, SHARDS, n_teachers=K, n_classes=2, key=Secret(bytes(32)))


def shards_in_prompts(asked: list[dict[str, Any]]) -> list[set[int]]:
    """For each request, the shards whose rows stand anywhere in it."""
    of = SHARDS.reveal()
    texts = PRIVATE["note"].to_list()
    return [{int(of[row]) for row, text in enumerate(texts) if json.dumps(text) in json.dumps(each)} for each in asked]


@pytest.mark.heavy
@pytest.mark.parametrize("choose", ["random", "similar"])
def test_one_teachers_rows_never_stand_in_anothers_prompt(choose):
    with endpoint() as there:
        counts = count_votes(trained(there.url, shots=4, choose=choose), PUBLIC).reveal()
        found = shards_in_prompts(there.asked)
        assert len(found) == K * 3
        assert {len(each) for each in found} == {1}
        assert set().union(*found) == set(range(K))
        assert counts.sum() == K * 3
        assert {len(each["messages"]) for each in there.asked} == {2 + 2 * 4}


def audit(teacher: ChatTeacher, units: int) -> Any:
    given = {"classes": ["bad", "good"], "n_teachers": 3, "changes": ["replace"], "seed": 1}
    return audit_shards(teacher, PRIVATE[:24], LABELS[:24], units=units, **given)


@pytest.mark.heavy
def test_that_test_and_the_shard_audit_catch_prompts_that_share_rows():
    with endpoint() as there:
        cheat = OneStore(there.url, "toy", classes=["bad", "good"], text="note")
        for shard in range(K):
            mine = np.flatnonzero(SHARDS.reveal() == shard)
            cheat.train(PRIVATE[mine], CODES[mine], shard).vote(PUBLIC)
        assert max(len(each) for each in shards_in_prompts(there.asked)) > 1
        found = audit(cheat, units=3)
        assert found.violated


@pytest.mark.heavy
def test_the_shard_audit_holds():
    with endpoint() as there:
        for choose in ("random", "similar"):
            teacher = ChatTeacher(there.url, "toy", classes=["bad", "good"], text="note", shots=3, choose=choose)
            found = audit(teacher, units=1)
            assert found.worst <= 1
            assert not found.violated
        assert there.asked == []  # prompts are compared, not replies


def test_an_endpoint_is_probed_with_a_patience_that_hangs_on_no_prompt(monkeypatch):
    """What it was asked before holds private rows: that it is slow or starts anew after them must refuse nothing."""
    monkeypatch.setattr(teacher_module, "PAUSES", (0.0, 0.0, 0.0))
    teacher = ChatTeacher("http://127.0.0.1:9/v1", "toy", classes=["bad", "good"], timeout=0.2, retries=0)
    with pytest.raises(Unanswered):
        teacher.probe(PUBLIC)

    def slow_at_first(handler: Any, said: str) -> None:
        manners = [BAD["hangs up"], BAD["always busy"], slow]
        manners[min(len(there.asked), 3) - 1](handler, said)

    with endpoint(manner=slow_at_first) as there:
        there.model = lambda asked: "bad"
        teacher = ChatTeacher(there.url, "toy", classes=["bad", "good"], timeout=0.2, retries=0)
        teacher.probe(PUBLIC)
        assert len(there.asked) == 3
        assert shards_in_prompts(there.asked) == [set()] * 3


def test_examples_are_drawn_by_the_seed_and_from_every_class():
    codes = np.array([0] * 20 + [1] * 2)
    first, again, other = (spread_over_classes(codes, 4, seed) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()
    assert sorted(codes[first].tolist()) == [0, 0, 1, 1]
    assert len(spread_over_classes(codes, 100, 1)) == 22
    assert len(set(spread_over_classes(codes, 100, 1).tolist())) == 22


def test_similar_rows_stand_in_the_prompt_the_likest_last():
    found = most_similar(["warm day", "bad film", "good film"], ["very good film", "a day"], 2)
    assert found[0].tolist() == [1, 2]
    assert found[1, -1] == 0


@pytest.mark.heavy
def test_rows_are_asked_about_in_blocks_and_a_failure_is_an_abstention_on_its_block(monkeypatch, capfd):
    """What fails or is warned of in the user's own process may hang on private rows; nobody is told."""
    blocks: list[int] = []

    def fails_on_her(texts: Any, asked: Any, shots: int) -> Any:
        blocks.append(len(asked))
        warnings.warn("a private row", stacklevel=1)
        if "she is bad" in asked:
            raise MemoryError
        return most_similar(texts, asked, shots)

    monkeypatch.setattr(teacher_module, "most_similar", fails_on_her)
    public = pl.DataFrame({"note": ["he is good"] * 64 + ["she is bad"] + ["they are good"] * 65})
    with endpoint() as there:
        ensemble = trained(there.url, shots=2, choose="similar")
        one = Ensemble(Secret(ensemble.voters.reveal()[:1]), 2)
        votes = count_votes(one, public).reveal().sum(axis=1)
    assert blocks == [64, 64, 2]
    assert votes.tolist() == [1] * 64 + [0] * 64 + [1] * 2
    assert capfd.readouterr() == ("", "")


def test_an_empty_shard_abstains_and_asks_nothing():
    with endpoint() as there:
        teacher = ChatTeacher(there.url, "toy", classes=["bad", "good"])
        assert teacher.train(PRIVATE[:0], CODES[:0], 0).vote(PUBLIC).tolist() == [-1] * 3
        assert there.asked == []


@pytest.mark.parametrize(
    "rows",
    [
        PUBLIC,
        PUBLIC.to_pandas(),
        PUBLIC.with_columns(pl.col("age").cast(pl.Float64)),
        PUBLIC.to_pandas().astype({"age": object}),
        PUBLIC.with_columns(pl.col("note").cast(pl.Categorical)),
    ],
    ids=["polars", "pandas", "floats", "objects", "categories"],
)
def test_a_row_has_one_text_in_every_container(rows):
    assert row_texts(rows)[0] == "note: he is good\nage: 40"
    assert row_texts(rows[:1])[0] == row_texts(rows)[0]
    assert row_texts(rows, text="note")[1] == "she is bad"


def test_arrays_have_numbered_columns_gaps_are_empty_and_a_lone_column_is_its_text():
    X = np.array([[1.0, 0.25], [2.0, np.nan]])
    assert row_texts(X) == ["x1: 1\nx2: 0.25", "x1: 2\nx2: "]
    assert row_texts(sparse.csr_array(np.nan_to_num(X)))[1] == "x1: 2\nx2: 0"
    assert row_texts(pd.DataFrame({"t": ["a\nb"]})) == ["a\nb"]
    assert row_texts(pd.DataFrame({"t": ["a\nlabel: x"], "u": [True]})) == ["t: a label: x\nu: 1"]
    with pytest.raises(DataRefused, match="names 'z', and the public rows have no such column"):
        row_texts(X, text="z")


def test_names_that_a_reply_cannot_tell_apart_are_refused():
    with pytest.raises(InvalidParameter, match="case of letters"):
        ChatTeacher("http://127.0.0.1/v1", "toy", classes=["Yes", "yes "])
    assert Prompt(("straße", "weg")).code_of("STRASSE") == 0


def test_a_teacher_takes_the_classes_of_its_task_and_no_others():
    teacher = ChatTeacher("http://127.0.0.1/v1", "toy")
    with pytest.raises(InvalidParameter, match="names of the classes"):
        teacher.train(PRIVATE, CODES, 0)
    named = teacher.with_classes([False, True])
    assert named.prompt is not None
    assert named.prompt.classes == ("false", "true")
    with pytest.raises(InvalidParameter, match="other classes"):
        named.with_classes(["a", "b"])


@pytest.mark.parametrize(
    "wrong", [{"shots": 0}, {"choose": "best"}, {"timeout": 0}, {"text": ""}, {"instruction": " "}, {"hosts": [1]}]
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        ChatTeacher("http://127.0.0.1/v1", "toy", classes=["a", "b"], **wrong)

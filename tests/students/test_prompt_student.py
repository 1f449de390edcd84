"""A prompt that may be published: public rows, released labels, a guarantee, and no more."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.ensemble.teachers.prompted.stand_in import BAD, endpoint

from quorate.accounting import Guarantee
from quorate.ensemble import ChatEndpoint
from quorate.errors import InvalidParameter, PreconditionFailed, SeededNoiseRefused
from quorate.labelling import Released
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts
from quorate.students import PromptStudent

POOL = pl.DataFrame({"review": [f"good fun {n}" if n % 2 else f"bad dull {n}" for n in range(20)]})
NO = np.zeros(20, dtype=bool)
CODES = np.arange(20) % 2


def promised(**more: Any) -> Guarantee:
    return Guarantee(
        epsilon=1.0, delta=1e-5, unit="person", neighbours="add, remove or replace one person", mechanism="20 answers",
        accounting="exact", **more,
    )  # fmt: skip


def student(released: Released | None = None, **more: Any) -> PromptStudent:
    released = released or Released(CODES, NO, NO, GaussianNoisyMax(sigma=5.0, form="binary"))
    return PromptStudent.of_answers(
        POOL, np.arange(20), released, classes=["no", "yes"], **{"guarantee": promised(), "shots": 4, **more}
    )


def test_it_is_loaded_and_asks_a_model(tmp_path):
    path = student().save(tmp_path / "prompt.json")
    loaded = PromptStudent.load(path)
    assert loaded == student()
    with endpoint() as there:
        found = loaded.predict(pl.DataFrame({"review": ["good day", "dull day"]}), ChatEndpoint(there.url, "toy"))
        assert found.tolist() == ["yes", "no"]
        assert len(there.asked[0]["messages"]) == 2 + 2 * 4
    content = json.loads(path.read_text())
    assert content["guarantee"]["epsilon"] == 1.0
    assert {each["label"] for each in content["examples"]} == {"no", "yes"}
    assert all(each["row"] in POOL["review"].to_list() for each in content["examples"])


def test_the_surest_of_each_class_are_taken_where_votes_were_released():
    leads = np.where(CODES == 1, 1, -1) * (np.arange(20) + 1)
    made = student(Released(leads, NO, NO, NoisyCounts(sigma=5.0, form="binary")))
    assert sorted(made.examples) == sorted(
        [("good fun 19", 1), ("good fun 17", 1), ("bad dull 18", 0), ("bad dull 16", 0)]
    )
    votes = np.zeros((20, 3), dtype=np.int64)
    votes[np.arange(20), CODES] = np.arange(20) + 1
    three = PromptStudent.of_answers(
        POOL, np.arange(20), Released(votes, NO, NO, NoisyCounts(sigma=5.0)), classes=["no", "yes", "else"],
        guarantee=promised(), shots=2,
    )  # fmt: skip
    assert sorted(three.examples) == sorted([("good fun 19", 1), ("bad dull 18", 0)])


def test_declined_queries_are_no_examples():
    declined = np.arange(20) >= 3
    made = student(Released(CODES, declined, NO, GaussianNoisyMax(sigma=5.0, form="binary")), shots=10)
    assert {text for text, _ in made.examples} <= set(POOL["review"].to_list()[:3])
    nothing = student(Released(CODES, ~NO, NO, GaussianNoisyMax(sigma=5.0, form="binary")))
    assert nothing.examples == ()


def test_no_class_for_any_row_says_why_and_for_some_is_none():
    rows = pl.DataFrame({"review": ["good day", "dull day"]})
    with endpoint(manner=BAD["refused"]) as there:
        with pytest.raises(PreconditionFailed, match="status 401"):
            student().predict(rows, ChatEndpoint(there.url, "toy"))
        there.manner = lambda handler, said: BAD["refused" if said == "no" else "a sentence"](handler, said)
        with pytest.raises(PreconditionFailed):
            student().predict(rows, ChatEndpoint(there.url, "toy"))
    with endpoint(lambda asked: "yes" if "good" in asked["messages"][-1]["content"] else "who knows") as there:
        assert student().predict(rows, ChatEndpoint(there.url, "toy")).tolist() == ["yes", None]


def test_seeded_labels_are_not_written(tmp_path):
    with pytest.raises(SeededNoiseRefused):
        student(guarantee=promised(seeded=True)).save(tmp_path / "prompt.json")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "quorate prompt 2"}', '{"format": "quorate prompt 1"}'])
def test_another_file_is_refused(text):
    with pytest.raises(InvalidParameter, match="no prompt of quorate"):
        PromptStudent.from_json(text)


@pytest.mark.parametrize("label", ["maybe", 1, None])
def test_an_example_of_no_class_is_refused(label):
    content = json.loads(student().to_json())
    content["examples"][0]["label"] = label
    with pytest.raises(InvalidParameter):
        PromptStudent.from_json(json.dumps(content))

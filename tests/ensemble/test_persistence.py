"""Voters as bytes: the same votes after, and no type that skops does not trust by itself."""

from __future__ import annotations

import io
import re
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from quorate.ensemble import AbstainingVoter, ClassifierTeacher, ConstantVoter, dump_voters, load_voters
from quorate.errors import PreconditionFailed
from quorate.types import Secret

RNG = np.random.default_rng(2)
X = RNG.normal(size=(80, 3))
Y = RNG.integers(0, 3, size=80) * 2


def trained(*models):
    return tuple(ClassifierTeacher(model).train(X, Y, number) for number, model in enumerate(models))


def test_voters_vote_the_same_after():
    voters = trained(
        LogisticRegression(), make_pipeline(StandardScaler(), SGDClassifier()), GaussianNB(), LinearSVC(max_iter=5000)
    )
    voters += (AbstainingVoter(), ConstantVoter(4))
    written = dump_voters(Secret(voters))

    assert repr(written) == "Secret(…)"
    loaded = load_voters(written.reveal()).reveal()
    assert [type(voter) for voter in loaded] == [type(voter) for voter in voters]
    for before, after in zip(voters, loaded, strict=True):
        assert (before.vote(X) == after.vote(X)).all()
    assert loaded[0].estimator.coef_.tobytes() == voters[0].estimator.coef_.tobytes()


class OwnVoter:
    def vote(self, X):
        return np.zeros(len(X), dtype=np.int64)


@pytest.mark.parametrize(
    "voters",
    [
        trained(RandomForestClassifier(2)),
        trained(make_pipeline(FunctionTransformer(lambda rows: rows), GaussianNB())),
        (ConstantVoter(0), OwnVoter()),
    ],
)
def test_what_skops_does_not_trust_is_not_written(voters):
    assert dump_voters(Secret(voters)) is None


def test_what_is_no_file_of_ours_is_refused():
    written = dump_voters(Secret(trained(GaussianNB()))).reveal()
    strangers = [
        b"",
        b"PK\x03\x04",
        written[:-40],
        skops.io.dumps([1, 2]),
        skops.io.dumps({"format": "another", "voters": []}),
        skops.io.dumps({"format": "quorate voters 1", "voters": [{"kind": "surprise"}]}),
        skops.io.dumps({"format": "quorate voters 1", "voters": trained(RandomForestClassifier(2))[0].estimator}),
    ]
    for stranger in strangers:
        with pytest.raises(PreconditionFailed, match="not a file of teachers"):
            load_voters(stranger)
    assert len(load_voters(written).reveal()) == 1


def test_no_voters_are_written_too():
    assert load_voters(dump_voters(Secret(())).reveal()).reveal() == ()


# What was published about reading a file with skops, and the version that mended it; see docs/decisions/0020.
MENDED = {
    "CVE-2024-37065": (0, 10),
    "CVE-2025-54412": (0, 12),
    "CVE-2025-54413": (0, 12),
    "CVE-2025-54886": (0, 13),
    "skops pull request 536": (0, 15),
}


def test_no_skops_is_taken_with_a_published_fault_in_reading_a_file():
    root = Path(__file__).parents[2]
    needed = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    [floor] = [re.fullmatch(r"skops>=(\d+)\.(\d+)", each) for each in needed if each.startswith("skops")]
    assert tuple(map(int, floor.groups())) >= max(MENDED.values())
    note = (root / "docs" / "decisions" / "0020-the-oldest-skops.md").read_text()
    assert [each for each in MENDED if each not in note] == []


def test_a_file_that_names_a_function_for_a_random_generator_calls_nothing(monkeypatch):
    called = []
    monkeypatch.setattr(np.random, "seed", lambda *_: called.append("seed"))
    voters = [{"kind": "constant", "code": np.random.default_rng(0)}]
    written = zipfile.ZipFile(io.BytesIO(skops.io.dumps({"format": "quorate voters 1", "voters": voters})))
    altered = io.BytesIO()
    with zipfile.ZipFile(altered, "w") as packed:
        for name in written.namelist():
            content = written.read(name)
            assert name != "schema.json" or b"PCG64" in content
            packed.writestr(name, content.replace(b"PCG64", b"seed"))

    with pytest.raises(PreconditionFailed, match="not a file of teachers"):
        load_voters(altered.getvalue())
    assert called == []

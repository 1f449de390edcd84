"""Voters as bytes: the same votes after, and no type that skops does not trust by itself."""

import io
import re
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from quorate.deferred import skops
from quorate.ensemble import AbstainingVoter, ClassifierTeacher, ConstantVoter, dump_voters, load_voters
from quorate.ensemble.persistence import dump_linear, is_linear_file
from quorate.ensemble.teachers.prior_matching import PriorMatchingTeacher
from quorate.errors import PreconditionFailed
from quorate.types import Secret

RNG = np.random.default_rng(2)
X = RNG.normal(size=(80, 3))
Y = RNG.integers(0, 3, size=80) * 2


def trained(*models):
    return tuple(ClassifierTeacher(model).train(X, Y, number) for number, model in enumerate(models))


def test_voters_vote_the_same_after():
    pipeline, svm = make_pipeline(StandardScaler(), SGDClassifier()), LinearSVC(max_iter=5000)
    voters = trained(LogisticRegression(), RidgeClassifier(), pipeline, GaussianNB(), svm)
    voters += (AbstainingVoter(), ConstantVoter(4))
    written = dump_voters(Secret(voters))

    assert repr(written) == "Secret(…)"
    loaded = load_voters(written.reveal()).reveal()
    assert [type(voter) for voter in loaded] == [type(voter) for voter in voters]
    for before, after in zip(voters, loaded, strict=True):
        assert (before.vote(X) == after.vote(X)).all()
    for number in (0, 1):
        assert loaded[number].estimator.coef_.tobytes() == voters[number].estimator.coef_.tobytes()


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


MULTINOMIAL = RNG.integers(0, 3, size=80)


def logistic_voters():
    """Voters of every kind that is written as arrays, alone and matched, of two and of three classes."""
    teacher = ClassifierTeacher(LogisticRegression())
    matching = PriorMatchingTeacher(teacher, X)
    two = RNG.integers(0, 2, size=80)
    return (
        teacher.train(X, MULTINOMIAL, 5),
        AbstainingVoter(),
        teacher.train(X[:30], two[:30] * 3, 6),
        matching.train(X, two, 7),
        ConstantVoter(2),
        ClassifierTeacher(LogisticRegression(), batched=False).train(X, two, 8),
    )


def test_logistic_regressions_come_back_bit_for_bit_from_arrays():
    voters = logistic_voters()
    written = dump_voters(Secret(voters)).reveal()
    assert is_linear_file(written)
    for before, after in zip(voters, load_voters(written).reveal(), strict=True):
        assert type(before) is type(after)
        assert (before.vote(X) == after.vote(X)).all()
        assert getattr(before, "threshold", None) == getattr(after, "threshold", None)
        if hasattr(before, "estimator"):
            old, new = vars(before.estimator), vars(after.estimator)
            assert old.keys() == new.keys()
            for name, value in old.items():
                assert type(value) is type(new[name]), name
                assert np.asarray(value).tobytes() == np.asarray(new[name]).tobytes() or value is new[name], name
            assert before.codes.tobytes() == after.codes.tobytes()


def _changed(**changes):
    voter = logistic_voters()[0]
    for name, value in changes.items():
        setattr(voter.estimator, name, value)
    return voter


@pytest.mark.parametrize(
    "voter",
    [
        _changed(coef_=np.zeros((3, 3), dtype=np.float32)),
        _changed(coef_=np.asfortranarray(RNG.normal(size=(3, 3)))),
        _changed(classes_=np.array([0, 2, 1])),
        _changed(feature_names_in_=np.array(["a", "b", "c"], dtype=object)),
        _changed(random_state=np.random.RandomState(0)),
        _changed(class_weight={0: 1.0, 1: 2.0, 2: 1.0}),
    ],
)
def test_what_arrays_would_not_bring_back_as_it_was_is_left_to_skops(voter):
    assert dump_linear((voter,)) is None
    assert dump_linear((logistic_voters()[0], voter)) is None


def test_teachers_with_different_parameters_are_left_to_skops():
    assert dump_linear((logistic_voters()[0], *trained(LogisticRegression(C=2.0)))) is None


def rewritten(**changes):
    """A file of arrays in which some were altered; each is given as a function of what was there."""
    written = dump_voters(Secret(logistic_voters())).reveal()
    with np.load(io.BytesIO(written), allow_pickle=False) as found:
        arrays = {name: changes[name](found[name]) if name in changes else found[name] for name in found.files}
    altered = io.BytesIO()
    np.savez(altered, **arrays)
    return altered.getvalue()


def test_an_altered_file_of_arrays_is_refused():
    for change in (
        {"format": lambda _: np.array("another")},
        {"kinds": lambda _: np.array([9])},
        {"coef": lambda coef: coef[:-1]},
        {"parameters": lambda _: np.array('{"surprise": 1}')},
        {"parameters": lambda _: np.array("no json")},
        {"codes": lambda codes: codes[:0]},
    ):
        with pytest.raises(PreconditionFailed, match="not a file of teachers"):
            load_voters(rewritten(**change))


def test_an_array_of_objects_in_the_file_is_not_unpickled(tmp_path):
    class Calls:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "called",))

    altered = rewritten(kinds=lambda _: np.array([Calls()], dtype=object))
    with pytest.raises(PreconditionFailed, match="not a file of teachers"):
        load_voters(altered)
    assert not (tmp_path / "called").exists()
    np.load(io.BytesIO(altered), allow_pickle=True)["kinds"]
    assert (tmp_path / "called").exists()

"""Votes made elsewhere are read strictly: the same counts in every format, and no vote in any message."""

import io
import lzma
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.errors import DataRefused, InvalidParameter, QuorateError
from quorate.folder.votes_file import read_votes

COUNTS = np.array([[7, 2, 1], [0, 10, 0], [3, 3, 4], [10, 0, 0]])
NAMES = ["cat", "dog", "owl"]
LABELS = np.array([[0, 1, 2, 0, -1], [2, 2, 2, 2, 2], [-1, -1, -1, -1, 1]])


def write(path, array):
    if path.name.endswith(".npy.xz"):
        content = io.BytesIO()
        np.save(content, array)
        path.write_bytes(lzma.compress(content.getvalue()))
    elif path.suffix == ".npy":
        np.save(path, array)
    else:
        frame = pl.DataFrame(array, schema=NAMES[: array.shape[1]])
        if path.suffix == ".csv":
            frame.write_csv(path)
        elif path.suffix == ".tsv":
            frame.write_csv(path, separator="\t")
        else:
            frame.write_parquet(path)
    return path


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.parquet", "v.npy", "v.npy.xz"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint8])
@pytest.mark.parametrize("kind", ["auto", "counts"])
def test_counts_are_the_same_in_every_format(tmp_path, name, dtype, kind):
    found = read_votes(write(tmp_path / name, COUNTS.astype(dtype)), classes=NAMES, kind=kind)
    assert found.counts.reveal().tolist() == COUNTS.tolist()
    assert found.counts.reveal().dtype == np.int64
    assert (found.classes, found.n_teachers, found.n_queries) == (tuple(NAMES), 10, 4)
    assert "Secret(…)" in repr(found)
    assert "[" not in repr(found).replace("Secret(…)", "")


def test_columns_in_another_order_are_put_in_the_order_of_the_classes(tmp_path):
    path = write(tmp_path / "v.csv", COUNTS)
    found = read_votes(path, classes=["owl", "cat", "dog"])
    assert found.counts.reveal().tolist() == COUNTS[:, [2, 0, 1]].tolist()
    assert found.classes == ("owl", "cat", "dog")


def test_classes_that_are_numbers_name_columns(tmp_path):
    (tmp_path / "v.csv").write_text("1,0\n3,2\n1,4\n")
    assert read_votes(tmp_path / "v.csv", classes=[0, 1]).counts.reveal().tolist() == [[2, 3], [4, 1]]


def test_abstentions_need_the_number_of_teachers(tmp_path):
    path = write(tmp_path / "v.csv", COUNTS - np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]]))
    with pytest.raises(DataRefused, match=r"do not add up to one number of teachers.*--n-teachers"):
        read_votes(path, classes=NAMES)
    assert read_votes(path, classes=NAMES, n_teachers=12).n_teachers == 12
    with pytest.raises(DataRefused, match="a query with more votes than n_teachers=9"):
        read_votes(path, classes=NAMES, n_teachers=9)


def slow_counts(labels, n_classes):
    return [[sum(vote == code for vote in row) for code in range(n_classes)] for row in labels.tolist()]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", ["v.npy", "v.npy.xz"])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float64])
def test_labels_by_index_are_counted(tmp_path, name, dtype):
    found = read_votes(write(tmp_path / name, LABELS.astype(dtype)), classes=NAMES)
    assert found.counts.reveal().tolist() == slow_counts(LABELS, 3)
    assert found.n_teachers == 5


@pytest.mark.parametrize("name", ["v.csv", "v.parquet"])
def test_labels_by_name_are_counted_and_empty_fields_are_abstentions(tmp_path, name):
    words = [[NAMES[code] if code >= 0 else None for code in teacher] for teacher in LABELS.T.tolist()]
    frame = pl.DataFrame({f"teacher {number}": column for number, column in enumerate(words)})
    path = tmp_path / name
    frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)
    found = read_votes(path, classes=NAMES)
    assert found.counts.reveal().tolist() == slow_counts(LABELS, 3)
    assert found.n_teachers == 5


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("classes", "cells"),
    [
        (["0", "1"], [["1", "0", ""], ["1", "", "0"]]),  # whole numbers with empty fields
        (["0", "1"], [["1.0", "0.0", ""], ["1.0", "", "0.0"]]),  # as other tools write them
        (["0", "1"], [["1", "0", "-1"], ["1", "-1", "0"]]),
        (["false", "true"], [["true", "false", ""], ["true", "", "false"]]),
        (["False", "True"], [["True", "False", ""], ["True", "", "False"]]),
        (["no", "yes"], [[" yes", "no ", " "], ["yes", "-1", "no"]]),
    ],
)
def test_labels_are_read_however_their_column_was_typed(tmp_path, classes, cells):
    text = "a,b,c\n" + "".join(",".join(row) + "\n" for row in cells)
    (tmp_path / "v.csv").write_text(text)
    assert read_votes(tmp_path / "v.csv", classes=classes).counts.reveal().tolist() == [[1, 1], [1, 1]]


def test_minus_one_may_be_a_class(tmp_path):
    (tmp_path / "v.csv").write_text("a,b,c\n-1,1,1\n-1,-1,\n")
    assert read_votes(tmp_path / "v.csv", classes=["-1", "1"]).counts.reveal().tolist() == [[1, 2], [2, 0]]


@settings(max_examples=30, deadline=None)
@given(
    labels=st.integers(2, 5).flatmap(
        lambda k: st.lists(st.lists(st.integers(-1, 2), min_size=k, max_size=k), min_size=1, max_size=6)
    )
)
def test_counts_and_labels_of_the_same_votes_agree(tmp_path_factory, labels):
    folder = tmp_path_factory.mktemp("votes")
    by_label = read_votes(write(folder / "l.npy", np.array(labels)), classes=NAMES, kind="labels")
    whole = slow_counts(np.array(labels), 3)
    by_count = read_votes(
        write(folder / "c.npy", np.array(whole)), classes=NAMES, kind="counts", n_teachers=len(labels[0])
    )
    assert by_label.counts.reveal().tolist() == by_count.counts.reveal().tolist() == whole


def test_as_many_teachers_as_classes_must_say_what_they_are(tmp_path):
    path = write(tmp_path / "v.npy", np.array([[0, 1, 1], [2, 2, 2]]))
    assert read_votes(path, classes=NAMES, kind="labels").counts.reveal().tolist() == [[1, 2, 0], [0, 0, 3]]
    assert read_votes(path, classes=NAMES, n_teachers=6).counts.reveal().tolist() == [[0, 1, 1], [2, 2, 2]]


SECRET = 86_421  # a vote that no message may tell


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("name", "content", "how"),
    [
        ("v.csv", f"cat,dog\n{SECRET},1\n", {}),
        ("v.csv", f"cat,dog,owl,cow\n1,2,3,{SECRET}\n", {"kind": "counts"}),
        ("v.csv", f"{SECRET},2,3\n{SECRET},1,2\n", {"kind": "counts"}),  # without a header
        ("v.csv", f"{SECRET},{SECRET},3\n{SECRET},1,2\n", {}),
        ("v.csv", f"cat,dog,owl\n{SECRET},1,2,3\n", {}),
        ("v.csv", f"cat,dog,owl\n1,2,{SECRET}.5\n", {}),
        ("v.csv", f"cat,dog,owl\n1,2,-{SECRET}\n", {}),
        ("v.csv", f"cat,dog,owl\n1,2,\n1,2,{SECRET}\n", {}),
        ("v.csv", f"cat,dog,owl\n1,2,many\n1,2,{SECRET}\n", {}),
        ("v.csv", f"cat,dog,owl\n1,2,{SECRET}\n1,2,3\n", {}),
        ("v.csv", f"cat,dog,owl\n1,2,{SECRET}\n", {"n_teachers": 12}),
        ("v.csv", "cat,dog,owl\n1,2,1e300\n", {}),
        ("v.csv", "cat,dog,owl\n1,2,inf\n", {}),
        ("v.csv", "cat,dog,owl\n0,0,0\n", {}),
        ("v.csv", "cat,dog,owl\n", {}),
        ("v.csv", "", {}),
        ("v.csv", f"a,b\ncat,{SECRET}\n", {}),
        ("v.csv", f"cat,owl\ncat,{SECRET}\n", {"kind": "labels"}),
        ("v.csv", "cat,owl\ncat,dog\n", {"kind": "labels"}),  # the first line is a query
        ("v.csv", "a,b\ncat,dog\n", {"n_teachers": 3}),
        ("v.parquet", b"no parquet", {}),
        ("v.npy", b"no array", {}),
        ("v.npy.xz", b"no archive", {}),
        ("v.npy.xz", lzma.compress(b"no array"), {}),
        ("v.npy", np.array([[1, 2, SECRET]], dtype=object), {}),
        ("v.npy", np.array([1, 2, SECRET]), {}),
        ("v.npy", np.zeros((2, 2, 3)), {}),
        ("v.npy", np.zeros((0, 3)), {}),
        ("v.npy", np.ones((2, 3), dtype=bool), {}),
        ("v.npy", np.array([[1.0, 2.0, np.nan]]), {}),
        ("v.npy", np.array([[1, 2, 2**63]], dtype=np.uint64), {}),
        ("v.npy", np.array([[1, 2, 3, SECRET]]), {}),
        ("v.npy", np.array([[0, 1, 2, -2]]), {}),
        ("v.npy", np.array([[0, 1, 2, 0.5]]), {}),
        ("v.npy", np.array([[0, 1, 2, np.nan]]), {}),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_that_tells_no_vote(tmp_path, name, content, how):
    path = tmp_path / name
    if isinstance(content, np.ndarray):
        np.save(path, content, allow_pickle=True)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataRefused) as refusal:
        read_votes(path, classes=NAMES, **how)
    said = str(refusal.value).replace(str(tmp_path), "")
    assert "\n" not in said
    assert str(path.name) in said
    assert not re.search(rf"{SECRET}|86,421|\brow \d|\bline \d", said)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


def test_an_archive_of_arrays_is_no_array(tmp_path):
    with (tmp_path / "v.npy").open("wb") as file:
        np.savez(file, COUNTS)
    with pytest.raises(DataRefused, match="is not an array file"):
        read_votes(tmp_path / "v.npy", classes=NAMES)


@pytest.mark.parametrize("name", ["v.csv", "v.parquet", "v.npy", "v.npy.xz"])
def test_a_missing_file_is_said_to_be_missing(tmp_path, name):
    with pytest.raises(DataRefused, match="there is no"):
        read_votes(tmp_path / name, classes=NAMES)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "how",
    [
        {"classes": ["cat"]}, {"classes": ["cat", "cat", "owl"]}, {"classes": NAMES, "kind": "votes"},
        {"classes": NAMES, "n_teachers": 0}, {"classes": NAMES, "n_teachers": True},
        {"classes": NAMES, "n_teachers": 10.0},
    ],
)  # fmt: skip
def test_arguments_are_checked(tmp_path, how):
    with pytest.raises(InvalidParameter):
        read_votes(write(tmp_path / "v.csv", COUNTS), **how)


def test_a_column_is_told_by_its_place_alone(tmp_path):
    (tmp_path / "v.csv").write_text(f"cat,dog_{SECRET},x\ncat,dog,owl\ncat,dog,cow\n")
    with pytest.raises(QuorateError, match="column 3 holds a vote that is none of the declared classes"):
        read_votes(tmp_path / "v.csv", classes=NAMES, kind="labels")

"""A published model is opened, or refused in one line, whatever is wrong with the file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from quorate.deferred import skops
from quorate.errors import PreconditionFailed
from quorate.folder.published import student_from, untrusted_types


def opened(content: bytes) -> object:
    return student_from(content, place="student.skops", trusted=(), name_them_in="trusted=", anew="export it again")


def model() -> bytes:
    return skops.io.dumps(LogisticRegression().fit(np.eye(4), [0, 1, 0, 1]))


def damaged(content: bytes) -> bytes:
    """The description is whole, and the numbers that it describes are cut off."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as read, zipfile.ZipFile(made, "w") as written:
        for name in read.namelist():
            kept = read.read(name)
            written.writestr(name, kept[:20] if name.endswith(".npy") else kept)
    return made.getvalue()


def test_a_model_is_opened() -> None:
    assert opened(model()).predict(np.eye(4)).shape == (4,)


def test_what_a_model_of_trees_has_to_be_trusted_with_is_named() -> None:
    made = RandomForestClassifier(2, random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    assert untrusted_types(skops.io.dumps(made)) == ["sklearn.tree._tree.Tree"]
    assert untrusted_types(model()) == []


@pytest.mark.parametrize("content", [lambda _: b"", lambda _: b"no archive", lambda whole: whole[:300], damaged])
def test_a_damaged_file_is_refused_in_one_line(content: Callable[[bytes], bytes]) -> None:
    with pytest.raises(PreconditionFailed, match=r"^student.skops cannot be read; export it again$") as refused:
        opened(content(model()))
    assert refused.value.__cause__ is None

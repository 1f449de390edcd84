"""A Secret tells nothing by any side door."""

import copy
import json
import logging
import pickle

import numpy as np
import pytest

from quorate.errors import SecretRefused
from quorate.types import Secret, derive

FORBIDDEN = "4711"


@pytest.fixture
def secret():
    return Secret([4711, 2, 3])


def test_what_is_printed_tells_nothing_not_even_a_size(secret, caplog):
    logging.getLogger("test").warning("%s %r", secret, secret)
    printed = [repr(secret), str(secret), f"{secret}", f"{secret:>30}", f"{secret!r}", f"{secret}", caplog.text]
    assert all(FORBIDDEN not in text for text in printed)
    assert repr(Secret([1])) == repr(secret)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "door",
    [
        pickle.dumps, copy.copy, copy.deepcopy, list, len, bool, float, int, np.asarray, sorted, json.dumps,
        lambda s: s[0], lambda s: 4711 in s, lambda s: s < s, lambda s: pickle.dumps(s, protocol=0),
    ],
)  # fmt: skip
def test_every_side_door_is_shut(secret, door):
    with pytest.raises(TypeError) as refusal:
        door(secret)
    assert FORBIDDEN not in str(refusal.value)
    with pytest.raises(SecretRefused):  # the package's own error
        iter(secret)


def test_it_has_no_attributes_that_show_it(secret):
    with pytest.raises(TypeError):
        vars(secret)
    assert secret.reveal() == [4711, 2, 3]


def test_equality_is_identity(secret):
    assert secret == secret
    assert secret != Secret([4711, 2, 3])


def test_derived_keys_differ_by_purpose_and_index_and_key():
    a, b = Secret(bytes(32)), Secret(bytes(31) + b"\x01")
    assert len({derive(a, "x"), derive(a, "x", 1), derive(a, "y"), derive(b, "x")}) == 4
    assert derive(a, "x") == derive(Secret(bytes(32)), "x")

"""The same query gets the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.labelling import Memo, distinct

queries = st.lists(st.binary(max_size=2), max_size=12)


@given(digests=queries)
def test_distinct_finds_first_appearances_in_order(digests):
    first, which = distinct(digests)
    seen = list(dict.fromkeys(digests))
    assert [digests[row] for row in first] == seen
    assert first.tolist() == [digests.index(each) for each in seen]
    assert [seen[query] for query in which] == digests


def test_no_queries_are_no_queries():
    first, which = distinct([])
    assert first.tolist() == which.tolist() == []
    assert first.dtype == which.dtype == "int64"


@given(digests=queries, answers=st.lists(st.integers(-1, 3), min_size=12, max_size=12))
def test_the_first_answer_stays(digests, answers):
    memo, slow = Memo(), {}
    for digest, answer in zip(digests, answers, strict=False):
        memo.remember([digest], [answer])
        slow.setdefault(digest, answer)
    assert len(memo) == len(slow)
    assert {digest: memo.recall(digest) for digest in slow} == slow


def test_what_was_never_asked_is_none_and_what_was_declined_is_not():
    memo = Memo({b"a": -1})
    assert memo.recall(b"a") == -1
    assert memo.recall(b"b") is None


def test_a_memo_keeps_a_copy_of_what_it_was_given():
    answers = {b"a": 1}
    memo = Memo(answers)
    answers[b"a"] = 0
    assert memo.recall(b"a") == 1


def test_every_query_has_one_answer():
    with pytest.raises(ValueError, match="zip"):
        Memo().remember([b"a", b"b"], [1])

"""What an estimator shows of itself: a line of text, and a card in a notebook, without a script and without secrets."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.estimators.small_task import POOL, N, X, Y, classifier, table

from quorate import LabelPrivateClassifier, PrivateClassifier, PrivateLogisticRegression, PublicPool, SubsampleAggregate
from quorate.errors import QuorateError

LEAST: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5}


class Tags(HTMLParser):
    """Which tags there are, all of them closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def card(estimator: Any) -> str:
    page = estimator._repr_mimebundle_()["text/html"]
    assert page == estimator._repr_html_()
    assert "script" not in Tags(page).seen
    assert len(page) < 6_000
    return str(page)


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


@pytest.mark.heavy
def test_a_fitted_classifier_shows_its_guarantee_and_what_is_left(clf: PrivateClassifier) -> None:
    said = words(card(clf))
    assert "PrivateClassifier · fitted" in said
    assert "guarantee ε ≤ 4, δ ≤ 1e-5 for any one record" in said
    assert "left 30 answers, already charged; ε 0 of 4" in said
    assert "ledger in memory: nothing durable was recorded" in said
    assert repr(clf).startswith("PrivateClassifier(")
    shown = "\n  guarantee: ε ≤ 4, δ ≤ 1e-5 for any one record\n  left: 30 answers, already charged; ε 0 of 4"
    assert repr(clf).endswith(shown)
    clf.ask(table(3, 8)[0])
    assert "left 27 answers" in words(card(clf))
    assert str(N) not in said


def test_an_estimator_that_is_not_fitted_says_what_a_fit_may_cost() -> None:
    for estimator in (
        classifier(),
        LabelPrivateClassifier(**LEAST),
        PrivateLogisticRegression(classes=[0, 1], **LEAST),
        SubsampleAggregate(**LEAST, n_shards=80, cutoff=1, n_queries=5),
    ):
        said = words(card(estimator))
        assert f"{type(estimator).__name__} · not fitted" in said
        assert "a fit may cost ε = 4, δ = 1e-5" in said
        assert "guarantee" not in repr(estimator)


@pytest.mark.heavy
@pytest.mark.several_fits
def test_the_others_show_theirs() -> None:
    direct = PrivateLogisticRegression(classes=[0, 1], **LEAST).fit(X, Y, public=PublicPool(POOL))
    assert "left ε 0 of 4" in words(card(direct))
    aggregate = SubsampleAggregate(**LEAST, n_shards=60, cutoff=1, n_queries=5, n_jobs=1).fit(X)
    assert "left 5 questions, of which 1 may be declined" in words(card(aggregate))


@pytest.mark.heavy
def test_a_seed_is_told_and_no_guarantee() -> None:
    seeded = classifier(unsafe_noise_seed=1, queries=20).fit(X, Y, public=PublicPool(POOL))
    assert "guarantee none: the noise was seeded" in words(card(seeded))
    assert "ε ≤" not in repr(seeded)


def test_arguments_are_escaped_and_text_alone_is_shown_where_that_is_asked_for() -> None:
    odd = classifier(classes=["<script>alert(1)</script>", "b"])
    assert "<script" not in card(odd)
    with config_context(display="text"):
        assert set(odd._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(odd, "_repr_html_")


def test_it_is_shown_inside_a_pipeline() -> None:
    pipeline = make_pipeline(FunctionTransformer(), classifier())
    assert "PrivateClassifier(" in repr(pipeline)
    assert "PrivateClassifier" in pipeline._repr_html_()


@pytest.mark.heavy
def test_printing_opens_no_ledger(clf: PrivateClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise QuorateError("a ledger was opened")

    monkeypatch.setattr("quorate.release.charge.session", refuse)
    with pytest.raises(QuorateError):
        clf.ask(X[:1])
    assert "guarantee" in repr(clf)
    assert "guarantee" in card(clf)

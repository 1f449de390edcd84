"""What all estimators show: a line where they are printed, a card in a notebook, their report, their model as a file.

A line and a card are made from what was known when an estimator was fitted or asked last, so that printing one opens no
ledger. The card has no script, takes its colours from the page around it, and so is read on light and on dark ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator

from quorate.accounting import Guarantee
from quorate.accounting.attacker import rounded_up
from quorate.accounting.figures import at_least, at_most
from quorate.arguments import one_of
from quorate.errors import PreconditionFailed, SeededNoiseRefused
from quorate.export.onnx_model import onnx_student
from quorate.folder.published import model_bytes
from quorate.ledger import Ledger
from quorate.release.keys import file_to_write, told_as_typed
from quorate.release.session import NoFolds
from quorate.report import Facts, render_html
from quorate.report.html import Markup, element
from quorate.report.sentences import bound
from quorate.report.words import LANGUAGES, Language
from quorate.run.facts import RunMetadata
from quorate.stored_names import stored_as


def write_report(facts: Callable[[], Facts], path: str | Path, language: Language) -> Path:
    """Write the public report, once the place and the language are known to be right; return where it stands."""
    one_of("language", language, LANGUAGES)
    page = file_to_write(path, "report.html")
    content = render_html(facts(), language=language)
    with told_as_typed(page):
        page.write_text(content, encoding="utf-8")
    return page


def write_model(model: Any, path: str | Path, *, seeded: bool, public: Any = None) -> Path:
    """Write a model with skops, for anybody who has scikit-learn; as ONNX where the name ends in ``.onnx``.

    An ONNX file is compared with the model on `public`, the public rows as the model takes them, before it is written.

    Raises SeededNoiseRefused if the noise was seeded: such a model carries no guarantee and does not leave;
    PreconditionFailed if no file can be written there, its name says that it is a pickle, or the model cannot be
    converted.
    """
    if seeded:
        raise SeededNoiseRefused(
            "seeded noise: this run is reproducible, therefore not private. Every output is marked and export is "
            "refused. Remove unsafe_noise_seed"
        )
    page = file_to_write(path, "student.skops")
    if page.suffix.lower() in (".pkl", ".pickle", ".joblib"):
        raise PreconditionFailed(
            f"export writes the format of skops, which runs no code when it is opened, and {page.name} says that it is "
            f"a pickle; give a name such as {page.with_suffix('.skops').name}",
            charged="nothing more was charged",
        )
    if page.suffix.lower() == ".onnx":
        if public is None:
            raise PreconditionFailed(
                "no public rows are kept with this model, on which an ONNX file could be compared with it; write a "
                ".skops file, or let a run in a folder write it: quorate export RUN --model onnx",
                charged="nothing more was charged",
            )
        content = onnx_student(model, public).content
        with told_as_typed(page):
            page.write_bytes(content)
        return page
    with told_as_typed(page):
        page.write_bytes(model_bytes(model))
    return page


_BOX = (
    "font:13px/1.5 system-ui,sans-serif;color:inherit;background:transparent;border:1px solid #8888;"
    "border-left:4px solid #4a7ebb;border-radius:4px;padding:.5em .8em;max-width:44em;overflow-wrap:anywhere"
)
_NAME = "font-weight:600;padding:0 1em 0 0;text-align:left;vertical-align:top;white-space:nowrap"
_CELL = "text-align:left;vertical-align:top;padding:0"
_PLAIN = "white-space:pre-wrap;font-size:12px;margin:.3em 0 0;background:transparent;color:inherit"


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What a fitted estimator tells of itself, in words: public facts, what its ledger had left, and where that is."""

    guarantee: Guarantee
    left: str
    kept: str

    @classmethod
    def of(cls, guarantee: Guarantee, ledger: Ledger, *, answers: str | None = None) -> Standing:
        """Read what is left off an open ledger; `answers`: what may still be asked, in words, if anything."""
        budget, left = ledger.budget, ledger.left
        amounts = ""
        if left.epsilon is not None:
            epsilon = left.epsilon if left.epsilon > 1e-6 * budget.epsilon else 0.0
            amounts = f"ε {at_least(epsilon)} of {at_most(budget.epsilon)}"
        words = "; ".join(part for part in (answers, amounts) if part)
        return cls(guarantee=guarantee, left=words, kept=ledger.place)

    @property
    def promised(self) -> str:
        """The guarantee in one line."""
        if self.guarantee.seeded:
            return "none: the noise was seeded, which is reproducible, therefore not private"
        return f"{bound(self.guarantee.epsilon, self.guarantee.delta)} for {self.guarantee.neighbouring.any_one}"


@stored_as("quorate.estimators.shown.ShownEstimator")
class ShownEstimator(NoFolds, BaseEstimator):
    """An estimator that shows its guarantee, and what is left, beside its arguments."""

    _called: str  # in reports and messages
    _reads_missing = True  # cells; of a table, where its columns are read
    _standing: Standing
    guarantee_: Guarantee

    @property
    def epsilon_(self) -> float:
        """ε of `guarantee_` as it is printed: rounded up to four digits."""
        return float(rounded_up(self.guarantee_.epsilon))

    @property
    def delta_(self) -> float:
        """δ of `guarantee_` as it is printed: rounded up to four digits."""
        return float(rounded_up(self.guarantee_.delta))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        arguments = str(super().__repr__(N_CHAR_MAX))
        standing = getattr(self, "_standing", None)
        if standing is None:
            return arguments
        method = getattr(self, "method_", None)
        said = "" if method is None else f"\n  method: {method.in_words}"
        return f"{arguments}{said}\n  guarantee: {standing.promised}\n  left: {standing.left}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._reads_missing
        return tags

    def _metadata(self, act: str, tables: str = "X, y, public=...") -> RunMetadata:
        """Say when and by which call a fit was made."""
        return RunMetadata(
            title=f"{self._called}.{act}",
            command=f"{self._called}(...).{act}({tables})",
            started=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _repr_html_inner(self) -> str:
        return self._card()

    def _html_repr(self) -> str:
        return self._card()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows; text alone where ``sklearn.set_config(display="text")`` was called."""
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._card()
        return bundle

    def _card(self) -> str:
        """Return the card as HTML."""
        standing = getattr(self, "_standing", None)
        rows = self._price_rows() if standing is None else _standing_rows(standing)
        if standing is not None and (method := getattr(self, "method_", None)) is not None:
            rows = [("method", method.in_words), *rows]
        table = element(
            "table",
            *(
                element("tr", element("th", name, style=_NAME, scope="row"), element("td", words, style=_CELL))
                for name, words in rows
            ),
            style="border:0;border-collapse:collapse;margin:.3em 0;background:transparent;color:inherit",
        )
        head = element("b", type(self).__name__)
        state = " · not fitted" if standing is None else " · fitted"
        arguments = element("pre", BaseEstimator.__repr__(self), style=_PLAIN)
        return element("div", head, state, table, _folded("arguments", arguments), style=_BOX)

    def _price_rows(self) -> list[tuple[str, str]]:
        """What a fit would cost."""
        bounds = (getattr(self, name, None) for name in ("epsilon", "delta"))
        epsilon, delta = (at_most(bound, 6) if isinstance(bound, float | int) else bound for bound in bounds)
        return [("a fit may cost", f"ε = {epsilon}, δ = {delta}"), ("spent", "nothing by this estimator")]


def _standing_rows(standing: Standing) -> list[tuple[str, str]]:
    rows = [("guarantee", standing.promised), ("left", standing.left), ("ledger", standing.kept)]
    return [*rows, *(("caveat", caveat) for caveat in standing.guarantee.caveats)]


def _folded(title: str, content: Markup) -> Markup:
    return element("details", element("summary", title, style="cursor:pointer"), content)

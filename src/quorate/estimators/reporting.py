"""What all classifiers do once they are fitted: their report, their table for the terminal, their model as a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quorate.ambient import own_switches
from quorate.arguments import one_of
from quorate.errors import PreconditionFailed, SeededNoiseRefused
from quorate.export.onnx_model import onnx_student
from quorate.release.keys import file_to_write
from quorate.report import Facts, render_html, render_text
from quorate.report.words import LANGUAGES, Language


class Reporting:
    """A classifier that tells what it did."""

    @abstractmethod
    def facts(self, *, evaluation: tuple[Any, Any] | None = None, scoring: str | None = None) -> Facts:
        """Gather what a report says."""

    @own_switches()
    def report(
        self,
        path: str | Path,
        *,
        evaluation: tuple[Any, Any] | None = None,
        scoring: str | None = None,
        language: Language = "en",
    ) -> Path:
        """Write the public report: one self-contained HTML file.

        `evaluation`, `scoring`: those of :meth:`facts`. `language`: "en", "de" or "fr", of the first page and of the
        headings; else InvalidParameter is raised.
        """
        return write_report(lambda: self.facts(evaluation=evaluation, scoring=scoring), path, language)

    @own_switches()
    def summary(self, *, evaluation: tuple[Any, Any] | None = None, scoring: str | None = None) -> str:
        """Return the end of a run as a table for the terminal, 80 columns wide."""
        return render_text(self.facts(evaluation=evaluation, scoring=scoring))


def write_report(facts: Callable[[], Facts], path: str | Path, language: Language) -> Path:
    """Write the public report, once the place and the language are known to be right; return where it stands."""
    one_of("language", language, LANGUAGES)
    page = file_to_write(path, "report.html")
    page.write_text(render_html(facts(), language=language), encoding="utf-8")
    return page


def write_model(model: Any, path: str | Path, *, seeded: bool, public: Any = None, **how: Any) -> Path:
    """Write a model with skops, for anybody who has scikit-learn; as ONNX where the name ends in ``.onnx``.

    An ONNX file is compared with the model on `public`, the public rows as the model takes them, before it is written.

    Raises SeededNoiseRefused if the noise was seeded: such a model carries no guarantee and does not leave;
    PreconditionFailed if no file can be written there, its name says that it is a pickle, or the model cannot be
    converted.
    """
    from quorate.deferred import skops

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
        page.write_bytes(onnx_student(model, public).content)
        return page
    skops.io.dump(model, page, **how)
    return page

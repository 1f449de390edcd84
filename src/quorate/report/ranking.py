"""How a model of two classes orders rows: its ROC and precision–recall curves, and what each threshold does."""

from __future__ import annotations

from quorate.report import html
from quorate.report.facts import Facts
from quorate.report.html import Child, element, table
from quorate.report.notation import percent, shortened, visible
from quorate.report.utility import OperatingPoint

_NAME = 40  # columns of a class name


def ranking(facts: Facts) -> tuple[Child, ...]:
    """Return two curves and a table of thresholds; nothing where the student was not scored, or has more classes."""
    student = facts.utility.student
    if student is None or student.ranking is None:
        return ()
    curves = student.ranking
    name = shortened(visible(facts.setup.classes[curves.positive]), _NAME)
    share = percent(curves.share)
    curve = curves.curve
    roc = (
        f"ROC curve: of the rows that are “{name}”, the share that is flagged (upwards), by the share of the other "
        f"rows that is flagged (to the right). Area {curves.roc_auc:.3f}; 0.5 by chance."
    )
    precision = (
        f"Precision–recall curve: of the flagged rows, the share that is “{name}” (upwards), by the share of those "
        f"rows that is flagged (to the right). Average precision {curves.average_precision:.3f}; "
        f"{curves.share:.3f} by chance."
    )
    chosen = "" if curves.positive else f", with the share of “{name}” declared in [data] class_shares"
    return (
        element("h3", f"How “{name}” is found"),
        element(
            "div",
            _figure(
                roc,
                html.unit_square(
                    roc, [(0.0, 0.0), *((p.false_alarms, p.recall) for p in curve), (1.0, 1.0)], chance=((0, 0), (1, 1))
                ),
            ),
            _figure(
                precision,
                html.unit_square(
                    precision, [(p.recall, p.precision) for p in curve], chance=((0, curves.share), (1, curves.share))
                ),
            ),
            class_="curves",
        ),
        table(
            f"What each threshold does: a row is flagged as “{name}” from that probability on. {share} of these rows "
            f"are. [student] decision_threshold takes such a number{chosen}.",
            ("Threshold", "#Flagged", "#Precision", "#Recall", "#False alarms"),
            (
                *(_row(f"{point.threshold:.3g}", point) for point in curves.thresholds),
                _row(element("strong", f"{curves.in_use.threshold:.3g} — this model"), curves.in_use),
            ),
        ),
    )


def _figure(words: str, picture: Child) -> Child:
    return element("figure", picture, element("figcaption", words, class_="note"))


def _row(threshold: Child, point: OperatingPoint) -> tuple[Child, ...]:
    precision = percent(point.precision) if point.flagged else "—"
    return threshold, percent(point.flagged), precision, percent(point.recall), percent(point.false_alarms)

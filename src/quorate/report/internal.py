"""What only the internal edition shows: margins and facts per teacher. None of it may be published."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quorate.accounting.figures import several
from quorate.report import html
from quorate.report.chart import Axis, Chart
from quorate.report.html import Child, Markup, element, table
from quorate.report.notation import percent
from quorate.report.plain import Plain, require

NOT_FOR_RELEASE = "not for release"
MARGIN_BINS = 40
LISTED_TEACHERS = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class TeacherFacts(Plain):
    """One teacher, as its owner may see it."""

    index: int
    n_records: int
    status: str
    accuracy: float | None = None

    def _check(self) -> None:
        require(self.accuracy is None or 0 <= self.accuracy <= 1, "the accuracy of a teacher is a share in [0, 1]")


@dataclass(frozen=True, kw_only=True, slots=True)
class AgreementFacts(Plain):
    """How far the teachers agree with one model trained on all private rows.

    `plurality`: share of queries on which the largest count is that model's class. `correlation`: of the two margins
    over the queries; None where one of them never varies. `cumulated`: running sums of the expected margin, and of one
    half less the share of teachers that differ from the model.
    """

    plurality: float
    correlation: float | None
    cumulated: tuple[tuple[float, float], ...]

    def _check(self) -> None:
        require(0 <= self.plurality <= 1, "plurality is a share in [0, 1]")


@dataclass(frozen=True, kw_only=True, slots=True)
class StabilityFacts(Plain):
    """How far one exchanged record moves a teacher's scores, on average."""

    mean: float
    standard_error: float
    n_records: int
    exchanges: int


@dataclass(frozen=True, kw_only=True, slots=True)
class QualityFacts(Plain):
    """How near soft labels lie to 0 or 1: the least α of each query, in rising order."""

    beta: float
    weak: tuple[float, ...]
    strong: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class InternalFacts(Plain):
    """What only the owner may see; it travels inside a :class:`~quorate.types.Secret`.

    `margins`: gap between the two largest counts, in votes, and how many queries had it. `high_margin`: a margin ξ, and
    the share ν of queries whose expected margin is at most that (LZCW21 Def. 17). `agreement`: with one model trained
    on all private rows. `stability`: of a teacher, on average (BTT18 Def. 5.7). `quality`: of soft labels (BTT18 Def.
    5.11, 5.12). `teachers`: one per teacher. `notes`: sentences for the owner.
    """

    margins: tuple[tuple[int, int], ...] = ()
    high_margin: tuple[tuple[float, float], ...] = ()
    agreement: AgreementFacts | None = None
    stability: StabilityFacts | None = None
    quality: QualityFacts | None = None
    teachers: tuple[TeacherFacts, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "InternalFacts(…)"

    def _check(self) -> None:
        counts = all(gap >= 0 and times >= 0 for gap, times in self.margins)
        require(counts, "margins are pairs of a gap and a count, expected >= 0")


def owners_section(internal: InternalFacts) -> tuple[Child, ...]:
    """Return the section that the internal edition ends with."""
    return (
        *_margins(internal),
        *_high_margin(internal),
        *_agreement(internal),
        *_stability(internal),
        *_quality(internal),
        *_teachers(internal),
        *(element("p", note) for note in internal.notes),
    )


def _margins(internal: InternalFacts) -> tuple[Child, ...]:
    if not internal.margins:
        return ()
    widest = max(gap for gap, _ in internal.margins)
    wide = widest // MARGIN_BINS + 1
    heights = [0] * (widest // wide + 1)
    for gap, times in internal.margins:
        heights[gap // wide] += times
    title = f"Margins of the queries, from 0 to {widest:,} votes, in steps of {wide:,}."
    return (
        element("h3", "Margins"),
        element("figure", html.columns(title, heights), element("figcaption", title)),
    )


def _high_margin(internal: InternalFacts) -> tuple[Child, ...]:
    if not internal.high_margin:
        return ()
    chart = Chart(
        "Share of queries with a small margin",
        Axis("expected margin ξ", 0, 0.5),
        Axis("share ν of queries with a margin of at most ξ", 0, 1),
        "A line rising from the share of queries on which teachers are divided evenly to 1.",
        "top left",
        prefix="curve-",
    )
    xs, ys = zip(*internal.high_margin, strict=True)
    chart.line(xs, ys, "queries", 0)
    text = (
        "The lower the line stays, the more noise the votes can bear: (ν, ξ) of the approximate high-margin condition."
    )
    return (element("h3", "High margin"), _figure(chart, text))


def _agreement(internal: InternalFacts) -> tuple[Child, ...]:
    agreement = internal.agreement
    if agreement is None:
        return ()
    share = percent(agreement.plurality)
    text = f"The plurality is the class of one model trained on all private rows on {share} of queries."
    if agreement.correlation is not None:
        text += f" Margins for the plurality and for that class correlate at {agreement.correlation:.3f}."
    parts: list[Child] = [element("h3", "Agreement"), element("p", text)]
    if len(agreement.cumulated) > 1:
        xs, ys = zip(*agreement.cumulated, strict=True)
        chart = Chart(
            "Running sums of two margins over the queries",
            Axis("of the expected margin", 0, max(*xs, 1e-9)),
            Axis("of the margin for that model's class", min(0.0, *ys), max(*ys, 1e-9)),
            "A line; where it is straight, the plurality is that model's class everywhere.",
            "top left",
            prefix="sums-",
        )
        chart.line(xs, ys, "queries in their order", 1)
        parts.append(_figure(chart, "Straight where the plurality is that model's class on every query."))
    return tuple(parts)


def _stability(internal: InternalFacts) -> tuple[Child, ...]:
    stability = internal.stability
    if stability is None:
        return ()
    return (
        element("h3", "Stability"),
        element(
            "p",
            f"To exchange one of the {stability.n_records:,} records of a teacher moves its scores by "
            f"{stability.mean:.4f} on average (standard error {stability.standard_error:.4f}, "
            f"{stability.exchanges} exchanges).",
        ),
    )


def _quality(internal: InternalFacts) -> tuple[Child, ...]:
    quality = internal.quality
    if quality is None or not quality.weak:
        return ()
    chart = Chart(
        "How near soft labels lie to 0 or 1",
        Axis("share of queries", 0, 1),
        Axis("least α of a query", 0, 1),
        "Two rising lines: the mean score, and all but a few of the scores.",
        "top left",
        prefix="quality-",
    )
    for style, (name, values) in enumerate(
        (("of the mean score", quality.weak), (f"of all but {quality.beta:.0%} of the scores", quality.strong))
    ):
        chart.line([(k + 1) / len(values) for k in range(len(values))], values, name, style)
    return (element("h3", "Soft labels"), _figure(chart, "Low lines: the teachers are sure, and of the same class."))


def _figure(chart: Chart, caption: str) -> Markup:
    return element("figure", html.chart(chart), element("figcaption", caption))


def _teachers(internal: InternalFacts) -> tuple[Child, ...]:
    if not internal.teachers:
        return ()
    by_status = Counter(teacher.status for teacher in internal.teachers)
    states = "; ".join(f"{status}: {times:,}" for status, times in sorted(by_status.items()))
    scored = any(teacher.accuracy is not None for teacher in internal.teachers)
    order = sorted(internal.teachers, key=lambda t: (2.0 if t.accuracy is None else t.accuracy, t.n_records, t.index))
    listed = several(min(LISTED_TEACHERS, len(order)), "teacher")
    which = "the lowest accuracy on rows with known labels" if scored else "the fewest records"
    return (
        element("h3", "Teachers"),
        element("p", f"{several(len(internal.teachers), 'teacher')}. {states}."),
        table(
            f"The {listed} with {which}.",
            ("Teacher", "#Records", "State", *(("#Accuracy",) if scored else ())),
            (
                (
                    f"{t.index}",
                    f"{t.n_records:,}",
                    t.status,
                    *(("—" if t.accuracy is None else percent(t.accuracy),) if scored else ()),
                )
                for t in order[:LISTED_TEACHERS]
            ),
        ),
    )

"""What only the internal edition shows: margins and facts per teacher. None of it may be published."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quorate.errors import InvalidParameter
from quorate.report import drawing
from quorate.report.element import Child, element
from quorate.report.layout import table
from quorate.report.notation import percent, several
from quorate.report.plain import Plain

NOT_FOR_RELEASE = "not for release"
MARGIN_BINS = 40
LISTED_TEACHERS = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class TeacherFacts(Plain):
    """One teacher, as its owner may see it.

    Examples
    --------
    >>> TeacherFacts(index=3, n_records=80, status="fitted").accuracy is None
    True
    """

    index: int
    n_records: int
    status: str
    accuracy: float | None = None

    def _check(self) -> None:
        if not (self.accuracy is None or 0 <= self.accuracy <= 1):
            raise InvalidParameter("the accuracy of a teacher is a share in [0, 1]")


@dataclass(frozen=True, kw_only=True, slots=True)
class InternalFacts(Plain):
    """What only the owner may see; it travels inside a :class:`~quorate.types.Secret`.

    Parameters
    ----------
    margins : tuple of (int, int)
        Gap between the two largest counts, in votes, and how many queries had it.
    teachers : tuple of TeacherFacts
        One per teacher.
    notes : tuple of str
        Sentences for the owner.

    Examples
    --------
    >>> InternalFacts(margins=[(0, 3), (7, 90)]).margins
    ((0, 3), (7, 90))
    """

    margins: tuple[tuple[int, int], ...] = ()
    teachers: tuple[TeacherFacts, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "InternalFacts(…)"

    def _check(self) -> None:
        if any(gap < 0 or times < 0 for gap, times in self.margins):
            raise InvalidParameter("margins are pairs of a gap and a count, expected >= 0")


def owners_section(internal: InternalFacts) -> tuple[Child, ...]:
    """Return the section that the internal edition ends with."""
    return (*_margins(internal), *_teachers(internal), *(element("p", note) for note in internal.notes))


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
        element("figure", drawing.columns(title, heights), element("figcaption", title)),
    )


def _teachers(internal: InternalFacts) -> tuple[Child, ...]:
    if not internal.teachers:
        return ()
    by_status = Counter(teacher.status for teacher in internal.teachers)
    states = "; ".join(f"{status}: {times:,}" for status, times in sorted(by_status.items()))
    lowest = sorted(internal.teachers, key=lambda t: (2.0 if t.accuracy is None else t.accuracy, t.index))
    return (
        element("h3", "Teachers"),
        element("p", f"{several(len(internal.teachers), 'teacher')}. {states}."),
        table(
            f"The {LISTED_TEACHERS} with the lowest accuracy, or fewer.",
            ("Teacher", "#Records", "State", "#Accuracy"),
            (
                (f"{t.index}", f"{t.n_records:,}", t.status, "—" if t.accuracy is None else percent(t.accuracy))
                for t in lowest[:LISTED_TEACHERS]
            ),
        ),
    )

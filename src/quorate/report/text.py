"""The end of a run, in the terminal: one table that fits 80 columns."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

from quorate.errors import InvalidParameter
from quorate.findings import Outcome
from quorate.report import of_numbers, sentences
from quorate.report.facts import Facts
from quorate.report.method import words_of
from quorate.report.notation import columns, percent, shortened, visible
from quorate.report.plain import Plain
from quorate.report.sentences import baseline, calibrated, decides, expectation, scored, sets_in_words

NARROWEST = 40  #: columns; below that a table cannot be read
_LABEL = 12  # columns of the first column
_CLASSES = 5  # classes that get a line of their own


@dataclass(frozen=True, kw_only=True, slots=True)
class Outputs(Plain):
    """Where things are, for the terminal alone: paths are not part of what is published.

    Parameters
    ----------
    report, student : str or None
        Paths.
    next_command : str or None
        The command to try next.

    Examples
    --------
    >>> Outputs(report="run/public/report.html").student is None
    True
    """

    report: str | None = None
    student: str | None = None
    next_command: str | None = None


def render_text(facts: Facts, width: int = 80, *, outputs: Outputs | None = None) -> str:
    """Return the table that a run ends with.

    Parameters
    ----------
    facts : Facts
        What may be said.
    width : int
        Columns, at least 40. No line is longer, except where a path or a command is (they must stay whole to be
        copied).
    outputs : Outputs or None
        Where report and student are.

    Raises
    ------
    InvalidParameter
        ``width`` is not an integer of at least 40.
    """
    if isinstance(width, bool) or not isinstance(width, int) or width < NARROWEST:
        raise InvalidParameter(parameter="width", got=width, expected=f"an integer >= {NARROWEST} columns")
    outputs = outputs or Outputs()
    one_row = facts.guarantee.neighbouring.whose_rows
    rows = [
        *([("unit", one_row)] if one_row else []),
        *words_of(facts).text_rows(facts, width - _LABEL),
        *(("student", scored(score)) for score in (facts.utility.student,) if score is not None),
        *(("model", words) for words in (of_numbers.scored(facts),) if words is not None),
        *(("baseline", words) for words in (baseline(facts, facts.utility.student),) if words is not None),
        *(("decides", words) for words in (decides(facts),) if words is not None),
        *(("calibrated", words) for words in (calibrated(facts),) if words is not None),
        *(
            ("sets" if facts.setup.target_range is None else "intervals", words)
            for words in (sets_in_words(facts),)
            if words is not None
        ),
        *(("expected", words) for words in (expectation(facts.utility),) if words is not None),
        *(("weak", words) for words in _weak(facts)),
        *(
            ("no privacy", f"accuracy {percent(score.accuracy)}, the same student trained on the private rows")
            for score in (facts.utility.non_private,)
            if score is not None
        ),
        ("guarantee", guarantee_line(facts)),
        *_ex_post(facts),
        ("spent", sentences.spent(facts)),
        *(("raised", line) for line in sentences.raises(facts)),
        ("left", sentences.left(facts)),
    ]
    if failed := [check.words for check in facts.checks if check.outcome is Outcome.FAILED]:
        rows.append(("failed", " ".join(failed)))
    rule = "─" * width
    lines = [shortened(visible(f"{facts.provenance.run} · done"), width), rule]
    if facts.seeded:
        lines[:0] = [*_wrapped("!", f"{sentences.SEEDED}. {sentences.SEEDED_WHY}", width), ""]
    for label, words in rows:
        lines += _wrapped(label, visible(words), width)
    places = (("report", outputs.report), ("model", outputs.student), ("try next", outputs.next_command))
    lines += [f"{label:<{_LABEL}}{visible(place)}" for label, place in places if place is not None]
    lines.append(rule)
    if facts.seeded:
        lines += _wrapped("!", f"{sentences.SEEDED}.", width)
    return "\n".join(lines) + "\n"


def _ex_post(facts: Facts) -> list[tuple[str, str]]:
    bound = facts.spending.ex_post
    if bound is None:
        return []
    return [("ex post", f"{sentences.bound(bound.epsilon, bound.delta)}: read after the fact, not the guarantee")]


def guarantee_line(facts: Facts) -> str:
    """Return the guarantee in one line, or that there is none."""
    if facts.seeded:
        return f"none: {sentences.SEEDED}"
    promised = facts.guarantee
    earlier = "; not for what an earlier run with seeded noise wrote" * promised.seeded_earlier
    figures = promised.figures if promised.also else ""
    both = f": {figures}" * bool(figures)
    return f"{sentences.bound(promised.epsilon, promised.delta)} for {promised.neighbouring.any_one}{earlier}{both}"


def _weak(facts: Facts) -> list[str]:
    """Classes of which the student finds fewer than half on public rows: an accuracy may hide them."""
    score = facts.utility.student
    if score is None:
        return []
    weak = [c for c, recall in enumerate(score.recall) if recall is not None and recall < 0.5]
    lines = []
    for c in weak[:_CLASSES]:
        share = percent(score.recall[c] or 0.0)
        if score.class_rows:
            share = f"{round((score.recall[c] or 0.0) * score.class_rows[c]):,} of {score.class_rows[c]:,}"
        lines.append(f"{facts.setup.classes[c]}: {share} found")
    return [*lines, *([f"and {len(weak) - _CLASSES:,} more classes"] if len(weak) > _CLASSES else [])]


def _wrapped(label: str, words: str, width: int) -> list[str]:
    """Break `words` at spaces into lines that start under each other; what is too long for a line is cut."""
    room = width - _LABEL
    if columns(words) <= room:
        return [f"{label:<{_LABEL}}{words}".rstrip()]
    lines = [shortened(line, room) for line in wrap(words, room, break_long_words=False, break_on_hyphens=False)]
    return [f"{label if i == 0 else '':<{_LABEL}}{line}".rstrip() for i, line in enumerate(lines)]

"""The end of a run, in the terminal: one table that fits 80 columns."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

from quorate.accounting.figures import several
from quorate.errors import InvalidParameter
from quorate.findings import Outcome
from quorate.report import of_numbers, sentences
from quorate.report.facts import Facts
from quorate.report.method import words_of
from quorate.report.notation import columns, percent, shortened, visible
from quorate.report.plain import Plain

NARROWEST = 40  #: columns; below that a table cannot be read
_LABEL = 12  # columns of the first column
_CLASSES = 5  # classes that get a line of their own


@dataclass(frozen=True, kw_only=True, slots=True)
class Outputs(Plain):
    """Where things are, for the terminal alone: paths are not part of what is published.

    `report`, `student`: paths. `next_command`: the command to try next. `again`: the one that runs this again.
    """

    report: str | None = None
    student: str | None = None
    next_command: str | None = None
    again: str | None = None


def render_text(facts: Facts, width: int = 80, *, outputs: Outputs | None = None) -> str:
    """Return the table that a run ends with.

    `width`: columns, at least 40, or InvalidParameter. No line is longer, except where a path or a command is: they
    must stay whole to be copied. `outputs`: where report and student are.
    """
    if isinstance(width, bool) or not isinstance(width, int) or width < NARROWEST:
        raise InvalidParameter(parameter="width", got=width, expected=f"an integer >= {NARROWEST} columns")
    remedy = _IN_PYTHON if outputs is None else outputs.again and _IN_A_FOLDER.format(outputs.again)
    outputs = outputs or Outputs()
    one_row = facts.guarantee.neighbouring.whose_rows
    rows = [
        ("unit", one_row or None),
        *words_of(facts).text_rows(facts, width - _LABEL),
        ("lost", sentences.lost(facts)),
        *_scores(facts, remedy),
        ("guarantee", _guarantee(facts)),
        ("ex post", _ex_post(facts)),
        ("spent", sentences.spent(facts)),
        *(("raised", line) for line in sentences.raises(facts)),
        ("left", sentences.left(facts)),
        ("failed", " ".join(check.words for check in facts.checks if check.outcome is Outcome.FAILED) or None),
    ]
    rule = "─" * width
    lines = [shortened(visible(f"{facts.provenance.run} · done"), width), rule]
    if facts.seeded:
        lines[:0] = [*_wrapped("!", f"{sentences.SEEDED}. {sentences.SEEDED_WHY}", width), ""]
    for label, words in rows:
        lines += [] if words is None else _wrapped(label, visible(words), width)
    places = (("report", outputs.report), ("model", outputs.student), ("try next", outputs.next_command))
    lines += [f"{label:<{_LABEL}}{visible(place)}" for label, place in places if place is not None]
    lines.append(rule)
    if facts.seeded:
        lines += _wrapped("!", f"{sentences.SEEDED}.", width)
    return "\n".join(lines) + "\n"


_IN_PYTHON = 'set_params(decision_threshold="balanced") lets the model find more of them, and costs nothing'
_IN_A_FOLDER = (
    'write decision_threshold = "balanced" under [student] and type {} again: the model then finds more of them, and '
    "it costs nothing"
)


def _scores(facts: Facts, remedy: str | None) -> list[tuple[str, str | None]]:
    """Return what the student is good for, in rows; None where nothing is known. `remedy`: of a class hardly found."""
    measured = facts.utility
    weak = _weak(facts)
    unprotected = None if (score := measured.non_private) is None else percent(score.accuracy)
    return [
        ("student", None if measured.student is None else sentences.scored(measured.student)),
        ("model", of_numbers.scored(facts)),
        ("baseline", sentences.baseline(facts, measured.student)),
        ("decides", sentences.decides(facts)),
        ("calibrated", sentences.calibrated(facts)),
        ("sets" if facts.setup.target_range is None else "intervals", sentences.sets_in_words(facts)),
        ("expected", sentences.expectation(measured)),
        *(("weak", words) for words in weak),
        ("remedy", remedy if weak and len(facts.setup.classes) == 2 and sentences.decides(facts) is None else None),
        ("no privacy", unprotected and f"accuracy {unprotected}, the same student trained on the private rows"),
    ]


def _ex_post(facts: Facts) -> str | None:
    bound = facts.spending.ex_post
    if bound is None:
        return None
    return f"{sentences.bound(bound.epsilon, bound.delta)}: read after the fact, not the guarantee"


def _guarantee(facts: Facts) -> str:
    if facts.seeded:
        return f"none: {sentences.SEEDED}"
    promised = facts.guarantee
    earlier = "; not for what an earlier run with seeded noise wrote" * promised.seeded_earlier
    bound = sentences.bound(promised.epsilon, promised.delta)
    return f"{bound} for {promised.neighbouring.any_one}{promised.in_short}{earlier}"


def _weak(facts: Facts) -> list[str]:
    """Classes of which the student finds fewer than half on public rows: an accuracy may hide them."""
    score = facts.utility.student
    if score is None:
        return []
    weak = [c for c, recall in enumerate(score.recall) if recall is not None and recall < 0.5]
    lines = []
    for c in weak[:_CLASSES]:
        share = f"{percent(score.recall[c] or 0.0)} of the rows"
        if score.class_rows:
            right = round((score.recall[c] or 0.0) * score.class_rows[c])
            share = f"{right:,} of {several(score.class_rows[c], 'row')}"
        lines.append(f"the model finds {share} of class {facts.setup.classes[c]}")
    more = f"and fewer than half of the rows of {several(len(weak) - _CLASSES, 'more class')}"
    return [*lines, *([more] if len(weak) > _CLASSES else [])]


def _wrapped(label: str, words: str, width: int) -> list[str]:
    """Break `words` at spaces into lines that start under each other; what is too long for a line is cut."""
    room = width - _LABEL
    if columns(words) <= room:
        return [f"{label:<{_LABEL}}{words}".rstrip()]
    lines = [shortened(line, room) for line in wrap(words, room, break_long_words=False, break_on_hyphens=False)]
    return [f"{label if i == 0 else '':<{_LABEL}}{line}".rstrip() for i, line in enumerate(lines)]

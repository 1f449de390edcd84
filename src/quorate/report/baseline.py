"""What a score stands beside: how often always saying the commonest class of the same public rows is right."""

from __future__ import annotations

from quorate.report.facts import Facts
from quorate.report.notation import percent, shortened, visible, wilson_interval
from quorate.report.utility import ChosenScore, Score, Utility
from quorate.students.scores import SCORE_WORDS, is_better

_NAME = 40  # columns of a class name


def scored(score: Score) -> str:
    """Return a score in one line: accuracy with a 95 % interval, balanced accuracy, rows.

    Examples
    --------
    >>> scored(Score(n_rows=2000, accuracy=0.84, balanced_accuracy=0.76))
    'accuracy 84.0 % (82.3 to 85.5 %) · balanced 76.0 % · 2,000 rows'
    """
    low, high = wilson_interval(score.accuracy, score.n_rows)
    chosen = "" if score.chosen is None else f"{_written(score.chosen)} · "
    words = f"{chosen}accuracy {percent(score.accuracy)} ({percent(low).removesuffix(' %')} to {percent(high)})"
    is_chosen = score.chosen is not None and score.chosen.scoring == "balanced_accuracy"
    if score.balanced_accuracy is not None and not is_chosen:
        words += f" · balanced {percent(score.balanced_accuracy)}"
    return f"{words} · {score.n_rows:,} rows"


def judged(score: Score | None) -> str | None:
    """Return the score that a run is judged by, beside what needs no model; None where that is accuracy.

    Examples
    --------
    >>> from quorate.report.utility import ChosenScore
    >>> chosen = ChosenScore(scoring="roc_auc", value=0.79, low=0.75, high=0.83, baseline=0.5)
    >>> judged(Score(n_rows=500, accuracy=0.96, chosen=chosen))
    'ROC-AUC 0.790 (0.750 to 0.830), which is 0.500 for always saying the commonest class'
    """
    if score is None or score.chosen is None:
        return None
    return f"{_written(score.chosen)}, which is {score.chosen.baseline:.3f} for always saying the commonest class"


def _written(chosen: ChosenScore) -> str:
    word = SCORE_WORDS.get(chosen.scoring, chosen.scoring)
    return f"{word} {chosen.value:.3f} ({chosen.low:.3f} to {chosen.high:.3f})"


def decides(facts: Facts) -> str | None:
    """Return from which probability on a class is predicted; None where nothing was chosen."""
    fitted = facts.fitted
    if fitted is None or fitted.threshold is None or fitted.threshold_class is None:
        return None
    name = shortened(visible(fitted.threshold_class), _NAME)
    return f"“{name}” is predicted from a probability of {fitted.threshold:.3g} on"


def commonest_class(facts: Facts, score: Score | None) -> str | None:
    """Return the name of the commonest class among the rows that a score was measured on; None where it is not told."""
    if score is None or score.commonest is None:
        return None
    return shortened(visible(facts.setup.classes[score.class_rows.index(max(score.class_rows))]), _NAME)


def balanced(score: Score) -> float:
    """Return the balanced accuracy of always saying one class."""
    return 1 / sum(count > 0 for count in score.class_rows)


def verdict(score: Score | None) -> str | None:
    """Return that a score is no better than its baseline, or not clearly, with a 95 % interval; None where it is."""
    if score is None or score.commonest is None:
        return None
    if (chosen := score.chosen) is not None:
        if not is_better(chosen.scoring, chosen.value, chosen.baseline):
            return "the student is no better"
        worst = chosen.high if chosen.scoring == "log_loss" else chosen.low
        return None if is_better(chosen.scoring, worst, chosen.baseline) else "the student is not clearly better"
    low, _ = wilson_interval(score.accuracy, score.n_rows)
    if score.accuracy <= score.commonest:
        return "the student is no better"
    return "the student is not clearly better" if low <= score.commonest else None


def baseline(facts: Facts, score: Score | None) -> str | None:
    """Return the sentence that stands beside a score; None where the labels of public rows do not allow one."""
    name = commonest_class(facts, score)
    if name is None or score is None or score.commonest is None:
        return None
    found = verdict(score)
    chosen = ""
    if score.chosen is not None:
        word = SCORE_WORDS.get(score.chosen.scoring, score.chosen.scoring)
        chosen = f"{word} {score.chosen.baseline:.3f}, "
    return (
        f"{chosen}accuracy {percent(score.commonest)} by always saying {name}, the commonest class"
        f"{'' if found is None else f'; {found}'}"
    )


def expectation(utility: Utility) -> str | None:
    """Return what was expected of the student, and whether it came; None where nothing was.

    Examples
    --------
    >>> from quorate.report.utility import ExpectedScore
    >>> told = ExpectedScore(accuracy=0.84, low=0.82, high=0.86, basis="rehearsed on public rows")
    >>> expectation(Utility(student=Score(n_rows=500, accuracy=0.81), expected=told))
    'accuracy 84.0 % (82.0 to 86.0 %), rehearsed on public rows; the student is below that range'
    """
    expected, student = utility.expected, utility.student
    if expected is None:
        return None
    came = ""
    if (chosen := expected.chosen) is not None:
        now = None if student is None or student.chosen is None else student.chosen
        if now is not None and now.scoring == chosen.scoring and not chosen.low <= now.value <= chosen.high:
            came = f"; the student is {'below' if now.value < chosen.low else 'above'} that range"
        return f"{_written(chosen)}, {expected.basis}{came}"
    if student is not None and not expected.low <= student.accuracy <= expected.high:
        came = f"; the student is {'below' if student.accuracy < expected.low else 'above'} that range"
    ends = f"{percent(expected.low).removesuffix(' %')} to {percent(expected.high)}"
    return f"accuracy {percent(expected.accuracy)} ({ends}), {expected.basis}{came}"

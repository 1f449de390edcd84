"""The sentences of a report, made from the facts and never typed by hand; every edition uses the same ones.

With them stands what a score is compared with: how often always saying the commonest class of the same public rows is
right.
"""

from __future__ import annotations

from math import ceil
from typing import Literal

from quorate.accounting.attacker import PAIRS
from quorate.accounting.figures import at_least, at_most, plural, several
from quorate.findings import Outcome
from quorate.release.charge import MARGINAL_LEVEL
from quorate.report.facts import Facts
from quorate.report.findings import PrivateSets
from quorate.report.notation import percent, power_of_ten, shortened, visible, wilson_interval
from quorate.report.spending import AnswerCounts, BudgetRaise, lost_in_words, lost_uncounted
from quorate.report.utility import ChosenScore, Score, Utility
from quorate.students.scores import SCORE_WORDS, is_better

SEEDED = "reproducible, therefore not private"
SEEDED_WHY = (
    "The noise of this run came from a given seed. Whoever has the seed can take the noise away again. The figures "
    "are what the same run would promise with the operating system's noise; for this one nothing is promised."
)

_KNOWN = {
    "declared": "which its owner declared",
    "read": "which was read off the data and is treated as public",
    "public": "which is public here",
}


FALSE_ALARMS = 0.05  # at which the best attacker is told of


def by_the_exact_price(facts: Facts) -> str:
    """Return the odds of this run's release where its exact price allows less than ε and δ do; empty elsewhere."""
    curve = facts.attacker
    if curve is None or facts.seeded or curve.told_apart is None or curve.allowed is None:
        return ""
    if curve.told_apart >= curve.allowed:
        return ""
    return (
        f"By the exact price of what this run released, the best observer names at most {curve.told_apart:,} of "
        f"{PAIRS:,} pairs of worlds rightly on average; its ε and δ alone would allow {curve.allowed:,}."
    )


def attacker(facts: Facts) -> tuple[str, str] | None:
    """Return what the best attacker on this run can do, in words, and what the picture of it shows; None if unknown."""
    curve = facts.attacker
    if curve is None or facts.seeded or FALSE_ALARMS not in curve.false_alarms:
        return None
    unit, wrong = facts.setup.unit, round(100 * FALSE_ALARMS)
    right = min(100.0, ceil(1000 * curve.recognised(FALSE_ALARMS) - 1e-6) / 10)
    if facts.guarantee.neighbouring.change.startswith("add"):
        units = plural(unit)
        aim = f"tries to tell which {units} are among the private data"
        bound_ = (
            f"If it is wrong about {wrong} of 100 {units} that are not, it recognises at most {right:g} of 100 that are"
        )
    else:
        aim = f"tries to tell which of two tables, which differ in one {unit}, is the private one"
        bound_ = (
            f"If it wrongly names the second table in {wrong} of 100 cases, it rightly names it in at most {right:g} "
            "of 100"
        )
    pairs = by_the_exact_price(facts)
    said = (
        f"An attacker sees what this run released, knows everything else, and {aim}. {bound_}. Guessing gives "
        f"{wrong}.{pairs and f' {pairs}'}"
    )
    shows = (
        "Across: how often it says so wrongly, from never (0) to always (1). Up: how often it misses. Guessing is on "
        "the dashed line, and no attack is below the solid line. This follows from the exact price of the noise, which "
        f"{'allows' if pairs else 'may allow'} less than ε and δ alone do."
    )
    return said, shows


def not_protected(facts: Facts) -> tuple[str, ...]:
    """Return what the guarantee does not cover, one sentence each."""
    setup = facts.setup
    learned = "anybody's labels" if _labels_only(facts) else f"any {setup.unit}"
    classes = f"The class list ({several(len(setup.classes), 'name')})"
    if not setup.classes_declared:
        classes += ", which was read off private labels and is treated as public"
    if setup.target_range is not None:
        classes = f"The range of the target, {setup.target_range[0]:.15g} to {setup.target_range[1]:.15g}"
    general: tuple[str, ...] = (
        f"{classes}.",
        "The names of the features.",
        f"The public pool ({several(setup.n_public, 'row')} without labels)."
        if setup.n_public
        else "What was declared of the columns, since there was no public pool.",
        f"Facts true of everyone: what was published teaches about {learned}, in the data or not.",
    )
    if setup.n_records is not None:
        general += (
            f"The number of private units ({setup.unit}), {_KNOWN[setup.n_records_from]}: {setup.n_records:,}.",
        )
    if setup.n_rows is not None:
        general += (f"The number of private rows, {_KNOWN[setup.n_records_from]}: {setup.n_rows:,}.",)
    return general + tuple(f"{caveat[:1].upper()}{caveat[1:].rstrip('.')}." for caveat in facts.guarantee.caveats)


def draws_pool(facts: Facts) -> bool:
    """Whether there were no public rows, and a pool was drawn from noisy counts."""
    return any(part.purpose == MARGINAL_LEVEL for part in facts.spending.parts)


def open_questions(facts: Facts) -> tuple[str, ...]:
    """Return what a check found wrong or could not see, and what can be done, a few sentences each."""
    return tuple(
        " ".join(filter(None, (check.evidence, check.remedy)))
        for check in facts.checks
        if check.outcome in (Outcome.FAILED, Outcome.NOT_COVERED)
    )


def where_a_unit_goes(facts: Facts) -> str:
    """Return to how many teachers one unit goes, and who says so."""
    unit = facts.setup.unit
    if facts.setup.partition == "declared":
        return f"one {unit} → exactly one teacher; stated by the owner"
    if facts.setup.partition == "sites":
        return f"one {unit} of a site → exactly one teacher there; signed by each site"
    checked = any(check.code == "shards" and check.outcome is Outcome.PASSED for check in facts.checks)
    words = f"one {unit} → exactly one teacher" + ("; checked" if checked else "; not checked")
    return words + (" (replace only)" if facts.setup.partition == "balanced" else "")


def counted(answers: AnswerCounts, separator: str = ", ") -> str:
    """Return what became of the queries, each number with its word."""
    return separator.join(f"{number:,} {word.replace('_', ' ')}" for word, number in answers.numbers.items())


def lost(facts: Facts) -> str | None:
    """Return what was lost when a process ended, where no count of answers or rounds tells it; None for nothing."""
    return lost_in_words(lost_uncounted(facts.spending.parts))


def never_seen(facts: Facts) -> str:
    """Return what of the private table the student was never shown."""
    return f"The student has seen no private {'label' if _labels_only(facts) else 'row'}."


def _labels_only(facts: Facts) -> bool:
    return facts.guarantee.neighbouring.change == "replace-labels"


def partition(facts: Facts) -> str:
    """Return how units were given to teachers."""
    unit, changing = facts.setup.unit, facts.guarantee.neighbouring.changing
    covered = (
        f"this covers {changing}; which rows there are is public"
        if _labels_only(facts)
        else f"this covers {changing}, not adding or removing one"
    )
    return {
        "hash": f"shards are drawn by a keyed hash of the {unit}, with a secret key drawn for this run",
        "balanced": f"shards are a random permutation cut into equal parts; {covered}",
        "unit": f"each {unit} has a teacher of its own, whose seed is a keyed hash of the {unit}'s identity",
        "declared": "shards were made by the owner, whose statement it is",
        "sites": f"shards were made at the sites, whose statement it is; at how many one {unit} may be is a caveat",
    }[facts.setup.partition]


def bound(epsilon: float, delta: float) -> str:
    """Return ``ε ≤ …, δ ≤ …``, both rounded up."""
    return f"ε ≤ {at_most(epsilon)}, δ ≤ {at_most(delta)}"


def spent(facts: Facts) -> str:
    """Return what was charged, of what."""
    spending = facts.spending
    return (
        f"ε {at_most(spending.spent_epsilon)} of {at_most(spending.budget_epsilon)}, "
        f"δ {at_most(spending.spent_delta)} of {at_most(spending.budget_delta)}"
    )


def charge_of_run(facts: Facts) -> str:
    """Return what this run was charged, and, where the ledger was charged for others too, how much of how much."""
    spending = facts.spending
    if not spending.shared:
        return "The charge"
    return (
        f"The charge of this run, ε {at_most(spending.of_run)} of the ε {at_most(spending.spent_epsilon)} that "
        "all runs on this ledger were charged together"
    )


def epsilon_left(facts: Facts) -> str:
    """Return the ε that is left, rounded down; less than a millionth of the budget is a rounding and buys nothing."""
    spending = facts.spending
    return at_least(spending.left_epsilon if spending.left_epsilon > 1e-6 * spending.budget_epsilon else 0.0)


def left(facts: Facts) -> str:
    """Return what is left: the answers first, then ε and δ."""
    spending = facts.spending
    words = (
        f"ε {epsilon_left(facts)} of {at_most(spending.budget_epsilon)}, "
        f"δ {at_least(spending.left_delta)} of {at_most(spending.budget_delta)}"
    )
    if spending.answers_left is None:
        return words
    return f"{answers_in_words(spending.answers_left)}; {words}"


def answers_in_words(answers: int) -> str:
    """Say how many answers are left, each charged when it was kept back."""
    return f"{several(answers, 'answer')}, already charged" if answers else "no answers"


def delta_in_tens(delta: float) -> str:
    """Return δ, rounded up, as a power of ten where it is small."""
    return power_of_ten(at_most(delta))


def cap(facts: Facts) -> str:
    """Return what the budget is, and how often it was raised."""
    raised_to = facts.spending.raises[-1] if facts.spending.raises else None  # perhaps after the run of these facts
    epsilon, delta = (
        (facts.spending.budget_epsilon, facts.spending.budget_delta)
        if raised_to is None
        else (raised_to.epsilon, raised_to.delta)
    )
    words = f"ε {at_most(epsilon)}, δ {at_most(delta)}: the most that may ever be spent on these data"
    return words + raised_so_often(facts)


def raised_so_often(facts: Facts) -> str:
    """Return how often the budget was raised, to follow other words; nothing where version 0.1 did not record it."""
    raises = facts.spending.raises
    if raises is None:
        return ""
    times = len(raises)
    return "; never raised" if not times else f"; raised {'once' if times == 1 else f'{times:,} times'}"


def raises(facts: Facts) -> tuple[str, ...]:
    """Return every raise of the budget, with its reason."""
    return tuple(raised(raise_) for raise_ in facts.spending.raises or ())


def raised(entry: BudgetRaise) -> str:
    """Return one raise of the budget, with its reason."""
    return f"on {entry.time} to ε {at_most(entry.epsilon)}, δ {at_most(entry.delta)}; reason: {entry.reason}"


_NAME = 40  # columns of a class name


def scored(score: Score) -> str:
    """Return a score in one line: accuracy with a 95 % interval, balanced accuracy, rows."""
    low, high = wilson_interval(score.accuracy, score.n_rows)
    chosen = "" if score.chosen is None else f"{_written(score.chosen)} · "
    words = f"{chosen}accuracy {percent(score.accuracy)} ({percent(low).removesuffix(' %')} to {percent(high)})"
    is_chosen = score.chosen is not None and score.chosen.scoring == "balanced_accuracy"
    if score.balanced_accuracy is not None and not is_chosen:
        words += f" · balanced {percent(score.balanced_accuracy)}"
    return f"{words} · {score.n_rows:,} rows"


def judged(score: Score | None) -> str | None:
    """Return the score that a run is judged by, beside what needs no model; None where that is accuracy."""
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


def calibrated(facts: Facts) -> str | None:
    """Return what probabilities were fitted on; None where they are as the model came."""
    fitted = facts.fitted
    if fitted is None or fitted.temperature is None:
        return None
    counts = "noisy counts of how often the model is right about private units, which the last round released"
    to = [] if fitted.paid_temperature is None else [counts]
    if fitted.calibration_rows is not None:
        to += [f"{fitted.calibration_rows:,} labelled public rows"]
    return (
        f"probabilities fit {', and then '.join(to)}: the model's scores are divided by a temperature of "
        f"{fitted.temperature:.3g}"
    )


def reliable(score: Score | None) -> str | None:
    """Return how far off probabilities are; None where that was not measured."""
    if score is None or score.reliability is None:
        return None
    measured = score.reliability
    return (
        f"probabilities are off by {measured.error:.3f} on average (expected calibration error); on as many rows "
        f"even right ones come out off by about {measured.by_chance:.3f}"
    )


def sets_in_words(facts: Facts) -> str | None:
    """Return what intervals or prediction sets hold, and how large they are; None where nothing calibrated them."""
    fitted = facts.fitted
    if fitted is not None and (held := fitted.intervals) is not None:
        least = at_least(100 * (held.coverage - held.slack), 3)
        return (
            f"intervals of {100 * held.coverage:g} % end {held.limits.limit(held.coverage):.4g} from the prediction, "
            f"to either side, and hold the number of at least {least} % of rows drawn as the {held.n_rows:,} that "
            f"calibrate them, except with probability {100 * held.failure:g} %"
        )
    if fitted is not None and (private := fitted.private_intervals) is not None:
        ends = f"end {private.limit:.4g} from the prediction, to either side, and hold the number"
        return _held_out(facts, private, f"intervals of {100 * private.coverage:g} % {ends}")
    if fitted is None or (fitted.prediction_sets is None and fitted.private_sets is None):
        return None
    if (sets := fitted.prediction_sets) is None:
        private_sets = fitted.private_sets
        assert private_sets is not None  # noqa: S101 - one of the two is there
        return _held_out(facts, private_sets, f"sets of {100 * private_sets.coverage:g} % hold the true class")
    least = at_least(100 * (sets.coverage - sets.slack), 3)
    return (
        f"sets of {100 * sets.coverage:g} % hold the true class of at least {least} % of rows drawn as the "
        f"{sets.n_rows:,} that calibrate them, except with probability {100 * sets.failure:g} %; on these a set has "
        f"{sets.mean_size:.2f} classes on average, and {percent(sets.empty)} are empty"
    )


def _held_out(facts: Facts, sets: PrivateSets, what: str) -> str:
    unit, least = facts.setup.unit, at_least(100 * (sets.coverage - sets.slack), 3)
    return (
        f"{what} of at least {least} % of {plural(unit)} drawn as the private ones, one row of each, except with "
        f"probability {100 * sets.failure:g} %, if as many as declared have a row that can be used; the limit was "
        f"chosen on {percent(sets.share)} of the {plural(unit)}, which nothing learned from, within the run's charge"
    )


def commonest_class(facts: Facts, score: Score | None) -> str | None:
    """Return the name of the commonest class among the rows that a score was measured on; None where it is not told."""
    if score is None or score.commonest is None:
        return None
    return shortened(visible(facts.setup.classes[score.class_rows.index(max(score.class_rows))]), _NAME)


def balanced(score: Score) -> float:
    """Return the balanced accuracy of always saying one class."""
    return 1 / sum(count > 0 for count in score.class_rows)


def standing(score: Score | None) -> Literal["no better", "not clearly better"] | None:
    """Tell whether a score is no better than its baseline, or not clearly, with a 95 % interval; None where it is."""
    if score is None or score.commonest is None:
        return None
    if (chosen := score.chosen) is not None:
        if not is_better(chosen.scoring, chosen.value, chosen.baseline):
            return "no better"
        worst = chosen.high if chosen.scoring == "log_loss" else chosen.low
        return None if is_better(chosen.scoring, worst, chosen.baseline) else "not clearly better"
    low, _ = wilson_interval(score.accuracy, score.n_rows)
    if score.accuracy <= score.commonest:
        return "no better"
    return "not clearly better" if low <= score.commonest else None


def verdict(score: Score | None) -> str | None:
    """Return :func:`standing` as a sentence; None where a score is clearly better."""
    compared = standing(score)
    return None if compared is None else f"the student is {compared}"


def about_the_model(facts: Facts) -> dict[str, str]:
    """Return what every edition says of the published model, a sentence each: those that there are, in their order."""
    student = facts.utility.student
    said = {
        "lost": ("", lost(facts)),
        "judged": ("Judged by ", judged(student)),
        "decides": ("", decides(facts)),
        "reliable": ("", reliable(student)),
        "calibrated": ("", calibrated(facts)),
        "sets": ("", sets_in_words(facts)),
        "verdict": ("Beside always saying the commonest class, ", verdict(student)),
        "expected": ("Expected before anything was spent: ", expectation(facts.utility)),
    }
    sentences = {key: begin + words for key, (begin, words) in said.items() if words is not None}
    return {key: f"{sentence[0].upper()}{sentence[1:]}." for key, sentence in sentences.items()}


def baseline(facts: Facts, score: Score | None) -> str | None:
    """Return the sentence that stands beside a score; None where the labels of public rows do not allow one."""
    name = commonest_class(facts, score)
    if name is None or score is None or score.commonest is None:
        return None
    comparison = verdict(score)
    chosen = ""
    if score.chosen is not None:
        word = SCORE_WORDS.get(score.chosen.scoring, score.chosen.scoring)
        chosen = f"{word} {score.chosen.baseline:.3f}, "
    return (
        f"{chosen}accuracy {percent(score.commonest)} by always saying {name}, the commonest class"
        f"{'' if comparison is None else f'; {comparison}'}"
    )


def expectation(utility: Utility) -> str | None:
    """Return what was expected of the student, and whether it came; None where nothing was."""
    expected, student = utility.expected, utility.student
    if expected is None:
        return None
    against = ""
    if (chosen := expected.chosen) is not None:
        now = None if student is None or student.chosen is None else student.chosen
        if now is not None and now.scoring == chosen.scoring and not chosen.low <= now.value <= chosen.high:
            against = f"; the student is {'below' if now.value < chosen.low else 'above'} that range"
        return f"{_written(chosen)}, {expected.basis}{against}"
    if student is not None and not expected.low <= student.accuracy <= expected.high:
        against = f"; the student is {'below' if student.accuracy < expected.low else 'above'} that range"
    ends = f"{percent(expected.low).removesuffix(' %')} to {percent(expected.high)}"
    return f"accuracy {percent(expected.accuracy)} ({ends}), {expected.basis}{against}"

"""What a user should hear before a budget is spent: figures of the task that make a run a waste, or an answer a coin.

Pure functions of public facts. But for a set-up that can answer nothing they refuse nothing: what a run is for, its
owner knows.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from quorate.accounting.attacker import budget_cautions
from quorate.accounting.figures import at_least, several
from quorate.errors import InvalidParameter, named
from quorate.findings import Finding, Outcome, Severity, caution
from quorate.ledger import Reservation
from quorate.mechanisms import Mechanism, StreamMechanism
from quorate.report.notation import percent
from quorate.report.spending import lost_in_words, lost_parts, lost_uncounted
from quorate.run.expectation import Expected
from quorate.run.public_facts import PublicFacts

# What programs decide by.
LABELS_ARE_COINS = "labels-are-coins"
ONE_ANSWER_IS_UNSURE = "one-answer-is-unsure"
ROWS_ARE_UNKNOWN = "rows-per-unit-unknown"
TEACHERS_ARE_CONSTANTS = "teachers-are-constants"
PROMPTS_SHOW_FEW_ROWS = "prompts-show-few-rows"
REHEARSED_AT_THE_COMMONEST = "rehearsed-at-the-commonest-class"
ROUNDS_TELL_NOTHING = "rounds-tell-nothing"
NOTHING_CAN_BE_ANSWERED = "nothing-can-be-answered"
DRAWN_AND_LOST = "drawn-and-lost"

# Standard deviations, where half a vote share is the largest lead there is. Measured with logistic students on Mushroom
# (117 columns) and on a table of 7 columns: beyond both, accuracy was 0.5 to 0.75; below one of them, 0.72 to 0.96.
COIN = 0.25  # of a vote share that a student of w weights reads off all answers
MEAN = 0.09  # of the mean of all answers: many columns repeat each other, and do not make it worse
UNSURE = 0.75  # how often a label may be right where all teachers agree, and be called close to a coin toss
#: λ/(λ + κ) of the direction in which public rows differ most, below which rounds seldom gained anything over the
#: commonest class: decision 0073.
LEAST_SHARE = 0.05
LONGEST_LEAD = 0.5  # half a vote share: what a unanimous vote of two classes is ahead of a tie
SURE = 0.95  # how often a single answer should be right where all teachers agree


def unanimous_right(mechanism: Mechanism, *, n_teachers: int, n_classes: int) -> float | None:
    """Probability that a unanimous vote is released as what it is; None where a mechanism states no such law."""
    if mechanism.answer_noise is not None:
        return mechanism.answer_noise.right(n_teachers, n_classes)
    if isinstance(mechanism, StreamMechanism) or mechanism.test is not None:
        return None
    stated = mechanism.answerable(n_teachers, n_classes).probability
    return stated if stated < 1 else None


def noise_left(mechanism: Mechanism, right: float, *, n_teachers: int, n_classes: int, n_queries: int) -> float:
    r"""Standard deviation of the mean of all answers on which teachers agree, in vote shares: half a share is the lead.

    Of noisy votes :math:`\sigma/(K\sqrt\ell)`. A class is right with probability p and each other one with
    :math:`q = (1 - p)/(C - 1)`, which is as good as a vote share with noise
    :math:`\tfrac12\sqrt{p + q - (p - q)^2}/(p - q)`.
    """
    noise = mechanism.answer_noise
    if mechanism.releases_values and noise is not None:
        return noise.scale / n_teachers / math.sqrt(n_queries)
    other = (1 - right) / (n_classes - 1)
    lead = right - other
    if lead <= 0:
        return math.inf
    return 0.5 * math.sqrt(max(0.0, right + other - lead**2)) / lead / math.sqrt(n_queries)


def reach(mechanism: Mechanism, *, n_teachers: int, n_classes: int, n_queries: int, most_teachers: int = 0) -> Finding:
    """Look whether a mechanism can answer anything with so many teachers, or its answers together can say anything.

    `most_teachers`: how many might have been asked for, where somebody asked for so many.
    """

    def problem(teachers: int) -> tuple[str, str] | None:
        """What is wrong with so many teachers, and what to do beside taking more."""
        task = {"n_teachers": teachers, "n_classes": n_classes}
        words, right = _out_of_reach(mechanism, **task), unanimous_right(mechanism, **task)
        if words is not None:
            return words, (
                f"aise {named('epsilon')}, bring more private rows, take fewer answers, or leave the mechanism to the "
                f"recipe ({named('mechanism', 'auto')})"
            )
        if right is None or noise_left(mechanism, right, **task, n_queries=n_queries) < LONGEST_LEAD:
            return None
        words = (
            f"the noise of {type(mechanism).__name__} against {several(teachers, 'teacher')} is so large that the "
            f"mean of {several(n_queries, 'answer')} does not tell a unanimous vote from a tie"
        )
        return words, f"aise {named('epsilon')} or bring more private rows"

    if (fault := problem(n_teachers)) is None:
        return caution(NOTHING_CAN_BE_ANSWERED, Severity.SERIOUS, None)
    words, advice = fault
    more = range(n_teachers + 1, most_teachers + 1)
    enough = bisect_left(more, True, key=lambda teachers: problem(teachers) is None)
    take = f"Take {named('n_teachers', more[enough])} or more, r" if enough < len(more) else "R"
    return caution(NOTHING_CAN_BE_ANSWERED, Severity.SERIOUS, f"{words}, and the budget would be spent. {take}{advice}")


def _out_of_reach(mechanism: Mechanism, n_teachers: int, n_classes: int) -> str | None:
    reach = mechanism.answerable(n_teachers, n_classes)
    if reach.test is None or reach.largest is None or not reach.hopeless:
        return None
    what = "votes for one class" if reach.test.statistic == "largest count" else "distance to instability"
    return (
        f"{type(mechanism).__name__} answers from about {reach.test.threshold:,.0f} on ({what}), and where all of "
        f"{several(n_teachers, 'teacher')} agree it is {reach.largest:,}: no query is likely to be answered"
    )


def considered(
    facts: PublicFacts, mechanism: Mechanism, *, n_teachers: int, n_queries: int, most_teachers: int = 0
) -> tuple[Finding, ...]:
    """Return everything that may be wrong with a set-up, what applies and what does not, in a fixed order.

    `most_teachers`: as :func:`reach` has it.
    """
    promised = budget_cautions(facts.n_records, facts.epsilon, facts.delta, facts.unit)
    task = {"n_teachers": n_teachers, "n_classes": facts.n_classes, "n_queries": n_queries}
    out_of_reach = reach(mechanism, **task, most_teachers=most_teachers)
    right = unanimous_right(mechanism, n_teachers=n_teachers, n_classes=facts.n_classes)
    if right is None:
        unknown = tuple(
            Finding(code=code, severity=severity, outcome=Outcome.NOT_RUN)
            for code, severity in ((LABELS_ARE_COINS, Severity.SERIOUS), (ONE_ANSWER_IS_UNSURE, Severity.WARNING))
        )
        return (out_of_reach, *unknown, *promised)
    mean = noise_left(mechanism, right, **task)
    share = mean * math.sqrt(min(max(facts.width, 1), n_queries))
    coins = right < UNSURE and mean > MEAN and share > COIN
    unsure = facts.online_answers > 0 and right < SURE
    at_most = f"at most {math.floor(100 * right)} % of the time"
    return (
        out_of_reach,
        caution(
            LABELS_ARE_COINS,
            Severity.SERIOUS,
            f"{_noise(mechanism)} against {several(n_teachers, 'teacher')}: where all teachers agree, a label is right "
            f"{at_most}, and {several(n_queries, 'label')} cannot average that out. The labels would be close "
            "to coin tosses, and the budget would be spent. Raise epsilon or bring more private rows"
            f"{', or keep fewer answers back' * (facts.online_answers > 0)}"
            if coins
            else None,
        ),
        caution(
            ONE_ANSWER_IS_UNSURE,
            Severity.WARNING,
            f"one online answer alone is right {at_most}, even where all teachers agree; the student, which "
            "averages over all answers, is the better judge of a single case"
            if unsure
            else None,
        ),
        *promised,
    )


def constant_teachers_caution(constant: bool | None, *, n_rows_each: int | None) -> Finding:
    """Say that teachers of so few rows are constants, where that was looked for (else None) and is so."""
    if constant is None:
        return Finding(code=TEACHERS_ARE_CONSTANTS, severity=Severity.SERIOUS, outcome=Outcome.NOT_RUN)
    return caution(
        TEACHERS_ARE_CONSTANTS,
        Severity.SERIOUS,
        f"on {n_rows_each:,} rows, as many as a teacher gets, this model says one class whatever it is asked, or "
        "fails: so it did on samples of the public rows, and the budget would be spent for nothing. Give fewer "
        "teachers, or a model that learns from so few rows (trees: fewer rows in a leaf)"
        if constant
        else None,
    )


def shown_rows_caution(shown: int | None, *, n_rows_each: int | None, n_teachers: int, answers: int) -> Finding:
    """Say that prompts `shown` a small part of their shards; None where teachers learn from all rows."""
    most = 0 if shown is None or n_rows_each is None else n_teachers * n_rows_each // shown
    return caution(
        PROMPTS_SHOW_FEW_ROWS,
        Severity.WARNING,
        f"each prompt shows {shown:,} of the about {n_rows_each:,} rows of its shard, and nothing is learned from the "
        f"others: up to {most:,} teachers would show as many each, and the noise counts less against more votes. Each "
        f"further teacher is asked about {several(answers, 'row')}; choose their number by what requests cost"
        if most >= 2 * n_teachers
        else None,
    )


def rehearsal_caution(expected: Expected | None, commonest: float) -> Finding:
    """Say that a rehearsal did no better than always saying the commonest class; None where none was played."""
    if expected is None:
        return Finding(code=REHEARSED_AT_THE_COMMONEST, severity=Severity.SERIOUS, outcome=Outcome.NOT_RUN)
    beside = f"is right for {expected}, and always saying their commonest class for {100 * commonest:.1f} %"
    if (scored := expected.scored) is not None:
        beside = f"has {scored}, and always saying their commonest class {scored.baseline:.3f}"
    return caution(
        REHEARSED_AT_THE_COMMONEST,
        Severity.SERIOUS,
        f"rehearsed on public rows, the student {beside}: the budget would be spent for nothing. "
        "Raise epsilon, bring more private rows, or try another method or model (quorate plan compares them)"
        if expected.gain(commonest) <= 0
        else None,
    )


def rounds_caution(share: float | None, n_units: int, unit: str) -> Finding:
    """Say that noise leaves next to nothing of the direction in which public rows differ most, λ/(λ + κ), for rounds to
    learn from; None where no pool tells directions. `n_units`: n₀.
    """
    if share is None:
        return Finding(code=ROUNDS_TELL_NOTHING, severity=Severity.SERIOUS, outcome=Outcome.NOT_RUN)
    return caution(
        ROUNDS_TELL_NOTHING,
        Severity.SERIOUS,
        f"the noise hides nearly all that {several(n_units, unit)} can tell: even the direction in which rows differ "
        f"most counts for {percent(share)} of itself. Where it was below {percent(LEAST_SHARE)}, models were mostly "
        "no better than one that predicts the same for every row, and the budget would be spent for nothing. "
        "Raise epsilon, bring more private rows, or leave out columns that say little"
        if share < LEAST_SHARE
        else None,
    )


def rows_caution(facts: PublicFacts) -> Finding:
    """Look whether nobody says how many rows units with ids have, so that each has a teacher."""
    return caution(
        ROWS_ARE_UNKNOWN,
        Severity.NOTE,
        f"how many private rows there are is not declared, so nothing is known of how many each {facts.unit} has; "
        "where n_rows may be published, declare it, and the teachers and their coordinates will be made for it"
        if facts.n_rows is None
        else None,
    )


def lost_caution(reservation: Reservation) -> Finding:
    """Say, after a fit, what of its charge was lost when a process ended, where no count of answers or rounds tells."""
    return caution(DRAWN_AND_LOST, Severity.WARNING, lost_in_words(lost_uncounted(lost_parts(reservation))))


def _noise(mechanism: Mechanism) -> str:
    noise = mechanism.answer_noise
    if noise is None or noise.distribution != "gaussian":
        return f"the noise of {type(mechanism).__name__}"
    return f"σ = {at_least(noise.scale)} votes"


def is_hopeless(considered: Sequence[Finding]) -> bool:
    """Whether it was found that nothing can be answered."""
    return any(finding.code == NOTHING_CAN_BE_ANSWERED and finding.applies for finding in considered)


def refuse_hopeless(considered: Sequence[Finding], *, unless: str = "") -> None:
    """Refuse a set-up that can answer nothing, with what is out of reach; `unless`: how it is to run all the same."""
    if words := next((finding.words for finding in considered if is_hopeless([finding])), None):
        raise InvalidParameter(
            f"nothing was spent: {words}. To go on all the same: {unless or named('allow_hopeless', True)}"
        )

"""The first page: who is protected, what leaves, what an attacker can learn at most, and of what use the model is.

Somebody without mathematics can sign it. Its words are those of :mod:`~quorate.report.words`, in three languages; its
figures are those of the sections behind it, rounded the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quorate.accounting.attacker import PAIRS, worlds_told_apart
from quorate.accounting.figures import at_most
from quorate.accounting.neighbouring import LABELS_OF, ONE_LABEL, ONE_RECORD, Neighbouring
from quorate.findings import Outcome
from quorate.release.charge import MARGINAL_LEVEL
from quorate.report import html, of_numbers, sentences
from quorate.report.facts import Facts
from quorate.report.html import Child, Markup, element, pairs
from quorate.report.notation import percent, shortened, visible, wilson_interval
from quorate.report.spending import lost_uncounted
from quorate.report.utility import OperatingPoint, Score
from quorate.report.words import WORDS, Language, figure, unit_in

_NAME = 40  # columns of a class name
_UNIT = 60  # and of the word for a unit

Say = Callable[..., str]


def summary(facts: Facts, language: Language) -> tuple[Child, ...]:
    """Return the content of the first page in one language."""
    unit = facts.setup.unit.removesuffix(LABELS_OF.format(""))
    unit = shortened(visible(unit_in(unit, language)), _UNIT)

    def say(key: str, **values: str) -> str:
        return WORDS[language][key].format(unit=unit, **values)

    signature = (element("span", word) for word in say("sign lines").split("|"))
    return (
        pairs(((say("who"), _who(facts, say)), (say("leaves"), _leaves(facts, say, language))), class_="pairs board"),
        element("h3", say("learn")),
        *_learn(facts, say, language),
        element("h3", say("use")),
        *_use(facts, say, language),
        element("div", element("strong", say("sign")), *signature, class_="sign"),
    )


def _who(facts: Facts, say: Say) -> Markup:
    relation = facts.guarantee.neighbouring
    keys = {"replace-labels": "who label" if relation.unit == ONE_LABEL else "who labels", "stated": "who stated"}
    key = keys.get(relation.change, "who record" if relation.unit == ONE_RECORD else "who unit")
    owner = [element("p", say("owner states"))] if relation.owner_states else []
    return html.join(element("p", say(key, stated=relation.stated)), *owner)


def _leaves(facts: Facts, say: Say, language: Language) -> Markup:
    answered, later = facts.answers.answered, facts.spending.answers_left
    lines = [
        say("leaves model", model=facts.setup.student.rpartition(" → ")[2]),
        *([say("leaves labels", n=figure(f"{answered:,}", language))] if answered else []),
        *([say("leaves pool")] if sentences.draws_pool(facts) else []),
        *([say("leaves later", n=figure(f"{later:,}", language))] if later else []),
        say("leaves report"),
    ]
    return html.join(
        element("ul", *(element("li", line) for line in lines), class_="plain"), element("p", say("stays"))
    )


_LEARN = {
    "add-remove-replace": "learn add",
    "add-or-remove": "learn add",
    "replace": "learn replace",
    "replace-labels": "learn labels",
    "stated": "learn stated",
}


def _learn(facts: Facts, say: Say, language: Language) -> Iterator[Child]:
    """Yield the sentence, the picture, four ticks, and what the guarantee does not say."""
    if facts.seeded:
        yield element("p", say("learn nothing"), class_="promise")
        return
    guarantee, heading = facts.guarantee, WORDS[language]
    right = facts.guarantee.right_guesses
    sentence = say(_LEARN[guarantee.neighbouring.change], right=figure(f"{right:,}", language))
    yield element("p", sentence, class_="odds")
    for other in guarantee.also:
        key = (
            "also add"
            if Neighbouring.read(other.neighbours, guarantee.unit).change == "add-or-remove"
            else "also replace"
        )
        yield element("p", say(key, right=figure(f"{worlds_told_apart(other.epsilon, other.delta):,}", language)))
    if guarantee.seeded_earlier:
        yield element("p", say("seeded earlier"), class_="verdict")
    yield _dots(sentence, right, say)
    together = "tick ledger" if facts.spending.shared else "tick together"
    ticks = (say(key) for key in ("tick everyone", "tick method", "tick later", together))
    yield element("ul", *(element("li", tick, class_="yes") for tick in ticks), class_="ticks")
    yield element("p", say("not"), class_="note")
    if guarantee.caveats:
        yield element("p", say("caveats", n=f"{len(guarantee.caveats)}", heading=heading["guarantee"]))
    if failed := sum(check.outcome is Outcome.FAILED for check in facts.checks):
        yield element("p", say("checks", n=f"{failed}", heading=heading["implementation"]), class_="verdict")
    if facts.audit is not None and facts.audit.violated:
        yield element("p", say("attacked", heading=heading["audit"]), class_="verdict")
    delta = sentences.delta_in_tens(guarantee.delta)
    epsilon = at_most(guarantee.epsilon)
    yield element("p", say("figures", epsilon=figure(epsilon, language), delta=figure(delta, language)), class_="note")


def _dots(sentence: str, right: int, say: Say) -> Markup:
    half = PAIRS // 2
    return element(
        "figure",
        html.dots(sentence, chance=half, right=right, total=PAIRS),
        element(
            "figcaption",
            element("span", html.dot("chance"), say("dots coin", n=f"{half}")),
            element("span", html.dot("gain"), say("dots more", n=f"{right - half}")),
            element("span", html.dot("rest"), say("dots wrong", n=f"{PAIRS - right}")),
        ),
        class_="pairs-of-worlds",
    )


def _use(facts: Facts, say: Say, language: Language) -> Iterator[Child]:
    """Yield accuracy beside its baseline; of two classes, what is found, missed and wrongly said of the rarer."""
    score, of_number = facts.utility.student, facts.utility.number
    if lost := lost_uncounted(facts.spending.parts):
        nothing = any(part.purpose == MARGINAL_LEVEL and not part.answered for part in lost)
        words = say("lost counts" if nothing else "lost", heading=WORDS[language]["mechanisms"])
        yield element("p", words, class_="verdict")
    if of_number is not None:
        n, near = figure(f"{of_number.n_rows:,}", language), figure(of_numbers.error(facts, of_number), language)
        yield element("p", say("use number", r=figure(of_numbers.r_squared(of_number), language), error=near, n=n))
        return
    if score is None:
        yield element("p", say("use unknown"))
        return

    def share(value: float) -> str:
        return figure(percent(value), language)

    low, high = wilson_interval(score.accuracy, score.n_rows)
    words = say(
        "use accuracy",
        accuracy=share(score.accuracy),
        n=figure(f"{score.n_rows:,}", language),
        low=share(low),
        high=share(high),
    )
    name = sentences.commonest_class(facts, score)
    if name is not None and score.commonest is not None:
        words += f" {say('use baseline', name=name, share=share(score.commonest))}"
    standing = sentences.standing(score)
    yield element("p", words, element("strong", f" {say(f'use {standing}')}") if standing else None)
    if len(facts.setup.classes) == 2:
        yield from _of_the_rarer(facts, score, say, language)
    elif score.balanced_accuracy is not None and (known := [part for part in score.recall if part is not None]):
        worst = score.recall.index(min(known))
        yield element(
            "p",
            say(
                "use balanced",
                n=figure(f"{len(facts.setup.classes):,}", language),
                balanced=share(score.balanced_accuracy),
                name=_class(facts, worst),
                recall=share(min(known)),
            ),
        )


def _of_the_rarer(facts: Facts, score: Score, say: Say, language: Language) -> Iterator[Child]:
    """Yield recall, precision, false alarms and AUC of the class that is looked for; what is not known is left out."""
    point, positive = rarer(score)
    if point is None:
        return
    name, total = _class(facts, positive), score.class_rows[positive]
    right = round(point.recall * total)
    figures = {
        "recall": {"share": point.recall, "right": right, "n": total, "missed": total - right},
        "precision" if point.flagged else "precision none": {"share": point.precision},
        "false alarms": {"share": point.false_alarms},
    }
    rows = [
        (
            say(key.removesuffix(" none")),
            say(
                key if key == "precision none" else f"{key} of",
                name=name,
                **{
                    word: figure(percent(value) if word == "share" else f"{value:,}", language)
                    for word, value in values.items()
                },
            ),
        )
        for key, values in figures.items()
    ]
    if score.ranking is not None:
        rows.append((say("auc"), say("auc of", area=figure(f"{score.ranking.roc_auc:.3f}", language), name=name)))
    yield pairs(rows, class_="pairs small")


def rarer(score: Score) -> tuple[OperatingPoint | None, int]:
    """Return what a model of two classes does with the class that is looked for, and that class; None if not known."""
    if len(score.class_rows) != 2 or None in score.recall:
        return None, 0
    if score.ranking is not None:
        return score.ranking.in_use, score.ranking.positive
    positive = 0 if score.class_rows[0] < score.class_rows[1] else 1
    of_class, others = score.class_rows[positive], score.class_rows[1 - positive]
    recall, specificity = score.recall[positive] or 0.0, score.recall[1 - positive] or 0.0
    right, wrong = round(recall * of_class), others - round(specificity * others)
    flagged = right + wrong
    return OperatingPoint(
        threshold=0.5,
        flagged=flagged / (of_class + others),
        precision=right / flagged if flagged else 0.0,
        recall=recall,
        false_alarms=wrong / others if others else 0.0,
    ), positive


def _class(facts: Facts, place: int) -> str:
    return shortened(visible(facts.setup.classes[place]), _NAME)

"""The section on the audit: claimed beside proved, answers beside their distribution, what would have been found."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.accounting.figures import at_least, at_most
from quorate.report import drawing
from quorate.report.element import Child, element
from quorate.report.facts import Facts
from quorate.report.findings import Audit, FaultSize, FaultSizes
from quorate.report.layout import table
from quorate.report.notation import percent


def audit(facts: Facts) -> tuple[Child, ...] | None:
    """Return claimed ε beside what attacks prove, or how to measure it, or None where neither can be said."""
    if facts.audit is None:
        if facts.audit_command is None:
            return None
        return (element("p", "Not audited yet. Run ", element("code", facts.audit_command), "."),)
    lines = facts.audit.lines
    longest = max(max(line.claimed_epsilon, line.lower_bound) for line in lines)
    verdict = (
        "What was measured contradicts what was claimed: the guarantee does not hold."
        if facts.audit.violated and not any(line.violated for line in lines)
        else "An attack proves more than was claimed: the guarantee does not hold."
        if facts.audit.violated
        else "No attack proves more than was claimed. An audit can find a fault; it cannot show that there is none."
    )
    return (
        element("p", verdict, class_="verdict" if facts.audit.violated else None),
        table(
            "The bar is the ε that an attack proves, the mark the ε that was claimed.",
            ("Attack", "As a bar", "#Claimed ε", "#Proved ε", "#Confidence", "#Trials"),
            (
                (
                    line.attack,
                    drawing.against(
                        f"Measured at least {at_least(line.lower_bound)}, claimed {at_most(line.claimed_epsilon)}.",
                        measured=line.lower_bound,
                        claimed=line.claimed_epsilon,
                        longest=longest,
                    ),
                    at_most(line.claimed_epsilon),
                    at_least(line.lower_bound),
                    percent(line.confidence).replace(".0 %", " %"),
                    f"{line.trials:,}",
                )
                for line in lines
            ),
        ),
        *_comparisons(facts.audit),
        *(element("p", sentence) for sentence in said_of_sight(facts.audit.sees, facts.audit.does_not_see)),
        *_sizes(facts.audit),
    )


def _comparisons(found: Audit) -> tuple[Child, ...]:
    """Return how often answers came beside how often they should, if that was compared."""
    if not found.comparisons:
        return ()
    stage = found.stage
    return (
        table(
            "How often certain answers or noise came on made-up data, and how often they should.",
            ("Answers", "What was counted", "#Observed", "#Expected", "Agrees", "#Confidence", "#Runs"),
            (
                (
                    each.name,
                    each.event,
                    percent(each.observed),
                    percent(each.expected),
                    "no" if each.violated else "yes",
                    percent(each.confidence).replace(".0 %", " %"),
                    f"{each.trials:,}",
                )
                for each in found.comparisons
            ),
        ),
        *(
            ()
            if stage is None
            else (
                element(
                    "p",
                    f"One stage was charged ε = {at_most(stage.claimed_epsilon)}. An exact sum over its noise gives a "
                    f"privacy loss of {at_least(stage.exact_epsilon)}.",
                ),
            )
        ),
    )


def _sizes(found: Audit) -> tuple[Child, ...]:
    """Return how small a fault would have been found; nothing where an earlier version wrote the facts."""
    if found.sizes is None:
        return ()
    return (element("p", " ".join(said_of_sizes(found.sizes))),)


def said_of_sight(sees: Sequence[str], does_not_see: Sequence[str]) -> tuple[str, ...]:
    """Say which kinds of fault an audit looked for, and which it did not.

    Examples
    --------
    >>> said_of_sight(["noise that is missing"], ["votes that are counted wrongly"])
    ('It would see: noise that is missing.', 'It cannot see: votes that are counted wrongly.')
    """
    said = (("It would see", sees), ("It cannot see", does_not_see))
    return tuple(f"{begin}: {'; '.join(kinds)}." for begin, kinds in said if kinds)


def said_of_sizes(sizes: FaultSizes) -> tuple[str, ...]:
    """Return sentences on how small a fault an audit would have found.

    Examples
    --------
    >>> size = FaultSize(fault="noise smaller by 12 %", attack="all 50 answers", probability=0.9)
    >>> for sentence in said_of_sizes(FaultSizes(faults=[size], certainty=0.95)):
    ...     print(sentence)
    At these runs, noise smaller by 12 % would have been found with probability 0.9 or more (all 50 answers).
    Such sizes are measured beforehand, on copies of the mechanism that have the fault, with confidence 95 %.
    >>> said_of_sizes(FaultSizes())
    ('No size was measured for this mechanism, so it is not known how small a fault this audit would find.',)
    """
    if not sizes.faults or sizes.certainty is None:
        return ("No size was measured for this mechanism, so it is not known how small a fault this audit would find.",)
    measured = (
        "Such sizes are measured beforehand, on copies of the mechanism that have the fault, with confidence "
        f"{percent(sizes.certainty).replace('.0 %', ' %')}."
    )
    if sizes.elsewhere is None:
        return (*(_said(size, "At these runs", "would have been") for size in sizes.faults), measured)
    unknown = "No size was measured at the setting of this audit, so it is not known how small a fault it would find."
    return (
        f"{unknown} Sizes were measured at another setting: {sizes.elsewhere}.",
        *(_said(size, "There", "is") for size in sizes.faults),
        measured,
    )


def _said(size: FaultSize, where: str, verb: str) -> str:
    often = f"with probability {at_least(size.probability)} or more ({size.attack})"
    if size.found:
        return f"{where}, {size.fault} {verb} found {often}."
    return f"{where}, not even {size.fault} is known to be found {often}."

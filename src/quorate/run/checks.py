"""What is asked about every run, whichever method it has, and how it is answered."""

from __future__ import annotations

from quorate.ledger import Ledger
from quorate.mechanisms import Mechanism, is_own
from quorate.noise import NoiseSource
from quorate.outcomes import Outcome
from quorate.report import Check
from quorate.report.facts import name_of
from quorate.stored_names import stored_as

AUDIT = "audit"
NOISE = "Is the noise drawn exactly, from the distribution that the price assumes?"


def classes(*, were_read: bool, others_are_left_out: bool = False) -> Check:
    """Say where the class list is from, and what becomes of a label outside it: refused, or its row left out."""
    question = "Was the class list declared, and not read off the private labels?"
    if were_read:
        return Check(
            code="classes",
            question=question,
            outcome=Outcome.NOT_COVERED,
            evidence='The list was read off the labels, as classes="public" asks: which labels occur is treated as '
            "public.",
            remedy='Declare the list, for example classes=["no", "yes"].',
        )
    beyond = "rows with another label are left out" if others_are_left_out else "a label outside it is refused"
    return Check(
        code="classes",
        question=question,
        outcome=Outcome.BY_CONSTRUCTION,
        evidence=f"The list is an argument, and {beyond}. Where the owner has the list from, quorate cannot see.",
    )


def noise(mechanism: Mechanism) -> Check:
    """Say how noise is drawn: nobody has looked at the code of a mechanism of the owner's own."""
    if is_own(mechanism):
        return Check(
            code="noise",
            question=NOISE,
            outcome=Outcome.NOT_COVERED,
            evidence=f"{type(mechanism).__name__} is a mechanism of the owner's own. On made-up votes all its "
            "randomness came from the noise that it was given; from which distribution it draws, quorate cannot see.",
            remedy="Attack it: quorate audit.",
        )
    return exact_noise()


def exact_noise() -> Check:
    """Say how noise is drawn by code of quorate's own."""
    return Check(
        code="noise",
        question=NOISE,
        outcome=Outcome.BY_CONSTRUCTION,
        evidence="Every noise is an integer from an exact sampler; there is no other way to draw it.",
    )


@stored_as("quorate.pipeline.checks.seed")
def seed(noise: NoiseSource) -> Check:
    """Look whether the noise came from a given seed."""
    seeded = noise.seeded
    return Check(
        code="seed",
        question="Does the noise come from the operating system, and from no given seed?",
        outcome=Outcome.FAILED if seeded else Outcome.PASSED,
        evidence="Whoever has the seed can draw the same noise again and take it away."
        if seeded
        else f"The noise is that of {type(noise).__name__}: nobody can draw it again.",
        ran=name_of(seed),
        remedy="Remove unsafe_noise_seed and run again." if seeded else None,
    )


def chain(ledger: Ledger) -> Check:
    """Read the whole ledger again."""
    head = ledger.verify()  # raises where anything is wrong
    return Check(
        code="chain",
        question="Is the ledger whole, and are its rules kept?",
        outcome=Outcome.PASSED,
        evidence=f"All {head.sequence} entries were read again and every rule replayed.",
        ran=name_of(Ledger.verify),
    )


def audit_not_run() -> Check:
    """Say that nobody has attacked the run yet."""
    return Check(
        code=AUDIT,
        question="Do attacks prove no more than was claimed?",
        outcome=Outcome.NOT_RUN,
        evidence="The release was not attacked.",
    )

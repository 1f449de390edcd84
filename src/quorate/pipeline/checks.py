"""What is asked about every run, and how it is answered: by a function that looks, or by saying that none did."""

from __future__ import annotations

from quorate.accounting.neighbouring import LABELS_OF, ONE_LABEL, ONE_RECORD
from quorate.ensemble import (
    ChatTeacher,
    ClassifierTeacher,
    PartitionFault,
    PriorMatchingTeacher,
    check_partition,
    check_unfitted,
    not_looked_into,
)
from quorate.errors import PreconditionFailed
from quorate.ledger import Ledger
from quorate.mechanisms import Mechanism, is_own
from quorate.noise import NoiseSource
from quorate.outcomes import Outcome
from quorate.pipeline.task import Task
from quorate.report import Check
from quorate.report.facts import name_of
from quorate.stored_names import stored_as
from quorate.types import IntArray, Secret

SHARDS = "shards"
AUDIT = "audit"
NOISE = "Is the noise drawn exactly, from the distribution that the price assumes?"


def shards(task: Task, assigned: Secret[IntArray]) -> Check:
    """Look at the partition that the teachers are about to get.

    Raises PreconditionFailed if a unit could change two teachers: nothing may be fitted then.
    """
    private = task.inputs.private.reveal()
    n_shards = task.number_of_shards(assigned)
    faults = check_partition(private.unit_keys, assigned, n_shards, task.key, partition=task.partition)
    if faults:
        raise PreconditionFailed(
            f"the shards are not those of a {task.partition} partition: {_told(faults)}. A {task.unit} could change "
            "more than one teacher, so nothing was fitted. This is a fault of quorate; please report it"
        )
    rule = "the keyed hash of its identity, modulo the number of teachers"
    owner = task.unit.removesuffix(LABELS_OF.format(""))
    together = "" if task.unit in (ONE_RECORD, ONE_LABEL) else f", the rows of each {owner} are in the same one"
    if task.partition == "balanced":
        rule = "its place in the order of the keyed hashes of all identities, modulo the number of teachers"
    found = f"each is in one shard{together}, and its number is {rule}"
    if task.partition == "unit":
        found = f"those of each {owner} are in one shard, which is nobody else's"
    return Check(
        code=SHARDS,
        question=_question(task),
        outcome=Outcome.PASSED,
        evidence=f"All rows were looked at before any teacher was fitted: {found}. So {task.neighbouring.changing} "
        "changes exactly one teacher.",
        ran=name_of(check_partition),
    )


def _question(task: Task) -> str:
    does = "Do" if task.unit.endswith(LABELS_OF.format("")) else "Does"
    return f"{does} each {task.unit} belong to exactly one teacher?"


def _told(faults: frozenset[PartitionFault]) -> str:
    return "; ".join(sorted(faults))


def shards_not_looked_at(task: Task) -> Check:
    """Say that nobody has looked at the partition of this run."""
    return Check(
        code=SHARDS,
        question=_question(task),
        outcome=Outcome.NOT_RUN,
        evidence="The partition of this run was not looked at.",
    )


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


def preprocessing(task: Task) -> Check:
    """Look whether a part of the models came fitted."""
    question = "Did quorate fit nothing on the pooled private rows?"
    if task.preprocessing == "public":
        return Check(
            code="preprocessing",
            question=question,
            outcome=Outcome.NOT_COVERED,
            evidence="Steps were allowed to come fitted. That they were fitted on public rows is the owner's "
            "statement.",
            remedy="Give every step unfitted, inside teacher=.",
        )
    if isinstance(task.trainer, ChatTeacher):
        return Check(
            code="preprocessing",
            question=question,
            outcome=Outcome.NOT_COVERED,
            evidence="Teachers are prompts, and nothing is fitted: rows of one shard stand in each. What the model "
            "behind the endpoint learned from, and what it keeps between prompts, quorate cannot see.",
            remedy="See that it learned from no private row, and that a reply depends on its prompt alone.",
        )
    if not isinstance(task.trainer, ClassifierTeacher | PriorMatchingTeacher):
        return Check(
            code="preprocessing",
            question=question,
            outcome=Outcome.NOT_COVERED,
            evidence="The teacher is code of the owner's own, which trains and votes by itself. What it holds from "
            "elsewhere quorate cannot see.",
            remedy="See that it reads nothing but its shard, its seed and public facts.",
        )
    check_unfitted(task.teacher)  # refuses, so that who gets further has passed
    check_unfitted(task.student.learner)
    if (held := not_looked_into(task.teacher, task.student.learner)) is not None:
        return Check(
            code="preprocessing",
            question=question,
            outcome=Outcome.NOT_COVERED,
            evidence="No step of teacher or student was fitted when it came, so far as can be seen. They hold an "
            f"object of the class {held}, which is copied as it is. What it learned elsewhere quorate cannot see.",
            remedy="See that it learned from no private row, or have the model make it, from texts and numbers.",
        )
    return Check(
        code="preprocessing",
        question=question,
        outcome=Outcome.PASSED,
        evidence="No step of teacher or student was fitted when it came. Each teacher fits its own on its own shard; "
        "an encoder, where there is one, is fitted on public rows.",
        ran=name_of(check_unfitted),
    )


def outside(task: Task) -> Check:
    """Say what happened to the rows before quorate got them: it cannot see that."""
    touched = "that used the labels and" if task.labels_only else "in a Pipeline around the classifier that"
    return Check(
        code="outside",
        question="Was nothing fitted on the private rows before quorate got them?",
        outcome=Outcome.NOT_COVERED,
        evidence=f"Quorate sees the rows as they arrive. A step {touched} was fitted on them (a scaler, an "
        "encoder, a selection of columns) would carry each row into every shard, and the guarantee would not cover it.",
        remedy="Put such steps into teacher= (a Pipeline), or fit them on public rows.",
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


def about(task: Task, ledger: Ledger, *, while_running: tuple[Check, ...]) -> tuple[Check, ...]:
    """Answer every question about a run.

    `task`: what was done. `ledger`: what it was charged to. `while_running`: what the run itself looked at.
    """
    looked = {check.code: check for check in while_running}
    return (
        looked.get(SHARDS) or shards_not_looked_at(task),
        classes(were_read=task.classes_were_read),
        preprocessing(task),
        outside(task),
        noise(task.recipe.mechanism),
        seed(task.noise),
        chain(ledger),
        audit_not_run(),
    )

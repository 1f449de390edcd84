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
from quorate.ensemble.linear.tiny import TinyTeacher
from quorate.errors import PreconditionFailed
from quorate.findings import Finding, Outcome
from quorate.ledger import Ledger
from quorate.report.facts import name_of
from quorate.run.checks import audit_not_run, chain, classes, noise, seed
from quorate.types import IntArray, Secret
from quorate.voting.task import Task

SHARDS = "shards"


def shards(task: Task, assigned: Secret[IntArray]) -> Finding:
    """Look at the partition that the teachers are about to get.

    Raises PreconditionFailed if a unit could change two teachers: nothing may be fitted then.
    """
    private = task.inputs.private.reveal()
    n_shards = task.number_of_shards(assigned)
    faults = check_partition(private.unit_keys, assigned, n_shards, task.key, partition=task.partition)
    if faults:
        raise PreconditionFailed(
            f"the shards are not those of a {task.partition} partition: {_fault_words(faults)}. A {task.unit} could "
            "change more than one teacher, so nothing was fitted. This is a fault of quorate; please report it"
        )
    rule = "the keyed hash of its identity, modulo the number of teachers"
    owner = task.unit.removesuffix(LABELS_OF.format(""))
    together = "" if task.unit in (ONE_RECORD, ONE_LABEL) else f", the rows of each {owner} are in the same one"
    if task.partition == "balanced":
        rule = "its place in the order of the keyed hashes of all identities, modulo the number of teachers"
    where = f"each is in one shard{together}, and its number is {rule}"
    if task.partition == "unit":
        where = f"those of each {owner} are in one shard, which is nobody else's"
    return Finding(
        code=SHARDS,
        words=_question(task),
        outcome=Outcome.PASSED,
        evidence=f"All rows were looked at before any teacher was fitted: {where}. So {task.neighbouring.changing} "
        "changes exactly one teacher.",
        ran=name_of(check_partition),
    )


def _question(task: Task) -> str:
    does = "Do" if task.unit.endswith(LABELS_OF.format("")) else "Does"
    return f"{does} each {task.unit} belong to exactly one teacher?"


def _fault_words(faults: frozenset[PartitionFault]) -> str:
    return "; ".join(sorted(faults))


def shards_not_looked_at(task: Task) -> Finding:
    """Say that nobody has looked at the partition of this run."""
    return Finding(
        code=SHARDS,
        words=_question(task),
        outcome=Outcome.NOT_RUN,
        evidence="The partition of this run was not looked at.",
    )


def preprocessing(task: Task) -> Finding:
    """Look whether a part of the models came fitted."""
    question = "Did quorate fit nothing on the pooled private rows?"
    if task.preprocessing == "public":
        return Finding(
            code="preprocessing",
            words=question,
            outcome=Outcome.NOT_COVERED,
            evidence="Steps were allowed to come fitted. That they were fitted on public rows is the owner's "
            "statement.",
            remedy="Give every step unfitted, inside teacher=.",
        )
    if isinstance(task.trainer, ChatTeacher):
        return Finding(
            code="preprocessing",
            words=question,
            outcome=Outcome.NOT_COVERED,
            evidence="Teachers are prompts, and nothing is fitted: rows of one shard stand in each. What the model "
            "behind the endpoint learned from, and what it keeps between prompts, quorate cannot see.",
            remedy="See that it learned from no private row, and that a reply depends on its prompt alone.",
        )
    if isinstance(task.teacher, TinyTeacher):
        check_unfitted(task.student.learner)
        return Finding(
            code="preprocessing",
            words=question,
            outcome=Outcome.PASSED,
            evidence="Teachers and student are quorate's own, and no step of them comes fitted. Each teacher is solved "
            "from its own shard; the coordinates that rows are seen in are fitted on public rows.",
            ran=name_of(check_unfitted),
        )
    if not isinstance(task.trainer, ClassifierTeacher | PriorMatchingTeacher):
        return Finding(
            code="preprocessing",
            words=question,
            outcome=Outcome.NOT_COVERED,
            evidence="The teacher is code of the owner's own, which trains and votes by itself. What it holds from "
            "elsewhere quorate cannot see.",
            remedy="See that it reads nothing but its shard, its seed and public facts.",
        )
    check_unfitted(task.teacher)  # refuses, so that who gets further has passed
    check_unfitted(task.student.learner)
    if (held := not_looked_into(task.teacher, task.student.learner)) is not None:
        return Finding(
            code="preprocessing",
            words=question,
            outcome=Outcome.NOT_COVERED,
            evidence="No step of teacher or student was fitted when it came, so far as can be seen. They hold an "
            f"object of the class {held}, which is copied as it is. What it learned elsewhere quorate cannot see.",
            remedy="See that it learned from no private row, or have the model make it, from texts and numbers.",
        )
    return Finding(
        code="preprocessing",
        words=question,
        outcome=Outcome.PASSED,
        evidence="No step of teacher or student was fitted when it came. Each teacher fits its own on its own shard; "
        "an encoder, where there is one, is fitted on public rows.",
        ran=name_of(check_unfitted),
    )


def outside(task: Task) -> Finding:
    """Say what happened to the rows before quorate got them: it cannot see that."""
    touched = "that used the labels and" if task.labels_only else "in a Pipeline around the classifier that"
    return Finding(
        code="outside",
        words="Was nothing fitted on the private rows before quorate got them?",
        outcome=Outcome.NOT_COVERED,
        evidence=f"Quorate sees the rows as they arrive. A step {touched} was fitted on them (a scaler, an "
        "encoder, a selection of columns) would carry each row into every shard, and the guarantee would not cover it.",
        remedy="Put such steps into teacher= (a Pipeline), or fit them on public rows.",
    )


def about(task: Task, ledger: Ledger, *, while_running: tuple[Finding, ...]) -> tuple[Finding, ...]:
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

"""The cover sheet of a package: for the person who decides whether it may leave, in plain words, made from values.

The questions are those that output checkers of trusted research environments ask of a trained model. Each answer is
made from the facts and the receipt; nothing is typed by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from quorate.accounting.figures import at_most, several
from quorate.export.contents import MANIFEST, MEANING, ONNX, POOL, PROMPT, SKOPS, Charged, ExportReceipt, sum_of
from quorate.findings import Outcome
from quorate.ledger.budget import DELTA_DIGITS, EPSILON_DIGITS, float_up
from quorate.report import Facts, of_numbers, sentences
from quorate.report.method import words_of
from quorate.report.notation import percent, shortened, visible
from quorate.report.summary import rarer

#: A question, and its answer.
Question: TypeAlias = tuple[str, str]

_INTENT: Final = (
    "This package is to leave a protected environment. This sheet is for the person who decides whether it may. "
    "Everything in it was published by one run of quorate, follows from what was published, or is public."
)

_CHECK_IT: Final = (
    "Run `quorate check-export` on this package, on a machine of your own. It needs neither the private data nor the "
    "ledger. It compares every sum, computes the price of every charge again, and opens the model without trusting it."
)
_COMPARE: Final = (
    f"Compare the sum of `{MANIFEST}` that it prints with the one that the owner of the run sent you by another way: "
    "whoever changes the package and its manifest together changes this sum."
)
_IN_THE_LEDGER: Final = (
    "Where you may see the ledger, let its owner write `quorate ledger export` to a file and give that to `quorate "
    "check-export --ledger FILE`. The ledger must hold entry {entry}, whose hash is `{head}`."
)
_READ: Final = (
    "Read the checks of the run in the report: {passed} passed, {failed} failed, {unseen} were not covered or not run. "
    "Each says what was seen."
)
_DECIDE: Final = (
    "Decide whether ε and δ are small enough for these data, and whether the statements of the owner, which stand at "
    "the end of this sheet, can be relied on. No program can decide that."
)


def cover_sheet(facts: Facts, receipt: ExportReceipt, files: Mapping[str, bytes]) -> str:
    """Return the cover sheet as Markdown; `files`: the other files of the package, by name."""
    lines = [
        f"# Cover sheet: {visible(facts.provenance.run)}",
        _INTENT,
        "## What is in this package",
        visible(words_of(facts).card(facts)),
        _contents(files),
        "## What protects it",
        visible(facts.guarantee.promise),
        visible(facts.guarantee.odds),
        _charges(facts, receipt),
        "## What to check",
        _to_check(facts),
        "## Questions of disclosure control",
        "\n\n".join(f"**{question}** {visible(answer)}" for question, answer in questions(facts, receipt, files)),
        "## What the guarantee does not cover",
        "\n".join(f"- {visible(line)}" for line in (*sentences.not_protected(facts), *sentences.open_questions(facts))),
    ]
    return "\n\n".join(lines) + "\n"


def _contents(files: Mapping[str, bytes]) -> str:
    rows = [
        f"| `{name}` | {MEANING.get(name, 'not known')} | {len(files[name]):,} | `{sum_of(files[name])[:16]}…` |"
        for name in sorted(files)
    ]
    last = f"| `{MANIFEST}` | {MEANING[MANIFEST]} | | |"
    return "\n".join(("| file | what it is | bytes | SHA-256 begins |", "|---|---|---|---|", *rows, last))


def _charges(facts: Facts, receipt: ExportReceipt) -> str:
    guarantee = facts.guarantee
    bound, unit = sentences.bound(guarantee.epsilon, guarantee.delta), visible(guarantee.unit)
    changing = visible(guarantee.neighbouring.changing)
    lines = [
        f"- The guarantee: {bound}, per {unit}, for two data sets that differ by {changing}.",
        f"- It was made by {visible(guarantee.mechanism)}, accounted by {visible(guarantee.accounting)}.",
    ]
    lines += [f"- By what is compared: {visible(guarantee.figures)}."] if guarantee.also else []
    lines += [f"- Charged to the ledger: {_charge(charge)}." for charge in receipt.charges]
    return "\n".join(lines)


def _charge(charge: Charged) -> str:
    spent, what = charge.amounts, ", ".join(f"{several(n, 'draw')} for {name}" for name, n in charge.purposes.items())
    rho, epsilon = (at_most(float_up(amount, EPSILON_DIGITS)) for amount in (spent.rho_e9, spent.epsilon_e9))
    delta = at_most(float_up(spent.delta_e18, DELTA_DIGITS))
    price = f"ρ {rho} of zCDP" if spent.rho_e9 else f"ε {epsilon}, δ {delta}"
    return f"{price}; {visible(what)}{', with seeded noise, which promises nothing' * charge.seeded}"


def _to_check(facts: Facts) -> str:
    failed = [check for check in facts.checks if check.outcome is Outcome.FAILED]
    looked = [check for check in facts.checks if check.outcome is Outcome.PASSED]
    unseen = [check for check in facts.checks if check.outcome in (Outcome.NOT_COVERED, Outcome.NOT_RUN)]
    origin = facts.provenance
    steps = (
        _CHECK_IT,
        _COMPARE,
        _IN_THE_LEDGER.format(entry=f"{origin.ledger_entries:,}", head=origin.ledger_head),
        _READ.format(passed=len(looked), failed=len(failed), unseen=len(unseen)),
        _DECIDE,
    )
    return "\n".join(f"{place}. {step}" for place, step in enumerate(steps, start=1))


def questions(facts: Facts, receipt: ExportReceipt, files: Mapping[str, bytes]) -> tuple[Question, ...]:
    """Return the questions of disclosure control with their answers."""
    return (
        ("Does it hold rows of the private table, or values copied from them?", _copies(facts, files)),
        ("Does it hold counts or tables of private units, to which a threshold would apply?", _counts(facts)),
        ("Could the model have stored single records?", _stored(facts, files)),
        (
            "Can somebody tell from it whether one unit was in the data?",
            f"Only as far as the guarantee allows. {facts.guarantee.odds}",
        ),
        ("On how many private units does it rest?", _units(facts)),
        ("Is the noise secret?", _noise(facts)),
        ("What else was released about the same data?", _else(facts, receipt)),
        ("What may still be released?", f"Left in the ledger when the report was written: {sentences.left(facts)}."),
        ("Is the model of use?", _use(facts)),
        ("Can a file in it run code when it is opened?", _code(files)),
    )


def _copies(facts: Facts, files: Mapping[str, bytes]) -> str:
    if sentences.draws_pool(facts):
        labels = "labels.csv holds numbers of those rows, and their released labels. " if "labels.csv" in files else ""
        return (
            f"No. {POOL} holds rows that were drawn column by column from noisy counts, which the guarantee covers: "
            f"they stand for public rows, and none is a person's. {labels}The model holds names of columns and the "
            "values that the owner declared, and may hold values of those rows."
        )
    rows = (
        f"labels.csv holds numbers of rows of the public table and {several(facts.answers.answered, 'released label')} "
        "of them; no feature. "
        if "labels.csv" in files
        else ""
    )
    prompt = (
        f"{PROMPT} holds a few public rows as text, with their released labels, and is no part of the private table. "
        if PROMPT in files
        else ""
    )
    return (
        f"No. {rows}{prompt}The model holds names of columns, and may hold values of public rows; both come from the "
        f"public pool ({several(facts.setup.n_public, 'row')}) and from what the owner declared."
    )


def _counts(facts: Facts) -> str:
    if words_of(facts).COUNTS_ANSWERS and facts.setup.classes:
        counts = ", ".join(
            f"{name}: {n:,}" for name, n in zip(facts.setup.classes[:12], facts.answers.per_class[:12], strict=True)
        )
        rows = "drawn rows" if sentences.draws_pool(facts) else "public rows"
        return f"No count of private units. The counts of classes are of released labels of {rows}: {counts}."
    return "No count of private units, except the number of units where it was declared or read, which is stated below."


def _stored(facts: Facts, files: Mapping[str, bytes]) -> str:
    kept = " and ".join(name for name in (SKOPS, ONNX) if name in files)
    rows = "rows drawn from noisy counts" if sentences.draws_pool(facts) else "public rows"
    return words_of(facts).stored(facts, kept, rows)


def _units(facts: Facts) -> str:
    setup = facts.setup
    if setup.n_records is None:
        tells = "settings that follow from it tell about how large it is"  # as "300 teachers of about 4 rows each" does
        read = f"It was {_FROM['read']}; {tells}. " if setup.n_records_from == "read" else ""
        return (
            f"The number was not declared, and this package does not state it. {read}Ask the owner of the run whether "
            "the rule of your environment on the least number of units is kept."
        )
    return f"On {several(setup.n_records, setup.unit)}. The number was {_FROM[setup.n_records_from]}."


_FROM = {
    "declared": "declared by the owner, who says that it may be published",
    "read": "read off the data and is treated as public",
    "public": "public",
}


def _noise(facts: Facts) -> str:
    if facts.seeded:
        return f"No: {sentences.SEEDED}. {sentences.SEEDED_WHY}"
    return f"Yes. It was drawn from {facts.provenance.noise}, and nobody can draw it again."


def _else(facts: Facts, receipt: ExportReceipt) -> str:
    spending = facts.spending
    raised = "".join(f"The budget was raised {line}. " for line in sentences.raises(facts))
    earlier = (
        f"The ledger held {several(len(receipt.charges), 'charge')} when the report was written, and the guarantee is "
        "for all of them together."
        if len(receipt.charges) > 1
        else "Nothing else on the same ledger."
    )
    return (
        f"{earlier} Spent: {sentences.spent(facts)}. {raised}Another ledger for the same data would not be "
        "known here; ask its owner."
        if spending.durable
        else f"{earlier} The ledger was kept in memory, so that other releases are not known."
    )


def _use(facts: Facts) -> str:
    score = facts.utility.student
    if (number := of_numbers.scored(facts)) is not None:
        return f"It predicts {of_numbers.target(facts)}: {number}."
    if score is None:
        return "It was not measured: there were no public rows with labels."
    beside = "" if score.commonest is None else f"; always saying the commonest class has {percent(score.commonest)}"
    words = f"Its accuracy on {several(score.n_rows, 'public row')} with labels is {percent(score.accuracy)}{beside}."
    point, place = rarer(score)
    if point is None:
        return words
    name, total = shortened(facts.setup.classes[place], 40), score.class_rows[place]
    right = round(point.recall * total)
    calls = f"; {percent(point.precision)} of the rows that it calls so are" if point.flagged else ""
    return f"{words} Of {total:,} rows that are “{name}” it finds {right:,} and misses {total - right:,}{calls}."


def _code(files: Mapping[str, bytes]) -> str:
    reasons = []
    if SKOPS in files:
        reasons.append(f"{SKOPS} opens without any type that would have to be trusted")
    if ONNX in files:
        reasons.append(f"{ONNX} holds arithmetic alone, with no operator of anybody's own")
    return f"No. {'; '.join(reasons)}. The report holds no script, and the other files are text."

"""Checks of the paperwork: guarantee and scope, values, report, receipt, prices."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeVar

from quorate import accounting
from quorate.accounting import Guarantee
from quorate.accounting.figures import at_most, several
from quorate.accounting.neighbouring import Neighbouring
from quorate.errors import InvalidParameter, LedgerIntegrityError, PreconditionFailed, QuorateError
from quorate.export.contents import (
    CARDS,
    COVER,
    MANIFEST,
    METADATA,
    PROMPT,
    RECEIPT,
    TABLE_SCRIPT,
    VERSIONS,
    ExportReceipt,
    differing,
    receipt_for,
    sum_of,
    table_script,
)
from quorate.export.cover import cover_sheet
from quorate.export.file_checks import UnreadableError, failed, kind_of, not_run, passed, read_json
from quorate.findings import Finding
from quorate.folder.published import NAMES
from quorate.ledger.budget import Budget, Composition, spent_totals
from quorate.ledger.chain import verify
from quorate.ledger.pricing import check_prices, costs_more, priced_again
from quorate.ledger.scope import combined_scope
from quorate.release.guarantee import EARLIER, NOT_CLAIMED, weakest_that_holds
from quorate.report import Facts, model_card, render_html, render_json
from quorate.report.words import REPORT_FILES


def scope_differs(receipt: ExportReceipt, guarantee: Guarantee) -> str | None:
    """Say how a guarantee differs from what the scopes of its charges (one at least) promise together; None where unit
    and change are those of the charges, and no caveat of theirs is left out.
    """
    stated = [charge.scope for charge in receipt.charges if charge.scope is not None]
    if not stated:
        return "No charge says whose data it protects, so that no guarantee follows."
    try:
        scope = weakest_that_holds(combined_scope(stated), both=bool(guarantee.also))
    except QuorateError as error:
        return f"The charges promise nothing together: {error}."
    if (guarantee.unit, guarantee.neighbours) != (scope.unit, scope.neighbours):
        return (
            f"The charges protect one {scope.unit} ({scope.neighbours}), and the guarantee speaks of one "
            f"{guarantee.unit} ({guarantee.neighbours})."
        )
    needed = list(scope.caveats)
    needed += [NOT_CLAIMED] * (len(stated) < len(receipt.charges)) + [EARLIER] * (len(receipt.charges) > 1)
    missing = next((caveat for caveat in needed if caveat not in guarantee.caveats), None)
    return None if missing is None else f"The guarantee leaves out a caveat of its charges: {missing}."


Read = TypeVar("Read")
_GUARANTEE: Final = "guarantee.json"
_FACTS: Final = "facts.json"
_NOT_LINKED: Final = "that its rows are public and its labels the released ones is bound by the sums alone."
_UNIT: Final = 1.5e-9  # of ε: one unit of a ledger, by which mathematics libraries may differ, and the float's rounding


def _read(files: Mapping[str, bytes], name: str, read: Callable[[str], Read]) -> Read:
    if name not in files:
        raise UnreadableError(f"There is no {name}.")
    try:
        return read(files[name].decode("utf-8"))
    except (QuorateError, UnicodeDecodeError, TypeError, RecursionError) as error:
        raise UnreadableError(f"{name if name == _FACTS else 'It'} cannot be read: {error}.") from None


def _guarantee(files: Mapping[str, bytes]) -> Guarantee:
    return _read(files, _GUARANTEE, Guarantee.from_json)


def _facts(files: Mapping[str, bytes]) -> Facts:
    return _read(files, _FACTS, Facts.from_json)


def _receipt(files: Mapping[str, bytes]) -> ExportReceipt:
    return _read(files, RECEIPT, ExportReceipt.from_json)


def _if_any(look: Callable[[Mapping[str, bytes]], Read], files: Mapping[str, bytes]) -> Read | None:
    try:
        return look(files)
    except UnreadableError:
        return None


def schema(files: Mapping[str, bytes]) -> Finding:
    """Read the guarantee by its schema."""
    return passed(f"It holds every field of the schema and no other. It says: {_guarantee(files)}.")


def seed(files: Mapping[str, bytes]) -> Finding:
    """Look for a seed wherever one would be told."""
    guarantee, facts, receipt = _if_any(_guarantee, files), _if_any(_facts, files), _if_any(_receipt, files)
    named = [
        name
        for name, seeded in (
            (_GUARANTEE, guarantee is not None and guarantee.seeded),
            (_FACTS, facts is not None and (facts.seeded or facts.provenance.seeded)),
            (RECEIPT, receipt is not None and receipt.charges[-1:] and receipt.charges[-1].seeded),
        )
        if seeded
    ]
    if named:
        return failed(
            f"{', '.join(named)}: the noise came from a given seed. The run is reproducible, therefore not private, "
            "and nothing is promised."
        )
    try:
        facts, guarantee = _facts(files), _guarantee(files)
    except UnreadableError as error:
        return failed(f"Without guarantee and values it cannot be told. {error}")
    earlier = receipt is not None and any(charge.seeded for charge in receipt.charges)
    if earlier and not guarantee.seeded_earlier:
        return failed("A charge had seeded noise, and the guarantee does not say so.")
    return passed(f"The noise was drawn from {facts.provenance.noise}, and no file speaks of a seed.")


def values(files: Mapping[str, bytes]) -> Finding:
    """Make the guarantee, the report, the card, the metadata and the cover sheet again from the values."""
    facts = _facts(files)
    if _if_any(_guarantee, files) != facts.guarantee:
        return failed(f"{_GUARANTEE} says something else than the guarantee in {_FACTS}.")
    prompt = _prompt_differs(files, facts)
    if prompt is not None:
        return failed(f"{PROMPT} {prompt}.")
    packer = _packed_by(files)
    wrong = differing(files[METADATA], facts, files) if METADATA in files else None
    if wrong is not None and packer == version("quorate"):
        return failed(f"{METADATA} says {wrong} otherwise than it follows from {_FACTS}.")
    if wrong is not None:
        return _written_by(METADATA, packer)
    maker = dict(facts.provenance.versions).get("quorate")
    if maker != version("quorate"):
        return not_run(
            f"The guarantee agrees with the values. Report and card were written by quorate {maker}, and this is "
            f"{version('quorate')}, which may word them otherwise.",
            f"Check it with quorate {maker}, which wrote them.",
        )
    card = CARDS.get(kind_of(files) or "", "model_card.md")
    reports = {name: render_html(facts, language=language) for language, name in REPORT_FILES.items() if name in files}
    script = table_script(facts)
    if TABLE_SCRIPT in files and script is None:
        return failed(f"{TABLE_SCRIPT} does not follow from {_FACTS}.")
    rewritten = {
        **reports,
        **({} if script is None else {TABLE_SCRIPT: script}),
        card: model_card(facts),
        _FACTS: render_json(facts),
    }
    if COVER in files:
        try:
            held = _receipt(files)
        except UnreadableError as error:
            return failed(f"The cover sheet cannot be made again without the receipt. {error}")
        if packer != version("quorate"):
            return _written_by(COVER, packer)
        others = {name: content for name, content in files.items() if name not in (COVER, MANIFEST)}
        rewritten[COVER] = cover_sheet(facts, held, others)
    differ = sorted(name for name, text in rewritten.items() if name in files and files[name] != text.encode())
    if differ:
        return failed(f"Written again from {_FACTS}, other words come out in: {', '.join(differ)}.")
    same = ["guarantee", "report", "model card"]
    same += ["metadata"] * (METADATA in files) + ["cover sheet"] * (COVER in files)
    own = " The model's version, and how its ONNX file compared, are what whoever packed it says." * (METADATA in files)
    linked = f" {PROMPT} carries this guarantee and these classes; {_NOT_LINKED}" * (PROMPT in files)
    return passed(f"Made again from the values, these are the same: {', '.join(same)}.{own}{linked}")


def _written_by(name: str, packer: str | None) -> Finding:
    return not_run(
        f"{name} was written by quorate {packer}, and this is {version('quorate')}, which may word it otherwise.",
        f"Check it with quorate {packer}, which wrote it.",
    )


def _prompt_differs(files: Mapping[str, bytes], facts: Facts) -> str | None:
    """Say what is wrong with the student as a prompt; None where nothing is, or there is none."""
    if PROMPT not in files:
        return None
    from quorate.students import PromptStudent

    try:
        prompt = PromptStudent.from_json(files[PROMPT].decode("utf-8"))
    except (InvalidParameter, UnicodeDecodeError, RecursionError):
        return "cannot be read as a prompt of quorate"
    if prompt.guarantee != facts.guarantee:
        return f"says something else than the guarantee in {_FACTS}"
    if [str(label) for label in prompt.classes] != [str(label) for label in facts.setup.classes]:
        return f"has other classes than {_FACTS}"
    if len(prompt.examples) > facts.answers.answered:
        return f"holds more examples than {several(facts.answers.answered, 'released label')}"
    return None


def _packed_by(files: Mapping[str, bytes]) -> str | None:
    """Return the version of quorate that wrote the package, as it is told."""
    tree = read_json(files, VERSIONS)
    packer = tree.get("package") if isinstance(tree, dict) else None
    name = packer.get("quorate") if isinstance(packer, dict) else None
    return name if isinstance(name, str) else None


def prices(files: Mapping[str, bytes]) -> Finding:
    """Price every event again, add charges and scopes up, and compare both with the guarantee."""
    if RECEIPT not in files and kind_of(files) == "files":
        return not_run("A plain export lists no events.", "Ask for a package: quorate export --format tre.")
    guarantee, receipt, facts = _guarantee(files), _receipt(files), _facts(files)
    if not receipt.charges:
        return failed("The receipt lists no charge, and a guarantee follows from charges.")
    other = scope_differs(receipt, guarantee)
    if other is not None:
        return failed(other)
    composition: Composition = "zcdp" if receipt.composition == "zcdp" else "sum"
    try:
        for place, charge in enumerate(receipt.charges, start=1):
            priced = [(charge.event, charge.amounts)]
            priced += [] if charge.also is None else [(charge.also.event, charge.also.amounts)]
            if any(costs_more(event, recorded, composition=composition) for event, recorded in priced):
                return failed(f"Charge {place} was less than its event costs.")
    except InvalidParameter as error:
        own = [kind for charge in receipt.charges for kind in accounting.unknown_kinds(charge.event.text)]
        if own:
            return not_run(
                f"The owner's own event {own[0]!r} has a price only where its module is installed.",
                "That its rule is true is the owner's statement; the guarantee says so among its limits.",
            )
        return failed(f"An event cannot be priced: {error}.")
    budget = Budget(facts.spending.budget_epsilon, facts.spending.budget_delta, composition=receipt.composition)  # type: ignore[arg-type]
    total = spent_totals(receipt.total, budget)
    if total.epsilon is None or total.delta is None:
        return failed("The charges do not add up to an ε and a δ.")
    said = f"ε {at_most(total.epsilon, 9)} and δ {at_most(total.delta, 9)}"
    near = abs(total.epsilon - guarantee.epsilon) <= _UNIT and abs(total.delta - guarantee.delta) <= 1e-18
    if not near:
        return failed(
            f"The charges come to {said}, and the guarantee says ε {guarantee.epsilon!r} and δ {guarantee.delta!r}."
        )
    if (wrong := _otherwise(receipt, guarantee, budget)) is not None:
        return failed(wrong)
    return passed(
        f"{priced_again(len(receipt.charges))}. Together they come to "
        f"{said} for one {guarantee.unit} ({guarantee.neighbours}), as the guarantee says."
    )


def _otherwise(receipt: ExportReceipt, guarantee: Guarantee, budget: Budget) -> str | None:
    """Say where a guarantee's figure for another relation is below what the charges come to there; None elsewhere."""
    for other in guarantee.also:
        relation = Neighbouring.read(other.neighbours, guarantee.unit)
        charged = receipt.total_for(relation.change)
        total = None if charged is None else spent_totals(charged, budget)
        if total is None or total.epsilon is None or total.delta is None:
            return f"The charges do not tell what {relation.changing} costs, and the guarantee does."
        if total.epsilon > other.epsilon + _UNIT or total.delta > other.delta + 1e-18:
            said = f"ε {at_most(total.epsilon, 9)}"
            return f"For {relation.changing} the charges come to {said}, and the guarantee says less."
    return None


def receipt(files: Mapping[str, bytes]) -> Finding:
    """Hold the receipt against the values, and against the files."""
    if RECEIPT not in files and kind_of(files) == "files":
        return not_run("A plain export holds no receipt.", "Ask for a package: quorate export --format tre.")
    held, facts = _receipt(files), _facts(files)
    origin = facts.provenance
    if (held.receipt.sequence, held.receipt.head_hash) != (origin.ledger_entries, origin.ledger_head):
        return failed("It names another entry of a ledger than the report: it is the receipt of another run.")
    if held.composition != facts.spending.composition:
        return failed("It states another rule of composition than the report.")
    kind = kind_of(files)
    here = {("model_card.md" if name == CARDS.get(kind or "") else name): content for name, content in files.items()}
    wrong = sorted(name for name, total in held.published.items() if name in here and sum_of(here[name]) != total)
    if wrong:
        return failed(f"The run published something else under these names: {', '.join(wrong)}.")
    unknown = sorted(name for name in NAMES if name in here and name not in held.published)
    if unknown:
        return failed(f"The run did not publish: {', '.join(unknown)}.")
    return passed(
        f"It names entry {held.receipt.sequence:,} of the ledger with the hash that the report has, and the sums of "
        f"{several(len(held.published), 'published file')}, which are those of the files here."
    )


def versions(files: Mapping[str, bytes]) -> Finding:
    """Compare the versions that are told with those of the values."""
    facts = _facts(files)
    of_run = dict(facts.provenance.versions)
    if VERSIONS in files:
        tree = read_json(files, VERSIONS)
        if not isinstance(tree, dict) or tree.get("run") != of_run or not isinstance(tree.get("package"), dict):
            return failed(f"{VERSIONS} says something else than {_FACTS}.")
    elif kind_of(files) != "files":
        return failed(f"There is no {VERSIONS}.")
    if not {"quorate", "scikit-learn"} <= of_run.keys():
        return failed("The versions of quorate and scikit-learn are not told.")
    return passed(f"The run was made by quorate {of_run['quorate']} and scikit-learn {of_run['scikit-learn']}.")


def chain(files: Mapping[str, bytes], entries: list[Any] | None) -> Finding:
    """Replay the whole ledger, and hold the receipt against it."""
    if entries is None:
        return not_run(
            "The package holds no entry of the ledger, since entries tell when they were made, and that may depend on "
            "private rows. What is proved without it: the charges are worth the guarantee.",
            "Inside the building, give what quorate ledger export wrote with --ledger.",
        )
    held, guarantee = _receipt(files), _guarantee(files)
    try:
        state = verify(entries)
        check_prices(state)
        recomputed = receipt_for(state, held.receipt, held.published)
    except LedgerIntegrityError as error:
        return failed(f"The ledger does not bear it out: {error}.")
    if recomputed != held:
        return failed("The ledger holds other charges, or other scopes, up to that entry than the receipt lists.")
    other = scope_differs(recomputed, guarantee)
    if other is not None:
        return failed(other)
    return passed(
        f"{several(len(entries), 'entry')} replayed, every hash computed again and every charge priced. The ledger "
        "holds the entry of the receipt and these very charges: events, amounts and whose data they protect. It holds "
        "no sum of a file: that model, labels and report are those of the run is seen by --digest alone."
    )


def entries_of(ledger: Path) -> list[Any]:
    """Return the entries of a ledger that ``quorate ledger export`` wrote; refuse another file."""
    try:
        entries = json.loads(ledger.read_text(encoding="utf-8"))["entries"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        entries = None
    if not isinstance(entries, list) or not entries:
        raise PreconditionFailed(f"{ledger} is no export of a ledger; quorate ledger export writes one")
    return entries

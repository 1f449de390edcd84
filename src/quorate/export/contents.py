"""What a package holds: names of its files, the metadata for a registry, and the receipt of what the ledger charged.

The receipt is in a form that anybody can price again. It lists the charges, with their events, up to the entry that the
report names. It holds no entry of the ledger and no other hash: an entry tells to the microsecond when it was made, a
guess at the time can be tried against a hash, and how long teachers took depends on private rows. Whoever may see the
ledger holds the receipt against it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import resources
from typing import Any, Final

from quorate.accounting.neighbouring import Change
from quorate.errors import InvalidParameter, LedgerIntegrityError
from quorate.folder import published
from quorate.ledger.budget import BudgetUnits
from quorate.ledger.chain import Receipt, check_held
from quorate.ledger.fields import Json
from quorate.ledger.scope import GuaranteeScope, OtherCharge, amounts_for
from quorate.ledger.state import LedgerState
from quorate.plugins import METHODS
from quorate.release.charge import SEEDED_CLIENT
from quorate.report import Facts
from quorate.report.plain import as_json as plain
from quorate.report.student_file import TableColumn, TextTable, Written
from quorate.report.summary import rarer
from quorate.report.utility import Score
from quorate.report.words import REPORT_FILES

FORMAT: Final = "quorate export 1"
MANIFEST, METADATA, VERSIONS, COVER = "manifest.json", "metadata.json", "versions.json", "COVER-SHEET.md"
ONNX: Final = "student.onnx"
RECEIPT: Final = "receipt.json"
SKOPS: Final = published.STUDENT
TABLE_SCRIPT: Final = "read_table.py"
PROMPT: Final = published.PROMPT
POOL: Final = published.POOL

#: Name of the model card, by the kind of package; a registry shows README.md.
CARDS: Final = {"tre": "model_card.md", "registry": "README.md"}

#: What each file is, in words for whoever decides whether it may leave.
MEANING: Final = {
    COVER: "this sheet",
    SKOPS: "the model, for Python with scikit-learn and skops",
    ONNX: "the same model for programs without Python",
    TABLE_SCRIPT: "a program that reads dates and numbers of a table as the model takes them; the check makes it again",
    "labels.csv": "the released labels of public rows",
    PROMPT: "the student as a prompt: public rows with released labels, as examples for a language model",
    POOL: "rows drawn from noisy counts of the columns: they stand for public rows, and are not people",
    "guarantee.json": "the privacy guarantee, for programs",
    RECEIPT: "what the ledger charged, so that the guarantee can be computed again",
    "report.html": "the report, public edition",
    "report.de.html": "the same, its first page and headings in German",
    "report.fr.html": "the same, its first page and headings in French",
    "model_card.md": "the report in short",
    "README.md": "the report in short",
    "facts.json": "the values that report and model card are made from",
    "audit.json": "what an attack on the mechanism could prove",
    METADATA: "name, version and figures of the model, for a registry",
    VERSIONS: "versions of the software",
    MANIFEST: "the sum of each file",
}

#: What a package of a kind must hold, beside one file of the model at least; and what it may hold.
NEEDED: Final = {
    kind: frozenset(
        {"guarantee.json", RECEIPT, "report.html", "facts.json", METADATA, VERSIONS, MANIFEST, card}
        | ({COVER} if kind == "tre" else set())
    )
    for kind, card in CARDS.items()
}
OPTIONAL: Final = frozenset(
    {SKOPS, ONNX, TABLE_SCRIPT, PROMPT, POOL, "labels.csv", "audit.json", *REPORT_FILES.values()}
)


def table_script(facts: Facts) -> str | None:
    """Return a program that reads a table as the model takes it; None where its cells can be taken as they are."""
    columns = () if facts.student_file is None else facts.student_file.read_columns
    if not columns:
        return None
    entries = "".join(f"    {_for_script(column)!r},\n" for column in columns)
    source = resources.files("quorate.export").joinpath("read_table.py").read_text(encoding="utf-8")
    source = source.replace("COLUMNS: list[dict[str, Any]] = []", f"COLUMNS: list[dict[str, Any]] = [\n{entries}]", 1)
    return source.replace("WRITTEN: dict[str, Any] = {}", f"WRITTEN: dict[str, Any] = {_for_polars(facts)!r}", 1)


def _for_polars(facts: Facts) -> dict[str, Any]:
    """Return how CSV files of the run are written, as `polars.read_csv` takes it, where it is not as usual."""
    written = TextTable() if facts.student_file is None else facts.student_file.text_table or TextTable()
    how = {"separator": written.separator, "encoding": written.encoding, "quote_char": written.quote or None}
    usual = {"separator": "", "encoding": TextTable().encoding, "quote_char": TextTable().quote}
    return {key: value for key, value in how.items() if value != usual[key]}


def _for_script(column: TableColumn) -> dict[str, Any]:
    kind, written = column.read_kind, column.written or Written()
    return {
        "name": column.name,
        "kind": {"category": "text", "text": "words"}.get(kind, kind),
        "comma": column.comma,
        "gaps": bool(column.gaps),
        "decimal": written.decimal,
        "thousands": written.thousands,
        "date_format": written.date_format,
        "missing": list(written.missing),
    }


def _of_the_rarer(facts: Facts, score: Score) -> dict[str, Any]:
    """Return what a model of two classes does with the class that is looked for; nothing where that is not known."""
    point, place = rarer(score)
    if point is None:
        return {}
    shares = {"precision": point.precision, "recall": point.recall, "false_alarms": point.false_alarms}
    return {"class_looked_for": facts.setup.classes[place], **shares}


def _of_number(facts: Facts) -> dict[str, Any] | None:
    """Return how near predicted numbers are; None where nothing was measured."""
    score = facts.utility.number
    if score is None:
        return None
    return {
        "public_rows": score.n_rows,
        "r_squared": score.r_squared,
        "mean_absolute_error": score.mean_absolute_error,
    }


def metadata(facts: Facts, onnx: Any, files: Collection[str], model_version: Any) -> dict[str, Any]:
    """Return the metadata of a package: every figure comes from `facts`; `onnx` is what is told of that model."""
    score, origin = facts.utility.student, facts.provenance
    columns = () if facts.student_file is None else facts.student_file.known_columns
    return {
        "name": origin.run,
        "version": model_version,
        **(
            {"task": "classification", "classes": list(facts.setup.classes)}
            if facts.setup.target_range is None
            else {"task": "regression", "target_range": list(facts.setup.target_range)}
        ),
        "student": facts.setup.student if facts.fitted is None else facts.fitted.name,
        "method": "the direct method" if facts.by == "direct" else METHODS[facts.by].words,
        "files": [name for name in (SKOPS, ONNX) if name in files],
        "onnx": onnx,
        # Not there where an earlier version made the run, whose packages stay as they are.
        **({"columns": [{**plain(column), "cells": column.words} for column in columns]} if columns else {}),
        "guarantee": json.loads(facts.guarantee.to_json()),
        "metrics": _of_number(facts)
        if score is None
        else {
            "public_rows": score.n_rows,
            "accuracy": score.accuracy,
            "balanced_accuracy": score.balanced_accuracy,
            "accuracy_of_the_commonest_class": score.commonest,
            **({} if score.chosen is None else {score.chosen.scoring: score.chosen.value}),
            **_of_the_rarer(facts, score),
        },
        "ledger_head": origin.ledger_head,
        "ledger_entries": origin.ledger_entries,
        "started": origin.started,
        "versions": dict(origin.versions),
    }


def as_json(tree: Any) -> bytes:
    """Return a tree as the files of a package hold it."""
    return (json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def differing(content: bytes, facts: Facts, files: Collection[str]) -> str | None:
    """Name what metadata say otherwise than the values that they are made from; None where they are the same bytes. The
    version of the model and what is told of the ONNX model stand in no other file: text, and there if it is.
    """
    try:
        stated = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return "everything"
    if not isinstance(stated, dict):
        return "everything"
    version, onnx = stated.get("version"), stated.get("onnx")
    if not isinstance(version, str):
        return "the version"
    if not isinstance(onnx, dict if ONNX in files else type(None)):
        return "ONNX"
    rewritten = metadata(facts, onnx, files, version)
    for name in (*rewritten, *(name for name in stated if name not in rewritten)):
        if name not in stated or name not in rewritten or as_json(stated[name]) != as_json(rewritten[name]):
            return repr(name)
    return None if as_json(rewritten) == content else "one thing twice, or in another order or writing,"


RECEIPT_FORMAT: Final = "quorate receipt 1"
_KEYS = {"format", "receipt", "composition", "charges", "published"}
_CHARGE = {"event", "amounts", "purposes", "seeded", "scope"}
_SCOPE = {"unit", "neighbours", "caveats"}
_ALSO = {"neighbours", "event", "amounts"}


@dataclass(frozen=True, slots=True)
class Charged:
    """One charge of the ledger: its event as canonical JSON, amounts, purposes and answers, and whether noise was
    `seeded`. `scope`: whose data against which change; `also`: for the other relation; None where the ledger does not
    say.
    """

    event: Json
    amounts: BudgetUnits
    purposes: Mapping[str, int]
    seeded: bool
    scope: GuaranteeScope | None
    also: OtherCharge | None = None

    def to_object(self) -> dict[str, Any]:
        """Return the charge as a JSON object."""
        scope, also = self.scope, self.also
        other = None
        if also is not None:
            other = {"neighbours": also.neighbours, "event": also.event.value, "amounts": asdict(also.amounts)}
        return {
            **({} if other is None else {"also": other}),
            "event": self.event.value,
            "amounts": asdict(self.amounts),
            "purposes": dict(self.purposes),
            "seeded": self.seeded,
            "scope": None
            if scope is None
            else {"unit": scope.unit, "neighbours": scope.neighbours, "caveats": list(scope.caveats)},
        }


@dataclass(frozen=True, slots=True)
class ExportReceipt:
    """What :data:`RECEIPT` holds: the receipt that the report names, the rule, the charges up to it, oldest first, and
    the SHA-256 of each published file.
    """

    receipt: Receipt
    composition: str
    charges: tuple[Charged, ...]
    published: Mapping[str, str]

    @property
    def total(self) -> BudgetUnits:
        """What all charges come to."""
        return sum((charge.amounts for charge in self.charges), BudgetUnits())

    def total_for(self, change: Change) -> BudgetUnits | None:
        """What all charges come to for a change; None where one of them does not tell."""
        total = BudgetUnits()
        for charge in self.charges:
            amounts = amounts_for(change, charge.amounts, charge.scope, charge.also)
            if amounts is None:
                return None
            total += amounts
        return total

    def to_json(self) -> str:
        """Return it as indented JSON."""
        tree = {
            "format": RECEIPT_FORMAT,
            "receipt": self.receipt.to_object(),
            "composition": self.composition,
            "charges": [charge.to_object() for charge in self.charges],
            "published": dict(sorted(self.published.items())),
        }
        return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ExportReceipt:
        """Read what :meth:`to_json` wrote; refuse anything else, or what a later version wrote."""
        try:
            tree = json.loads(text)
            if tree["format"] != RECEIPT_FORMAT or tree.keys() != _KEYS or tree["composition"] not in ("sum", "zcdp"):
                raise InvalidParameter(f"{RECEIPT} is not of the form {RECEIPT_FORMAT!r}")
            charges = tuple(_charge(charge) for charge in tree["charges"])
            published = {str(name): str(total) for name, total in tree["published"].items()}
            return cls(Receipt.from_object(tree["receipt"]), tree["composition"], charges, published)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, InvalidParameter):
                raise
            raise InvalidParameter(f"{RECEIPT} cannot be read as {RECEIPT_FORMAT!r}") from None


def _charge(tree: Any) -> Charged:
    if tree.keys() - {"also"} != _CHARGE or not isinstance(tree["seeded"], bool):
        raise InvalidParameter(f"a charge in {RECEIPT} must hold exactly {', '.join(sorted(_CHARGE))}")
    purposes = {str(name): int(n) for name, n in tree["purposes"].items()}
    amounts, scope = BudgetUnits(**tree["amounts"]), _scope(tree["scope"])
    also = _also(tree.get("also"))
    if also is not None:
        also.check_beside(scope)
    return Charged(Json.of(tree["event"], "event"), amounts, purposes, tree["seeded"], scope, also)


def _also(tree: Any) -> OtherCharge | None:
    if tree is None:
        return None
    if tree.keys() != _ALSO:
        raise InvalidParameter(f"also in {RECEIPT} must hold exactly {', '.join(sorted(_ALSO))}")
    amounts = BudgetUnits(**tree["amounts"])
    return OtherCharge(neighbours=tree["neighbours"], event=Json.of(tree["event"], "event"), amounts=amounts)


def _scope(tree: Any) -> GuaranteeScope | None:
    if tree is None:
        return None
    if tree.keys() != _SCOPE or not isinstance(tree["caveats"], list):
        raise InvalidParameter(f"a scope in {RECEIPT} must hold exactly {', '.join(sorted(_SCOPE))}")
    return GuaranteeScope(unit=tree["unit"], neighbours=tree["neighbours"], caveats=tuple(tree["caveats"]))


def receipt_for(state: LedgerState, receipt: Receipt, published: Mapping[str, str]) -> ExportReceipt:
    """Return the receipt of what a verified ledger had charged when an entry was written; `published`: sums of files.
    Raises LedgerIntegrityError if the ledger does not hold that entry: the report is of another ledger.
    """
    check_held(state, receipt)
    charges = tuple(
        Charged(held.event, held.amounts, held.purposes, held.client == SEEDED_CLIENT, held.claim, held.also)
        for sequence, held in ((sequence, kept.reserved) for sequence, kept in state.reservations.items())
        if sequence <= receipt.sequence
    )
    if state.budget is None or not charges:
        raise LedgerIntegrityError(
            "the ledger was charged nothing before the report was written; restore the newest one"
        )
    return ExportReceipt(receipt, state.budget.composition, charges, dict(published))


def sum_of(content: bytes) -> str:
    """Return the SHA-256 sum of a file, in hexadecimal."""
    return sha256(content).hexdigest()

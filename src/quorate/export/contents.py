"""Names of the files of a package, what each of them is, and the metadata that a registry stores beside a model."""

from __future__ import annotations

import json
from collections.abc import Collection
from importlib import resources
from typing import Any, Final

from quorate.folder import published
from quorate.report import Facts
from quorate.report.plain import as_json as plain
from quorate.report.student_file import TableColumn, Written
from quorate.report.summary import rarer
from quorate.report.utility import Score
from quorate.report.words import REPORT_FILES

FORMAT: Final = "quorate export 1"
MANIFEST, METADATA, VERSIONS, COVER = "manifest.json", "metadata.json", "versions.json", "COVER-SHEET.md"
ONNX: Final = "student.onnx"
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
    "receipt.json": "what the ledger charged, so that the guarantee can be computed again",
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
        {"guarantee.json", "receipt.json", "report.html", "facts.json", METADATA, VERSIONS, MANIFEST, card}
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
    return source.replace("COLUMNS: list[dict[str, Any]] = []", f"COLUMNS: list[dict[str, Any]] = [\n{entries}]", 1)


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
        "method": "votes of teachers" if facts.rounds is None else "the direct method",
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
    again = metadata(facts, onnx, files, version)
    for name in (*again, *(name for name in stated if name not in again)):
        if name not in stated or name not in again or as_json(stated[name]) != as_json(again[name]):
            return repr(name)
    return None if as_json(again) == content else "one thing twice, or in another order or writing,"

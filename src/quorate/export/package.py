"""A package for an airlock or a model registry: what a finished run published, put together with its paperwork.

Everything in it was published by the run, follows from what was published, or is public. It is checked by the same
function that a reviewer uses before it gets its name, so that no package is handed over that the check would fail.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.export.check import check_files
from quorate.export.contents import (
    CARDS,
    COVER,
    FORMAT,
    MANIFEST,
    METADATA,
    ONNX,
    POOL,
    RECEIPT,
    SKOPS,
    TABLE_SCRIPT,
    VERSIONS,
    as_json,
    metadata,
    receipt_for,
    sum_of,
    table_script,
)
from quorate.export.cover import cover_sheet
from quorate.export.onnx_model import onnx_student
from quorate.findings import Outcome
from quorate.folder.folder import RunFolder
from quorate.folder.published import FACTS, published_files, write_copies, zipped
from quorate.ledger.chain import Receipt
from quorate.ledger.ledger_files import sync_folder
from quorate.release.keys import told_as_typed, write_atomically, write_beside
from quorate.report import Facts

KINDS: Final = ("tre", "registry")
MODELS: Final = ("skops", "onnx", "both")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Package:
    """What was written: names of the files in order, the manifest last, and its SHA-256, which stands for every byte of
    the package: sent by another way, it shows whether somebody changed both.
    """

    path: Path
    files: tuple[str, ...]
    digest: str


def export_package(
    root: Path, destination: Path, *, kind: str, model: str = "skops", model_version: str = "1"
) -> Package:
    """Write a package of a finished run into a new ``.zip`` or folder: for an airlock, with a cover sheet, or for a
    registry.

    Raises SeededNoiseRefused; PreconditionFailed if the run has not finished, a file is not what it published, the
    student cannot be converted, the destination exists or lies on either side of the run, or the package would not pass
    its own check; LedgerIntegrityError if the ledger is not the one that the report names. Nothing is written then.
    """
    if _VERSION.fullmatch(model_version) is None:
        raise InvalidParameter(f"model version must be letters, digits and . + _ -, got {model_version!r}")
    _refuse_inside(root, destination)
    if os.path.lexists(destination) and (not destination.is_dir() or any(destination.iterdir())):
        raise PreconditionFailed(f"{destination} stands there already; choose a new name, so that nothing else leaves")
    published = published_files(root)
    files = packaged(root, published, kind=kind, model=model, model_version=model_version)
    _refuse_failing(files, kind)
    if destination.suffix == ".zip":
        destination.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(destination, zipped(files))
    else:
        _write_folder(destination, files)
    return Package(destination, tuple(files), sum_of(files[MANIFEST]))


def export_files(root: Path, destination: Path, *, model: str = "skops") -> list[Path]:
    """Copy what a finished run published into a new folder, the student in the files asked for; the manifest comes
    last.

    A student of dates or decimal commas gets the program that reads such a table. Refuses as
    :func:`~quorate.folder.published.published_files`, and a folder that holds other files or lies on either side of the
    run.
    """
    _refuse_inside(root, destination)
    contents = published_files(root)
    if model != "skops":
        if SKOPS not in contents:
            raise PreconditionFailed("this run published no student; there is no model to convert")
        contents[ONNX] = onnx_student(*_student_and_pool(root, contents)).content
        if model == "onnx":
            del contents[SKOPS]
    if FACTS in contents and {SKOPS, ONNX} & contents.keys():
        contents |= _table_script(Facts.from_json(contents[FACTS].decode("utf-8")))
    return write_copies(destination, contents)


def _refuse_inside(root: Path, destination: Path) -> None:
    """Refuse an export into either side of the boundary: it would never leave, or lie among what is published later."""
    folder, place = RunFolder(root), destination.resolve()
    for side, why in (
        (folder.private, "holds what never leaves"),
        (
            folder.public,
            "holds what this run publishes and nothing else, so that copies would be mixed with newer files",
        ),
    ):
        if place.is_relative_to(side.resolve()) and place != side.resolve():
            raise PreconditionFailed(f"{destination} lies in {side}, which {why}; name a place outside, such as outbox")


def packaged(
    root: Path, published: Mapping[str, bytes], *, kind: str, model: str, model_version: str
) -> dict[str, bytes]:
    """Return the files of a package by name, the manifest last."""
    facts = Facts.from_json(published[FACTS].decode("utf-8"))
    origin, sums = facts.provenance, {name: sum_of(content) for name, content in published.items()}
    with RunFolder(root).open_ledger() as ledger:  # the report is held against it
        receipt = receipt_for(ledger.state, Receipt(origin.ledger_entries, origin.ledger_head), sums)
    converted = None if model == "skops" else onnx_student(*_student_and_pool(root, published))
    files = {name: content for name, content in published.items() if name != SKOPS or model != "onnx"}
    if SKOPS not in published:
        raise PreconditionFailed("this run published no student; there is no model to hand over")
    if converted is not None:
        files[ONNX] = converted.content
    files |= _table_script(facts)
    files[CARDS[kind]] = files.pop("model_card.md")
    files[RECEIPT] = receipt.to_json().encode()
    names = ("quorate", "skops", *(("skl2onnx", "onnxruntime") if model != "skops" else ()))
    own = {name: version(name) for name in names}
    files[VERSIONS] = as_json({"run": dict(facts.provenance.versions), "package": own})
    files[METADATA] = as_json(metadata(facts, None if converted is None else converted.tree(), files, model_version))
    if kind == "tre":
        files[COVER] = cover_sheet(facts, receipt, files).encode()
    ordered = {name: files[name] for name in sorted(files, key=lambda each: (each != COVER, each))}
    stated = {
        "format": FORMAT,
        "kind": kind,
        "run": facts.provenance.run,
        "sha256": {name: sum_of(content) for name, content in ordered.items()},
        "bytes": {name: len(content) for name, content in ordered.items()},
    }
    return {**ordered, MANIFEST: as_json(stated)}


def _table_script(facts: Facts) -> dict[str, bytes]:
    script = table_script(facts)
    return {} if script is None else {TABLE_SCRIPT: script.encode()}


def _student_and_pool(root: Path, published: Mapping[str, bytes]) -> tuple[Any, Any]:
    """Return the student, and the public rows as it takes them."""
    from quorate.export.onnx_model import opened
    from quorate.folder.settings import settings_of
    from quorate.folder.student_rows import public_rows_of

    student = opened(published[SKOPS])
    return student, public_rows_of(settings_of(root), student, published.get(POOL))


def _refuse_failing(files: Mapping[str, bytes], kind: str) -> None:
    failed = [check for check in check_files(files).checks if check.outcome is Outcome.FAILED]
    if failed:
        raise PreconditionFailed(
            f"the {kind} package would not pass its own check and was not written. {failed[0].words} No: "
            f"{failed[0].evidence} {failed[0].remedy or ''}".rstrip()
        )


def _write_folder(destination: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder beside its place and give it its name when all of it is there."""
    with told_as_typed(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", suffix=".part", dir=destination.parent))
    try:
        for name, content in files.items():
            write_beside(beside / name, content, mode=0o644).replace(beside / name)
        beside.chmod(0o755)
        sync_folder(beside)
        if destination.is_dir():
            destination.rmdir()  # it is empty
        beside.rename(destination)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    sync_folder(destination.parent)

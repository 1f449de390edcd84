"""Checks of a package as files: the manifest, the sums and the names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from quorate.accounting.figures import several
from quorate.export.contents import CARDS, FORMAT, MANIFEST, NEEDED, ONNX, OPTIONAL, SKOPS
from quorate.export.found import Found, failed, named, passed
from quorate.export.receipt import sum_of

_PLAIN: Final = "files"  # what quorate export writes without --format: a manifest of sums alone


def read_json(files: Mapping[str, bytes], name: str) -> Any:
    """Return what a JSON file of the package holds; None where it is missing or cannot be read."""
    try:
        return json.loads(files[name].decode("utf-8"))
    except (KeyError, ValueError, RecursionError):
        return None


def kind_of(files: Mapping[str, bytes]) -> str | None:
    """Return the kind of package that the manifest states, ``"files"`` for a plain export; None without a manifest."""
    tree = read_json(files, MANIFEST)
    if not isinstance(tree, dict) or not isinstance(tree.get("sha256"), dict):
        return None
    if tree.keys() == {"sha256"}:
        return _PLAIN
    kind = tree.get("kind")
    return kind if tree.get("format") == FORMAT and kind in CARDS else None


def manifest(files: Mapping[str, bytes]) -> Found:
    """Look for a manifest of a known form."""
    kind = kind_of(files)
    if kind is None:
        return failed(f"There is no {MANIFEST} of the form {FORMAT!r}, or it cannot be read.")
    return passed(f"It is of the kind {kind!r} and names {several(len(read_json(files, MANIFEST)['sha256']), 'file')}.")


def sums(files: Mapping[str, bytes]) -> Found:
    """Compute every sum again."""
    tree = read_json(files, MANIFEST)
    stated = tree.get("sha256") if isinstance(tree, dict) else None
    if not isinstance(stated, dict):
        return failed("No sum is stated.")
    wrong = sorted(name for name, total in stated.items() if name in files and sum_of(files[name]) != total)
    if wrong:
        return failed(f"These files were changed since the manifest was written: {named(wrong)}.")
    missing = sorted(set(stated) - set(files))
    if missing:
        return failed(f"The manifest names what is not there: {named(missing)}.")
    return passed(f"The sums of {several(len(stated), 'file')} were computed, and all are right.")


def files(files: Mapping[str, bytes]) -> Found:
    """Compare the names with those of the kind, and with those of the manifest."""
    tree, kind = read_json(files, MANIFEST), kind_of(files)
    if kind is None:
        return failed("Without a manifest of a known form, it cannot be told what belongs to it.")
    unlisted = sorted(set(files) - set(tree["sha256"]) - {MANIFEST})
    if unlisted:
        return failed(f"The manifest does not name what is there: {named(unlisted)}.")
    needed = NEEDED[kind] if kind in NEEDED else frozenset({"guarantee.json", "facts.json", "report.html", MANIFEST})
    known = needed | OPTIONAL | ({"model_card.md"} if kind == _PLAIN else set())
    strange = sorted(set(files) - known)
    if strange:
        return failed(f"A package of this kind does not hold: {named(strange)}.")
    missing = sorted(needed - set(files))
    if missing or not {SKOPS, ONNX} & set(files):
        return failed(f"It lacks {named(missing or ['a file of the model'])}.")
    return passed(f"It holds {several(len(files), 'file')}, each of a name that belongs to the kind {kind!r}.")

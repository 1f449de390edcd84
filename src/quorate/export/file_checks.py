"""Checks of a package as files, and what a check saw: an outcome, a sentence, and what to do about it.

The manifest, the sums and the names are looked at; model files open without trust and hold nothing but arithmetic; and
nothing in it would be read as a pickle, which runs code when it is opened.
"""

from __future__ import annotations

import io
import json
import pickletools
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from quorate.accounting.figures import several
from quorate.export.container import MOST_MODEL_BYTES, UnsafePackageError, unpacked
from quorate.export.contents import CARDS, FORMAT, MANIFEST, METADATA, NEEDED, ONNX, OPTIONAL, SKOPS, sum_of
from quorate.findings import Finding, Outcome
from quorate.folder.published import untrusted_types

_ASK = "Do not accept the package; ask its owner for a new one."


class UnreadableError(Exception):
    """A file that a check needs is not there or cannot be read; its message is the evidence, a whole sentence."""


def passed(evidence: str) -> Finding:
    """Return a yes; the code and the question are those of the table that names the check."""
    return Finding(code="", outcome=Outcome.PASSED, evidence=evidence)


def failed(evidence: str, remedy: str = _ASK) -> Finding:
    """Return a no."""
    return Finding(code="", outcome=Outcome.FAILED, evidence=evidence, remedy=remedy)


def not_run(evidence: str, remedy: str | None = None) -> Finding:
    """Return that nothing looked."""
    return Finding(code="", outcome=Outcome.NOT_RUN, evidence=evidence, remedy=remedy)


def named(names: Sequence[str]) -> str:
    """Return names of files in a sentence, the first eight of them."""
    quoted = ", ".join(repr(name) for name in names[:8])
    return f"{quoted} and {len(names) - 8:,} more" if len(names) > 8 else quoted


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


def manifest(files: Mapping[str, bytes]) -> Finding:
    """Look for a manifest of a known form."""
    kind = kind_of(files)
    if kind is None:
        return failed(f"There is no {MANIFEST} of the form {FORMAT!r}, or it cannot be read.")
    return passed(f"It is of the kind {kind!r} and names {several(len(read_json(files, MANIFEST)['sha256']), 'file')}.")


def sums(files: Mapping[str, bytes]) -> Finding:
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


def files(files: Mapping[str, bytes]) -> Finding:
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


_STANDARD: Final = ("", "ai.onnx", "ai.onnx.ml")
_TOKENIZER: Final = ("com.microsoft", "Tokenizer")  # of ONNX Runtime: no standard operator cuts a text into words
# It is not run here: a graph of standard operators can still take all time and memory of the reviewer's machine.
_NOT_LINKED: Final = (
    f"It was not run, and nothing here links it to {SKOPS} or to the run, which noted no sum of it: that it is the "
    "same model is seen by --digest alone."
)


def skops_model(files: Mapping[str, bytes]) -> Finding:
    """Open the model without trusting any type, and see that it predicts."""
    if SKOPS not in files:
        return not_run(f"There is no {SKOPS}.")
    try:
        unpacked(files[SKOPS])
    except UnsafePackageError as error:
        return failed(f"{SKOPS} is not opened: {error}.")
    import skops.io

    try:
        unknown = untrusted_types(files[SKOPS])
    except Exception as error:  # noqa: BLE001 - whatever a broken file breaks
        return failed(f"{SKOPS} cannot be read ({type(error).__name__}).")
    if unknown:
        return failed(
            f"Whoever opens {SKOPS} would have to trust {', '.join(unknown[:8])}.",
            "Ask for the model as ONNX (quorate export --model onnx), or for another student.",
        )
    try:
        model = skops.io.loads(files[SKOPS])
    except Exception as error:  # noqa: BLE001 - likewise
        return failed(f"{SKOPS} does not open ({type(error).__name__}).")
    if not callable(getattr(model, "predict", None)):
        return failed(f"{SKOPS} holds no model: what it holds cannot predict.")
    return passed(f"{SKOPS} opened as {type(model).__name__}, and no type had to be trusted.")


def onnx_model(files: Mapping[str, bytes]) -> Finding:
    """Read the model's operators, and compare its inputs with those that are told."""
    if ONNX not in files:
        return not_run(f"There is no {ONNX}.")
    try:
        import onnx
    except ImportError:
        return not_run("The package onnx is not installed here.", 'Install the extra: pip install "quorate[onnx]".')
    try:
        model = onnx.load_from_string(files[ONNX])
        onnx.checker.check_model(model)
    except Exception as error:  # noqa: BLE001 - whatever a broken file breaks
        return failed(f"{ONNX} is no sound model ({type(error).__name__}).")
    parts = _parts(model)
    nodes = [part for part in parts if isinstance(part, onnx.NodeProto)]
    strange = sorted({part.domain for part in nodes if (part.domain, part.op_type) != _TOKENIZER} - set(_STANDARD))
    if strange or len(model.functions):
        return failed(f"It uses operators that are not standard: {', '.join(map(repr, strange)) or 'functions'}.")
    external = onnx.TensorProto.EXTERNAL
    tensors = [part for part in parts if isinstance(part, onnx.TensorProto)]
    if any(len(part.external_data) or part.data_location == external for part in tensors):
        return failed("It reads numbers from other files.")
    metadata = read_json(files, METADATA)
    inputs = [part.name for part in model.graph.input]
    stated = metadata.get("onnx") if isinstance(metadata, dict) else None
    named = stated.get("inputs") if isinstance(stated, dict) else None
    if METADATA in files and (not isinstance(named, dict) or list(named) != inputs):
        return failed(f"Its inputs are not those that {METADATA} tells.")
    words = any((part.domain, part.op_type) == _TOKENIZER for part in nodes)
    return passed(
        f"It holds {len(model.graph.node):,} standard operators{words * ', among them the Tokenizer of ONNX Runtime,'} "
        f"and takes {', '.join(inputs[:12])}. {_NOT_LINKED}"
    )


def _parts(model: Any) -> list[Any]:
    """Return the model and all messages inside it: nodes and numbers of every graph, however deep it lies."""
    parts, left = [], [model]
    while left:
        part = left.pop()
        parts.append(part)
        for field, value in part.ListFields():
            if field.message_type is not None:
                left += [value] if hasattr(value, "ListFields") else list(value)
    return parts


_PICKLED: Final = (".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth")
_ARRAY: Final = b"\x93NUMPY"
# A file of the package, the parts of a model, and the parts of a sparse matrix among them, which is a zip file itself.
_DEEPEST: Final = 2
_MOST_INSTRUCTIONS: Final = 1_000_000
# These look a name up in a module, and so import it. They act when they are read, whatever stands after them.
_IMPORT: Final = frozenset({"GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4"})
_CALL: Final = frozenset({"REDUCE", "OBJ", "NEWOBJ", "NEWOBJ_EX", "BUILD", "PERSID", "BINPERSID"})


def pickles(files: Mapping[str, bytes]) -> Finding:
    """Look into every file, and into every file inside a zip file, for what would be read as a pickle."""
    try:
        names = sorted({name for name, content in _within(files, _Left(MOST_MODEL_BYTES)) if is_pickle(name, content)})
    except UnsafePackageError as error:
        return failed(f"A file inside it is not read: {error}.")
    if names:
        return failed(f"These hold pickles, or arrays of objects that are read as pickles: {named(names)}.")
    return passed("No file, and nothing inside a model file, begins as a pickle or is an array of objects.")


class _Left:
    """Bytes that may still be unpacked, of all inner zip files together."""

    def __init__(self, most: int) -> None:
        self.most = most

    def unpack(self, content: bytes) -> dict[str, bytes]:
        parts = unpacked(content, most_bytes=self.most)
        self.most -= sum(map(len, parts.values()))
        return parts


def _within(files: Mapping[str, bytes], left: _Left, deep: int = 0) -> Iterator[tuple[str, bytes]]:
    for name, content in files.items():
        yield name, content
        if not _is_zip(content):
            continue
        if deep == _DEEPEST:
            raise UnsafePackageError(f"{name!r} is a zip file inside others, deeper than a model needs")
        inner = {f"{name}!{part}": inside for part, inside in left.unpack(content).items()}
        yield from _within(inner, left, deep + 1)


def _is_zip(content: bytes) -> bool:
    """Whether a reader of zip files would open it: they look at the end, and take whatever stands before."""
    if content.startswith(b"PK"):
        return True
    try:
        zipfile.ZipFile(io.BytesIO(content)).close()
    except zipfile.BadZipFile:
        return False
    except Exception:  # noqa: BLE001 - a zip file, and a strange one; it is refused where it is unpacked
        return True
    return True


def is_pickle(name: str, content: bytes) -> bool:
    """Tell whether a file would be read as a pickle."""
    if name.lower().endswith(_PICKLED):
        return True
    if content.startswith(_ARRAY):
        return _holds_objects(content)
    if len(content) > 1 and content[0] == 0x80 and 2 <= content[1] <= 5:
        return True
    return _reads_as_pickle(content)


def _holds_objects(content: bytes) -> bool:
    """Whether the header of an array says that it holds objects, or cannot be read: another reader may make anything of
    it.
    """
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            _, _, dtype = np.lib.format.read_array_header_1_0(file)
        elif version in {(2, 0), (3, 0)}:  # the third differs in the alphabet of the fields' names alone
            _, _, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            return True
    except Exception:  # noqa: BLE001 - whatever a broken header breaks
        return True
    return bool(dtype.hasobject)


def _reads_as_pickle(content: bytes) -> bool:
    """Whether a reader of pickles, which in old protocols begin with no mark, would import or call something before the
    full stop, or before it breaks off: what it has read it has done.
    """
    codes: set[str] = set()
    try:
        for number, (code, _, _) in enumerate(pickletools.genops(content)):
            codes.add(code.name)
            if number == _MOST_INSTRUCTIONS:
                return True
    except Exception:  # noqa: BLE001 - text, which is no sequence of instructions from there on
        return bool(codes & _IMPORT)
    return bool(codes & (_IMPORT | _CALL))

"""Checks of the model files: they open without trust, and hold nothing but arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quorate.export.container import UnsafePackageError, unpacked
from quorate.export.content_checks import read_json
from quorate.export.contents import METADATA, ONNX, SKOPS
from quorate.export.found import Found, failed, not_run, passed
from quorate.folder.opened_student import untrusted_types

_STANDARD: Final = ("", "ai.onnx", "ai.onnx.ml")
# It is not run here: a graph of standard operators can still take all time and memory of the reviewer's machine.
_NOT_LINKED: Final = (
    f"It was not run, and nothing here links it to {SKOPS} or to the run, which noted no sum of it: that it is the "
    "same model is seen by --digest alone."
)


def skops_model(files: Mapping[str, bytes]) -> Found:
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


def onnx_model(files: Mapping[str, bytes]) -> Found:
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
    domains = {each.domain for each in parts if isinstance(each, (onnx.NodeProto, onnx.OperatorSetIdProto))}
    strange = sorted(domains - set(_STANDARD))
    if strange or len(model.functions):
        return failed(f"It uses operators that are not standard: {', '.join(map(repr, strange)) or 'functions'}.")
    external = onnx.TensorProto.EXTERNAL
    tensors = [each for each in parts if isinstance(each, onnx.TensorProto)]
    if any(len(each.external_data) or each.data_location == external for each in tensors):
        return failed("It reads numbers from other files.")
    told = read_json(files, METADATA)
    inputs = [each.name for each in model.graph.input]
    stated = told.get("onnx") if isinstance(told, dict) else None
    named = stated.get("inputs") if isinstance(stated, dict) else None
    if METADATA in files and (not isinstance(named, dict) or list(named) != inputs):
        return failed(f"Its inputs are not those that {METADATA} tells.")
    return passed(
        f"It holds {len(model.graph.node):,} standard operators and takes {', '.join(inputs[:12])}. {_NOT_LINKED}"
    )


def _parts(model: Any) -> list[Any]:
    """Return the model and all messages inside it: nodes and numbers of every graph, however deep it lies."""
    found, left = [], [model]
    while left:
        part = left.pop()
        found.append(part)
        for field, value in part.ListFields():
            if field.message_type is not None:
                left += [value] if hasattr(value, "ListFields") else list(value)
    return found

"""A student as ONNX, for those who have no Python: converted, compared on the public rows, and only then handed over.

Arithmetic differs in the last digits between libraries, so a class may differ where two are equally likely to within
:data:`TIE`; anywhere else a difference is a fault of the conversion, and the file is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from quorate.ambient import unwarned
from quorate.data.columns import column, doubles, families, texts
from quorate.data.rows import Rows, columns, is_frame, kind, n_rows, take
from quorate.errors import PreconditionFailed
from quorate.folder.published import untrusted_types

#: Two classes whose probabilities differ by less are a tie: single precision, in which ONNX holds trees, decides it.
TIE: Final = 1e-5
#: Nor may a probability differ by more from the student's, or a number by more of the spread of its numbers.
PROBABILITY: Final = 1e-4

#: Versions of the operators: the oldest in which trees hold thresholds in double precision.
OPSETS: Final = {"": 18, "ai.onnx.ml": 3}

ROWS: Final = "rows"  # the one input, where columns have no names
_HOW = 'install the extra: pip install "quorate[onnx]"'


@dataclass(frozen=True, slots=True)
class OnnxStudent:
    """A student as ONNX, its `inputs` ("number", "text", or "numbers" for all columns), and how it compared on public
    rows. `n_ties`: rows with another class, two being equally likely. `largest_difference`: of probabilities, or of
    numbers beside their spread.
    """

    content: bytes
    inputs: dict[str, str]
    n_compared: int
    n_ties: int
    largest_difference: float

    def tree(self) -> dict[str, Any]:
        """Return what is told of it beside the file."""
        from quorate.export.onnx_parts import MISSING_TEXT

        return {
            "inputs": self.inputs,
            "missing_text": MISSING_TEXT,
            "rows_compared": self.n_compared,
            "ties": self.n_ties,
            "largest_difference_of_probabilities": self.largest_difference,
        }


def onnx_student(student: Any, public: Rows) -> OnnxStudent:
    """Convert a fitted student, with its columns' names where `public` has them, and compare what both say of public
    rows. Raises PreconditionFailed if the extra is missing, a step cannot be converted, or the file says something
    else.
    """
    from quorate.students.decision_threshold import decides_from

    require_onnx()
    moved = decides_from(student)
    ranking = student if moved is None else student.estimator.estimator  # within what freezes it
    inputs = _inputs(ranking, public)
    content = _converted(ranking, public, inputs)
    if moved is not None:
        content = _deciding_from(content, *moved, classes=student.classes_)
    comparison = _compared(student, content, public, inputs, threshold=moved)
    return OnnxStudent(content, inputs, *comparison)


def require_onnx() -> None:
    """Refuse where the extra is not installed, with the command that installs it."""
    try:
        import onnxruntime  # noqa: F401
        import skl2onnx  # noqa: F401
    except ImportError:
        raise PreconditionFailed(f"ONNX needs packages that are not installed; {_HOW}") from None


def _refused(student: Any, why: str) -> PreconditionFailed:
    from quorate.export.onnx_parts import parts_of

    names = ", ".join(dict.fromkeys(type(part).__name__ for part in parts_of(student) if not hasattr(part, "steps")))
    return PreconditionFailed(
        f"the student cannot leave as ONNX: {why}. Nothing was written; leave ONNX out, or choose another [student] "
        f"model. It is made of {names}"
    )


def _inputs(student: Any, public: Rows) -> dict[str, str]:
    """Return the inputs by name; where columns have names, those that the student looks at."""
    if kind(public) == "sparse":
        raise _refused(student, "its rows are sparse, and ONNX takes dense ones")
    names = columns(public)
    if names is None or not is_frame(public):
        return {ROWS: "numbers"}
    used = _used(student)
    kept = [str(name) for name in names if used is None or name in used]
    return {name: _takes(student, public, name) for name in kept}


def _used(student: Any) -> set[str] | None:
    """Columns that the first step looks at; None for all of them."""
    from sklearn.compose import ColumnTransformer

    from quorate.export.onnx_parts import parts_of

    first = next((part for part in parts_of(student) if isinstance(part, ColumnTransformer)), None)
    if first is None or getattr(first, "remainder", "drop") != "drop":
        return None
    chosen = [columns for _, part, columns in first.transformers_ if part != "drop"]
    flat = [name for names in chosen for name in (names if isinstance(names, list) else [names])]
    return set(flat) if all(isinstance(name, str) for name in flat) else None


def _takes(student: Any, public: Rows, name: str) -> str:
    family = families(public)[name]
    if family not in ("number", "text"):
        raise _refused(student, f"column {name!r} holds neither numbers nor text")
    return str(family)


def _converted(student: Any, public: Rows, inputs: dict[str, str]) -> bytes:
    import onnxruntime
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    from quorate.export.onnx_parts import MISSING_TEXT, converters, in_known_words, words_of

    try:
        model = in_known_words(student)
        known = converters(model)
    except PreconditionFailed as error:
        raise _refused(student, str(error)) from None
    widths = {"numbers": 0 if is_frame(public) else public.shape[1]}
    gathered, of_classes = _gathered(model, public, inputs), hasattr(student, "classes_")
    why: Exception | None = None
    for number in (DoubleTensorType, FloatTensorType):  # some converters know single precision alone
        types = [
            (name, StringTensorType([None, 1]) if takes == "text" else number([None, widths.get(takes, 1)]))
            for name, takes in inputs.items()
        ]
        try:
            with unwarned():  # of skl2onnx and onnx, about themselves
                converted = convert_sklearn(
                    gathered,
                    "student",
                    types,
                    options={**({id(gathered): {"zipmap": False}} if of_classes else {}), **words_of(model)},
                    target_opset=OPSETS,
                    **known,
                )
            _name_inputs(converted, inputs)
            converted.doc_string = (
                "A student learned from differentially private answers; guarantee.json says what is promised."
            )
            for key, value in (("missing_text", MISSING_TEXT), ("inputs", json.dumps(inputs, ensure_ascii=False))):
                entry = converted.metadata_props.add()
                entry.key, entry.value = f"quorate.{key}", value
            content: bytes = converted.SerializeToString()
            onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
            return content
        except Exception as error:  # noqa: BLE001 - whatever a converter raises
            why = why or error
    said = (str(why).strip().splitlines() or [type(why).__name__])[0]
    raise _refused(student, f"skl2onnx says: {said[:200].rstrip('. ')}") from why


def _name_inputs(model: Any, inputs: dict[str, str]) -> None:
    """Give inputs the names of the columns, in their order; skl2onnx keeps letters, digits and underscores alone."""
    declared = {entry.name for entry in model.graph.input}
    used_names = {name for node in model.graph.node for name in (*node.input, *node.output)} - declared
    for entry, name in zip(list(model.graph.input), inputs, strict=True):
        if name in used_names:
            raise ValueError(f"a column cannot be called {name!r}, which is a name inside the file")
        for node in model.graph.node:
            for place, used in enumerate(node.input):
                if used == entry.name:
                    node.input[place] = name
        entry.name = name


def _gathered(model: Any, public: Rows, inputs: dict[str, str]) -> Any:
    """Put named columns side by side for a model that takes them by their order."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    from quorate.export.onnx_parts import parts_of

    if "numbers" in inputs.values() or any(isinstance(part, ColumnTransformer) for part in parts_of(model)):
        return model
    together = ColumnTransformer([("columns", "passthrough", list(inputs))])
    return Pipeline([("columns", together.fit(take(public, np.arange(min(2, n_rows(public)))))), ("model", model)])


def feed(rows: Rows, inputs: dict[str, str], *, single: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return rows as the inputs of the converted file take them; `single`: inputs in single precision."""
    from quorate.export.onnx_parts import MISSING_TEXT

    fed: dict[str, Any] = {}
    if "numbers" in inputs.values():
        fed[ROWS] = np.asarray(rows, dtype=np.float64)
    else:
        places = {str(name): at for at, name in enumerate(columns(rows) or ())}
        for name, takes in inputs.items():
            values = column(rows, places[name])
            if takes == "text":
                words = [MISSING_TEXT if text is None else text for text in texts(values)]
                fed[name] = np.array(words, dtype=object)[:, None]
            else:
                fed[name] = doubles(values)[:, None]
    return {name: values.astype(np.float32) if name in single else values for name, values in fed.items()}


def _compared(
    student: Any, content: bytes, public: Rows, inputs: dict[str, str], *, threshold: tuple[float, Any] | None = None
) -> tuple[int, int, float]:
    """Hold the file against the student on every public row; `threshold`: from where on a class is predicted."""
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    single = frozenset(entry.name for entry in session.get_inputs() if entry.type == "tensor(float)")
    outputs = session.run(None, feed(public, inputs, single=single))
    classes, expected = np.asarray(outputs[0]).ravel(), np.asarray(student.predict(public))
    if not hasattr(student, "classes_"):
        return _compared_numbers(student, classes, expected)
    numbers = classes.dtype.kind in "biuf" and expected.dtype.kind in "biuf"
    differ = classes != expected if numbers else classes.astype(str) != expected.astype(str)
    ties, largest = 0, 0.0
    if hasattr(student, "predict_proba") and len(outputs) > 1:
        theirs, mine = np.asarray(outputs[1], dtype=np.float64), np.asarray(student.predict_proba(public))
        largest = float(np.abs(theirs - mine).max()) if theirs.shape == mine.shape else float("inf")
        best = np.sort(mine, axis=1)
        close = best[:, -1] - best[:, -2] < TIE if best.shape[1] > 1 else np.zeros(len(best), dtype=bool)
        if threshold is not None:
            close = np.abs(mine[:, student.classes_.tolist().index(threshold[1])] - threshold[0]) < TIE
        ties = int(np.count_nonzero(differ & close))
        differ &= ~close
    if differ.any() or not largest <= PROBABILITY:
        raise _refused(
            student,
            f"the converted file differs from it on {np.count_nonzero(differ):,} of {len(differ):,} public rows "
            f"(largest difference of a probability {largest:.2g})",
        )
    return len(differ), ties, largest


def _compared_numbers(student: Any, theirs: Any, mine: Any) -> tuple[int, int, float]:
    """Hold numbers against the student's, beside how far these are apart."""
    apart = float(np.ptp(mine)) or max(float(np.abs(mine).max(initial=0.0)), 1.0)
    largest = float(np.abs(theirs.astype(np.float64) - mine).max(initial=0.0))
    if not largest <= PROBABILITY * apart:
        raise _refused(student, f"the converted file's numbers differ from its own by up to {largest:.2g}")
    return len(mine), 0, largest / apart


def _deciding_from(content: bytes, threshold: float, positive: Any, *, classes: Any) -> bytes:
    """Return a converted model of two classes that says `positive` from a threshold of its probability on. skl2onnx has
    no converter for that. The first output keeps its name.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load_from_string(content)
    label, probabilities = model.graph.output[0], model.graph.output[1]
    for node in model.graph.node:
        node.output[:] = [f"likely_{label.name}" if name == label.name else name for name in node.output]
        node.input[:] = [f"likely_{label.name}" if name == label.name else name for name in node.input]
    known = classes.tolist()
    place = known.index(positive)
    kind = helper.tensor_dtype_to_np_dtype(label.type.tensor_type.elem_type)
    number = helper.tensor_dtype_to_np_dtype(probabilities.type.tensor_type.elem_type)
    said = np.array([known[1 - place], known[place]])
    constants = {
        "decision_place": np.array(place, dtype=np.int64),
        "decision_threshold": np.array(threshold, dtype=number),
        "decision_classes": said.astype(object if kind == np.dtype(object) else kind),
    }
    model.graph.initializer.extend([numpy_helper.from_array(value, name) for name, value in constants.items()])
    model.graph.node.extend(
        [
            helper.make_node("Gather", [probabilities.name, "decision_place"], ["decision_share"], axis=1),
            helper.make_node("GreaterOrEqual", ["decision_share", "decision_threshold"], ["decision_flag"]),
            helper.make_node("Cast", ["decision_flag"], ["decision_row"], to=onnx.TensorProto.INT64),
            helper.make_node("Gather", ["decision_classes", "decision_row"], [label.name]),
        ]
    )
    return bytes(model.SerializeToString())


def opened(content: bytes) -> Any:
    """Open a student that this run published, its sum compared; types of packages but scikit-learn are refused."""
    import skops.io

    unknown = untrusted_types(content)
    others = [name for name in unknown if name.partition(".")[0] not in ("sklearn", "numpy", "scipy")]
    if others:
        raise PreconditionFailed(
            f"the student holds the types {', '.join(others)}, which are not opened to convert them; leave ONNX out"
        )
    return skops.io.loads(content, trusted=unknown)

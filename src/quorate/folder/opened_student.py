"""Opening a published model: by skops with a fixed list of types, never by pickle, so that no file runs code."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

from quorate.errors import PreconditionFailed
from quorate.stored_names import place_of

_DESCRIPTION = "schema.json"  # of the classes in a file of skops

#: Beside what skops opens by itself: parts of scikit-learn's own estimators, which hold numbers.
TRUSTED: Final = frozenset(
    {
        "sklearn.tree._tree.Tree",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.gaussian_process.kernels.Sum",
        "sklearn.gaussian_process.kernels.WhiteKernel",
    }
)


def untrusted_types(content: bytes) -> list[str]:
    """Return the types that whoever opens a model would have to trust, sorted.

    Raises Exception whatever skops raises of a file that is none of its own.
    """
    from quorate.deferred import skops

    return sorted(skops.io.get_untrusted_types(data=content))


def with_places_of_now(content: bytes) -> bytes:
    """Return what skops wrote with each class of this package where it is now; the same bytes where none has moved."""
    with ZipFile(io.BytesIO(content)) as archive:
        tree = json.loads(archive.read(_DESCRIPTION))
        if not _put_places(tree):
            return content
        written = io.BytesIO()
        with ZipFile(written, "w", ZIP_DEFLATED) as moved:
            for name in archive.namelist():
                moved.writestr(name, json.dumps(tree) if name == _DESCRIPTION else archive.read(name))
    return written.getvalue()


def _put_places(tree: Any) -> bool:
    """Put the place of now into each description of a class in a tree; tell whether one has moved."""
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    changed = [_put_places(part) for part in parts]
    module, name = (tree.get("__module__"), tree.get("__class__")) if isinstance(tree, dict) else (None, None)
    if isinstance(module, str) and (path := f"{module}.{name}") != (now := place_of(path)):
        tree["__module__"], _, tree["__class__"] = now.rpartition(".")
        return True
    return any(changed)


def student_from(content: bytes, *, place: str, trusted: Sequence[str], name_them_in: str, anew: str) -> Any:
    """Open a model from the bytes that a run published.

    `content`: what skops wrote. `place`: where they are from, for messages. `trusted`: types that are opened beside
    :data:`TRUSTED`, by their full names. `name_them_in`: where a user says which types are theirs. `anew`: what to do
    about a file that cannot be read. Raises PreconditionFailed if it cannot be read, or holds a type that is not
    trusted.
    """
    from quorate.deferred import skops

    types = TRUSTED | {place_of(name) for name in trusted}
    try:
        content = with_places_of_now(content)
        unknown = [name for name in untrusted_types(content) if name not in types]
    except Exception:  # noqa: BLE001 - whatever a broken file breaks
        raise PreconditionFailed(f"{place} cannot be read; {anew}") from None
    if unknown:
        raise PreconditionFailed(
            f"{place} holds the types {', '.join(unknown)}, which are not opened unasked; if they are yours, name them "
            f"in {name_them_in}"
        )
    try:
        return skops.io.loads(content, trusted=sorted(types))
    except Exception:  # noqa: BLE001 - the description was whole, and what it describes is not
        raise PreconditionFailed(f"{place} cannot be read; {anew}") from None

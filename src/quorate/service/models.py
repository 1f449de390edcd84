"""Models for the service: every file is what was noted of it, and none of it runs code when it is opened.

``private/service-models.json`` holds the SHA-256 sum of every file that a service reads a model from. Files are opened
by skops with a fixed list of types, never by pickle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np

from quorate.data.rows import Rows
from quorate.errors import PreconditionFailed
from quorate.release.files import write_atomically
from quorate.run.folder import RunFolder
from quorate.run.published import STUDENT, read_published

MANIFEST: Final = "service-models.json"

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

_FORMAT = "quorate service models 1"


def open_student(folder: RunFolder, *, trusted: Sequence[str] = ()) -> Any:
    """Open the published student, or the model of a direct run.

    Parameters
    ----------
    folder : RunFolder
        Of a finished run.
    trusted : sequence of str
        Types that are opened beside :data:`TRUSTED`, by their full names.

    Raises
    ------
    PreconditionFailed
        If the file is not what the run published, or holds a type that is not trusted.
    """
    import skops.io

    content = read_published(folder, STUDENT)
    try:
        unknown = sorted(set(skops.io.get_untrusted_types(data=content)) - TRUSTED - set(trusted))
    except Exception:  # noqa: BLE001 - whatever a broken file breaks
        raise PreconditionFailed(f"public/{STUDENT} cannot be read; quorate run {folder.root} writes it anew") from None
    if unknown:
        raise PreconditionFailed(
            f"public/{STUDENT} holds the types {', '.join(unknown)}, which are not opened unasked; if they are yours, "
            "name them in trusted_types of service.toml"
        )
    return skops.io.loads(content, trusted=sorted(TRUSTED | set(trusted)))


def predictor(model: Any) -> Callable[[Rows], list[Any]]:
    """Return what gives a class, as JSON has it, for each row."""

    def predict(rows: Rows) -> list[Any]:
        found: list[Any] = np.asarray(model.predict(rows)).tolist()
        return found

    return predict


def check_models(folder: RunFolder) -> None:
    """Compare the files of the teachers with the manifest; a file that is not in it yet is not refused.

    Raises
    ------
    PreconditionFailed
        If a file is another than the one that was noted.
    """
    noted = _noted(folder)
    for name, total in _sums(folder).items():
        if noted.get(name, total) != total:
            raise PreconditionFailed(
                f"{name} is not the file whose SHA-256 sum is in private/{MANIFEST}: find out who changed it. If "
                f"you did (another version of scikit-learn trains them again), delete private/{MANIFEST}"
            )


def note_models(folder: RunFolder) -> None:
    """Write the manifest of the files that were opened without a fault."""
    tree = {"format": _FORMAT, "sha256": _sums(folder)}
    if tree["sha256"] != _noted(folder):
        content = (json.dumps(tree, indent=2, sort_keys=True) + "\n").encode()
        write_atomically(folder.private / MANIFEST, content, mode=0o600)


def _sums(folder: RunFolder) -> dict[str, str]:
    files = sorted(folder.private.glob("teachers-*.stage"))
    return {f"private/{path.name}": _sum(path) for path in files}


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        digest = sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _noted(folder: RunFolder) -> dict[str, str]:
    try:
        tree = json.loads((folder.private / MANIFEST).read_bytes())
        if tree["format"] != _FORMAT:
            raise ValueError  # noqa: TRY301
        return {str(name): str(total) for name, total in tree["sha256"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PreconditionFailed(f"private/{MANIFEST} is damaged; restore it from a backup, or delete it") from None

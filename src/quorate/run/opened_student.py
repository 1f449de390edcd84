"""Opening a published model: by skops with a fixed list of types, never by pickle, so that no file runs code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quorate.errors import PreconditionFailed

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

    Raises
    ------
    Exception
        Whatever skops raises of a file that is none of its own.
    """
    from quorate.deferred import skops

    return sorted(skops.io.get_untrusted_types(data=content))


def student_from(content: bytes, *, place: str, trusted: Sequence[str], name_them_in: str, anew: str) -> Any:
    """Open a model from the bytes that a run published.

    Parameters
    ----------
    content : bytes
        What skops wrote.
    place : str
        Where they are from, for messages.
    trusted : sequence of str
        Types that are opened beside :data:`TRUSTED`, by their full names.
    name_them_in : str
        Where a user says which types are theirs.
    anew : str
        What to do about a file that cannot be read.

    Raises
    ------
    PreconditionFailed
        If it cannot be read, or holds a type that is not trusted.
    """
    from quorate.deferred import skops

    try:
        unknown = [name for name in untrusted_types(content) if name not in TRUSTED | set(trusted)]
    except Exception:  # noqa: BLE001 - whatever a broken file breaks
        raise PreconditionFailed(f"{place} cannot be read; {anew}") from None
    if unknown:
        raise PreconditionFailed(
            f"{place} holds the types {', '.join(unknown)}, which are not opened unasked; if they are yours, name them "
            f"in {name_them_in}"
        )
    try:
        return skops.io.loads(content, trusted=sorted(TRUSTED | set(trusted)))
    except Exception:  # noqa: BLE001 - the description was whole, and what it describes is not
        raise PreconditionFailed(f"{place} cannot be read; {anew}") from None

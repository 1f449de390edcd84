"""Patches of images in ONNX: pixels are gathered patch by patch, where scikit-learn takes columns of columns.

A published student tells images by one small transformer for all patches, in a ``ColumnTransformer`` of regions, each
of which is one of patches (:meth:`quorate.data.feature_maps.PatchFeatures.transformer`). skl2onnx knows no columns of
what has columns already; here the same is one gathering of pixels, one product, and one sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler


class PatchSums(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What patches share with centroids above a threshold, summed over regions.

    `places`: columns of the pixels of each patch. `centroids`: as they are multiplied with. `threshold`, `most`: what
    is taken away, and what no difference is above.
    """

    def __init__(self, places: Any = None, centroids: Any = None, threshold: float = 0.0, most: float = 0.0) -> None:
        self.places = places
        self.centroids = centroids
        self.threshold = threshold
        self.most = most

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing."""
        return self

    @property
    def n_outputs(self) -> int:
        """Regions times centroids."""
        return int(self.places.shape[0] * len(self.centroids))

    def transform(self, X: Any) -> Any:
        """Return ``(n_images, n_outputs)``."""
        above = np.clip(
            np.asarray(X, dtype=np.float64)[:, self.places] @ self.centroids.T - self.threshold, 0, self.most
        )
        return above.sum(axis=2).reshape(len(X), -1)


class SquareRoots(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The root of each number."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the roots."""
        return np.sqrt(X)


def patch_sums(regions: Any) -> PatchSums | None:
    """Return the same as a fitted ``ColumnTransformer`` of regions; None where it is none.

    Examples
    --------
    >>> from quorate.data.feature_maps.patches import PatchFeatures
    >>> images = np.random.default_rng(0).random((40, 100))
    >>> _, (_, regions), _ = PatchFeatures.fit(images, n_centroids=8).transformer().steps
    >>> sums = patch_sums(regions)
    >>> sums.places.shape, bool(np.allclose(sums.transform(images), regions.transform(images)))
    ((9, 1, 36), True)
    """
    if not isinstance(regions, ColumnTransformer) or regions.remainder != "drop":
        return None
    places, shared = [], set()
    for _, each, block in regions.transformers_:
        region = _thawed(each)
        if not (isinstance(region, Pipeline) and [name for name, _ in region.steps] == ["patches", "sum"]):
            return None
        within = _thawed(region.steps[0][1])
        if not isinstance(within, ColumnTransformer):
            return None
        places.append([np.asarray(block)[np.asarray(columns)] for _, _, columns in within.transformers_])
        shared |= {id(_thawed(patch)) for _, patch, _ in within.transformers_}
    patch = _thawed(within.transformers_[0][1])
    if len(shared) != 1 or not (isinstance(patch, Pipeline) and len(patch.steps) == 2):
        return None
    (_, product), (_, above) = patch.steps
    if not (isinstance(product, TruncatedSVD) and isinstance(above, MinMaxScaler)):
        return None
    return PatchSums(
        np.array(places, dtype=np.int64),
        np.asarray(product.components_, dtype=np.float64),
        float(above.data_min_[0]),
        float(above.feature_range[1]),
    )


def _thawed(part: Any) -> Any:
    return part.estimator if isinstance(part, FrozenEstimator) else part


def shape_of_sums(operator: Any) -> None:
    """Tell skl2onnx what comes out of sums, and of roots."""
    given, fitted = operator.inputs[0].type, operator.raw_operator
    width = fitted.n_outputs if isinstance(fitted, PatchSums) else given.shape[1]
    operator.outputs[0].type = type(given)([None, width])


def convert_roots(scope: Any, operator: Any, container: Any) -> None:
    """Write the roots."""
    from skl2onnx.algebra.onnx_ops import OnnxSqrt

    version, outputs = container.target_opset, operator.outputs[:1]
    OnnxSqrt(operator.inputs[0], op_version=version, output_names=outputs).add_to(scope, container)


def convert_sums(scope: Any, operator: Any, container: Any) -> None:
    """Write the sums with the operators of ONNX, in the precision of the rows."""
    from skl2onnx.algebra.onnx_ops import (
        OnnxClip,
        OnnxGather,
        OnnxMatMul,
        OnnxReduceSum,
        OnnxReshape,
        OnnxSub,
    )
    from skl2onnx.common.data_types import FloatTensorType

    fitted, version = operator.raw_operator, container.target_opset
    kind = np.float32 if isinstance(operator.inputs[0].type, FloatTensorType) else np.float64
    pixels = OnnxGather(operator.inputs[0], fitted.places, axis=1, op_version=version)
    shared = OnnxMatMul(pixels, fitted.centroids.T.astype(kind), op_version=version)
    beyond = OnnxSub(shared, np.array([fitted.threshold], dtype=kind), op_version=version)
    above = OnnxClip(beyond, np.array(0, dtype=kind), np.array(fitted.most, dtype=kind), op_version=version)
    sums = OnnxReduceSum(above, np.array([2], dtype=np.int64), keepdims=0, op_version=version)
    flat = np.array([-1, fitted.n_outputs], dtype=np.int64)
    OnnxReshape(sums, flat, op_version=version, output_names=operator.outputs[:1]).add_to(scope, container)

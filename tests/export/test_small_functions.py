"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

import numpy as np

from quorate.export.check import ExportCheck
from quorate.export.onnx_features import patch_sums, product_features


def test_check() -> None:
    assert ExportCheck(()).counted == "0 passed, 0 failed, 0 not run"


def test_onnx_features() -> None:
    from quorate.data.feature_maps import ProductKernelMap

    pool = np.random.default_rng(0).normal(size=(40, 3))
    fitted = ProductKernelMap.fit(pool, np.arange(40)).transformer(pool.shape[1])
    assert bool(np.allclose(product_features(fitted).transform(pool), fitted.transform(pool)))


def test_onnx_parts() -> None:
    from quorate.data.feature_maps.patches import PatchFeatures

    images = np.random.default_rng(0).random((40, 100))
    _, (_, regions), _ = PatchFeatures.fit(images, n_centroids=8).transformer().steps
    sums = patch_sums(regions)
    assert (sums.places.shape, bool(np.allclose(sums.transform(images), regions.transform(images)))) == (
        (9, 1, 36),
        True,
    )

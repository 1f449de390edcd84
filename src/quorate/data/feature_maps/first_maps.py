"""What comes first in a chained map: patches of grey images, told by centroids of public ones, or leaves of trees.

Patches are the features of small pictures, and leaves of random trees that were grown on the pool those of tables with
steps and corners.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from math import isqrt
from typing import Any, Self

import numpy as np

from quorate.deferred import compose, decomposition, frozen, pipeline, preprocessing, sparse
from quorate.errors import InvalidParameter, named
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

SIZE = 6  # a patch is 6 × 6 pixels
STRIDE = 2  # and the next one begins 2 pixels further
CENTROIDS = 200
REGIONS = 3  # 3 × 3 regions of an image are summed over
THRESHOLD = 0.25  # what a patch must share with a centroid before it counts, in the range of a pixel
PIXEL_BITS = 10  # pixels are multiples of 2^-10 of their range
CENTROID_BITS = 16
SMALLEST = SIZE + 2 * STRIDE  # pixels on a side of an image
_SAMPLE = 100_000  # public patches that centroids are learned from
_FLAT = 0.05  # squared length below which a patch without its mean shows nothing
_BLOCK = 64  # images at once
MOST_NUMBERS = 2**25  # that are remembered: a quarter of a gigabyte, of some 18,000 images
TREES = 100
DEPTH = 5


def has_patches(shape: tuple[int, ...]) -> bool:
    """Tell whether images of this shape are told by their patches: square grey ones that are large enough."""
    return len(shape) == 2 and shape[0] == shape[1] >= SMALLEST


@stored_as("quorate.data.feature_maps.patches.PatchFeatures")
@dataclass(frozen=True, slots=True, eq=False)
class PatchFeatures:
    """What the patches of an image share with centroids, summed over 3 × 3 regions, and its square root.

    A centroid c, ``(n_centroids, 36)`` in steps of 2⁻¹⁶, has mean zero and length one; a patch x adds what :math:`c^T
    x` is above the threshold, if it is. `side`: pixels on a side: a row is a square image, line by line. `low, high`:
    the range of a pixel in the pool; what lies beyond is cut off. Coates and Ng (2011), The importance of encoding
    versus training with sparse coding and vector quantization: soft thresholds at centroids of patches.
    """

    side: int
    low: float
    high: float
    centroids: FloatArray = field(repr=False)

    @classmethod
    def fit(cls, pool: FloatArray, *, n_centroids: int = CENTROIDS) -> Self:
        """Learn centroids from the dense public pool ``(n_public, side * side)``.

        InvalidParameter if rows are no square images of at least 10 × 10 pixels, or the images show nothing.
        """
        from sklearn.cluster import MiniBatchKMeans

        side = isqrt(pool.shape[1])
        if side * side != pool.shape[1] or side < SMALLEST:
            raise InvalidParameter(
                f"{named('feature_map', 'patches')} takes square grey images of 10 × 10 pixels or more, line by line "
                f"in a row, and rows have {pool.shape[1]} columns"
            )
        low, high = float(pool.min()), float(pool.max())
        bare = cls(side, low, high if high > low else low + 1.0, np.zeros((1, SIZE**2)))
        rng = np.random.default_rng(0)
        some = rng.permutation(len(pool))[: max(1, _SAMPLE // bare.n_positions**2) * 2]
        patches = bare._patches(pool[np.sort(some)]).reshape(-1, SIZE**2) * 2.0**-PIXEL_BITS
        patches = patches[rng.permutation(len(patches))[:_SAMPLE]]
        patches = patches - patches.mean(axis=1, keepdims=True)
        lengths = np.sqrt((patches**2).sum(axis=1))
        varied = lengths**2 > _FLAT
        if varied.sum() < n_centroids:
            raise InvalidParameter(
                f"{named('feature_map', 'patches')} learns {n_centroids} centroids from public images, and they show "
                "too little; give more images, or another map"
            )
        means = MiniBatchKMeans(n_centroids, random_state=0, n_init=1, batch_size=4_096)
        centroids = means.fit(patches[varied] / lengths[varied, None]).cluster_centers_
        centroids = centroids - centroids.mean(axis=1, keepdims=True)
        centroids /= np.maximum(np.linalg.norm(centroids, axis=1, keepdims=True), 1e-12)
        return cls(side, bare.low, bare.high, np.rint(centroids * 2.0**CENTROID_BITS))

    @property
    def n_positions(self) -> int:
        """Places along a side where a patch begins."""
        return (self.side - SIZE) // STRIDE + 1

    @property
    def regions(self) -> tuple[int, tuple[int, ...]]:
        """Positions along the side of a region, and where the three regions begin."""
        length = -(-self.n_positions // REGIONS)
        last = self.n_positions - length
        return length, (0, (last + 1) // 2, last)

    @property
    def words(self) -> str:
        """What the features are, in words."""
        return f"patches of images ({len(self.centroids)} centroids of public ones)"

    def _patches(self, images: FloatArray) -> FloatArray:
        """Return patches as integers, ``(n_images, n_positions, n_positions, 36)``."""
        grey = (np.asarray(images, dtype=np.float64) - self.low) / (self.high - self.low)
        grey = np.rint(np.minimum(np.maximum(grey, 0.0), 1.0) * 2.0**PIXEL_BITS)
        view = np.lib.stride_tricks.sliding_window_view(
            grey.reshape(-1, self.side, self.side), (SIZE, SIZE), axis=(1, 2)
        )[:, ::STRIDE, ::STRIDE]
        return np.ascontiguousarray(view).reshape(*view.shape[:3], SIZE**2)

    def numbers(self, rows: FloatArray) -> FloatArray:
        """Return ``(n_images, 9 * n_centroids)`` features ≥ 0, each row a function of that image alone.

        Pixels and centroids are integers and 36 products sum to less than 2³⁸, so products, thresholds and sums over
        regions are exact; the square root is rounded once, entry by entry.
        """
        features = np.empty((len(rows), REGIONS**2 * len(self.centroids)))
        for first in range(0, len(rows), _BLOCK):
            features[first : first + _BLOCK] = self.of_block(rows[first : first + _BLOCK])
        return features

    def of_block(self, rows: FloatArray) -> FloatArray:
        """Return the features of a few images: their patches take much memory at once."""
        length, starts = self.regions
        bits = PIXEL_BITS + CENTROID_BITS
        patches = self._patches(rows)
        shared = patches.reshape(-1, SIZE**2) @ self.centroids.T - THRESHOLD * 2.0**bits
        above = np.maximum(shared, 0.0).reshape(*patches.shape[:3], -1)
        sums = [above[:, i : i + length, j : j + length].sum(axis=(1, 2)) for i in starts for j in starts]
        return np.asarray(np.sqrt(np.hstack(sums) * 2.0**-bits))

    def transformer(self) -> Any:
        """Return the same features, but for the grid, as a fitted scikit-learn Pipeline.

        Regions share one transformer, and so do the patches of a region: it is written once.
        """
        length, starts = self.regions
        width = (length - 1) * STRIDE + SIZE  # pixels along the side of a region
        n_centroids = len(self.centroids)
        above = preprocessing.MinMaxScaler(feature_range=(0.0, float(SIZE)), clip=True)  # x - threshold, and 0 below
        above.fit(np.array([[THRESHOLD], [THRESHOLD + SIZE]]).repeat(n_centroids, axis=1))
        patch = frozen.FrozenEstimator(
            pipeline.Pipeline([("shared", linear_step(self.centroids * 2.0**-CENTROID_BITS)), ("above", above)])
        )
        corner = np.add.outer(np.arange(SIZE) * width, np.arange(SIZE)).ravel()
        places = [(i * STRIDE) * width + j * STRIDE for i in range(length) for j in range(length)]
        within = compose.ColumnTransformer([(f"patch{at}", patch, (corner + at).tolist()) for at in places])
        within.fit(np.zeros((1, width**2)))
        within.transformers = []  # of the fitted ones, which do the work, printing 144 in one another takes minutes
        total = linear_step(np.tile(np.eye(n_centroids), (1, len(places))))
        summed = pipeline.Pipeline([("patches", frozen.FrozenEstimator(within)), ("sum", total)])
        region = frozen.FrozenEstimator(summed)
        block = np.add.outer(np.arange(width) * self.side, np.arange(width)).ravel()
        corners = [(i * self.side + j) * STRIDE for i in starts for j in starts]
        regions = compose.ColumnTransformer([(f"region{at}", region, (block + at).tolist()) for at in corners])
        shades = preprocessing.MinMaxScaler(clip=True)
        shades.fit(np.array([[self.low], [self.high]]).repeat(self.side**2, axis=1))
        regions.fit(np.zeros((1, self.side**2)))
        regions.transformers = []
        root = preprocessing.FunctionTransformer(np.sqrt)
        return pipeline.Pipeline([("grey", shades), ("regions", regions), ("root", root)])


def linear_step(matrix: FloatArray) -> Any:
    """Return ``rows @ matrix.T`` as a fitted transformer of scikit-learn, ``matrix`` of shape ``(n_out, n_in)``."""
    n_out, n_in = matrix.shape
    step = decomposition.TruncatedSVD(n_components=n_out)
    step.components_ = np.ascontiguousarray(matrix, dtype=np.float64)
    step.n_features_in_ = n_in
    return step


@stored_as("quorate.data.feature_maps.shared_patches.RememberedPatches")
@dataclass(frozen=True, slots=True, eq=False)
class RememberedPatches(PatchFeatures):
    """The same features, bit for bit, remembered by the pixels that they were computed from: for public rows alone."""

    _known: dict[bytes, FloatArray] = field(default_factory=dict, repr=False)

    def of_block(self, rows: FloatArray) -> FloatArray:
        """Return what is known of these images, else compute it."""
        key = _digest(rows)
        if key in self._known:
            return self._known[key]
        # Not super(): a dataclass with slots is another class than the one whose methods were compiled.
        features = PatchFeatures.of_block(self, rows)
        if (len(self._known) + 1) * features.size <= MOST_NUMBERS:
            self._known[key] = features
        return features


@stored_as("quorate.data.feature_maps.shared_patches.SharedPatches")
@dataclass(frozen=True, slots=True, eq=False)
class SharedPatches:
    """Patches of public images, learned once for each pool, which a plan sees through several maps."""

    _fitted: dict[bytes, RememberedPatches] = field(default_factory=dict, repr=False)

    def of(self, pool: FloatArray) -> RememberedPatches:
        """Return :meth:`PatchFeatures.fit` of the pool, or refuse as that does."""
        key = _digest(pool)
        if key not in self._fitted:
            self._fitted[key] = RememberedPatches.fit(pool)
        return self._fitted[key]


def _digest(images: FloatArray) -> bytes:
    """Hash what patches are a function of: the images' pixels as the numbers that they are computed with."""
    pixels = np.ascontiguousarray(images, dtype=np.float64)
    hashed = blake2b(repr(pixels.shape).encode(), digest_size=16)
    hashed.update(pixels.tobytes())
    return hashed.digest()


@stored_as("quorate.data.feature_maps.trees.TreeLeaves")
@dataclass(frozen=True, slots=True, eq=False)
class TreeLeaves:
    """For each tree, an indicator of the leaf that a row falls into. Trees are arrays, and no objects that run.

    By node: `feature`: the column that it asks for, −1 in a leaf; `threshold`: a row goes left where its entry is at
    most this; `left, right`: nodes that follow. `roots`: where each tree begins, ``(n_trees,)``. Moosmann, Triggs and
    Jurie (2007), Fast discriminative visual codebooks using randomized clustering forests.
    """

    feature: IntArray = field(repr=False)
    threshold: FloatArray = field(repr=False)
    left: IntArray = field(repr=False)
    right: IntArray = field(repr=False)
    roots: IntArray = field(repr=False)
    n_columns: int

    @classmethod
    def fit(cls, pool: FloatArray) -> TreeLeaves:
        """Grow 100 totally random trees of depth 5 on the dense public pool ``(n_public, n_columns)``."""
        from sklearn.ensemble import RandomTreesEmbedding

        forest = RandomTreesEmbedding(TREES, max_depth=DEPTH, random_state=0, n_jobs=1).fit(pool)
        parts: list[tuple[Any, ...]] = []
        roots, n_nodes = [], 0
        for grown in forest.estimators_:
            tree = grown.tree_
            leaf = tree.children_left < 0
            parts.append(
                (
                    np.where(leaf, -1, tree.feature),
                    np.where(leaf, 0.0, tree.threshold),
                    np.where(leaf, -1, tree.children_left + n_nodes),
                    np.where(leaf, -1, tree.children_right + n_nodes),
                )
            )
            roots.append(n_nodes)
            n_nodes += len(leaf)
        feature, threshold, left, right = (np.concatenate(numbers) for numbers in zip(*parts, strict=True))
        whole = [numbers.astype(np.int64) for numbers in (feature, left, right)]
        return cls(whole[0], threshold, whole[1], whole[2], np.array(roots, dtype=np.int64), int(pool.shape[1]))

    @property
    def leaves(self) -> IntArray:
        """Nodes that are leaves, in the order of the columns that stand for them."""
        return np.flatnonzero(self.feature < 0)

    @property
    def words(self) -> str:
        """What the features are, in words."""
        return f"leaves of {len(self.roots)} random trees grown on the pool"

    def numbers(self, rows: FloatArray) -> Any:
        """Return ``(n_rows, n_leaves)`` indicators as CSR; each row follows from comparisons of its own entries."""
        number = np.full(len(self.feature), -1, dtype=np.int64)
        number[self.leaves] = np.arange(len(self.leaves))
        node = np.tile(self.roots, (len(rows), 1))
        which = np.arange(len(rows))[:, None]
        while (inside := self.feature[node] >= 0).any():
            goes_left = rows[which, self.feature[node]] <= self.threshold[node]
            node = np.where(inside, np.where(goes_left, self.left[node], self.right[node]), node)
        starts = np.arange(len(rows) + 1) * len(self.roots)
        ones = np.ones(node.size)
        return sparse.csr_matrix((ones, number[node].ravel(), starts), shape=(len(rows), len(self.leaves)))

    def transformer(self) -> Any:
        """Return the same indicators as a fitted scikit-learn transformer, without a tree in it.

        Of each tree: entries minus thresholds, whether they are above 0, and for each leaf the sum over its path of
        the steps to the right minus those to the left, which only a row of that leaf has in full.
        """
        parts: list[tuple[str, Any, list[int]]] = []
        for root in self.roots.tolist():
            nodes, paths = self._paths(root)
            if not nodes:  # one leaf: every row is in it
                parts.append((f"tree{root}", preprocessing.FunctionTransformer(np.isfinite), [0]))
                continue
            steps = [
                ("from", shift_step(self.threshold[nodes])),
                ("right", preprocessing.Binarizer(threshold=0.0)),
                ("path", linear_step(paths)),
                ("whole", shift_step((paths > 0).sum(axis=1) - 0.5)),
                ("leaf", preprocessing.Binarizer(threshold=0.0)),
            ]
            tree = frozen.FrozenEstimator(pipeline.Pipeline(steps))
            parts.append((f"tree{root}", tree, self.feature[nodes].tolist()))
        return compose.ColumnTransformer(parts, sparse_threshold=0.0).fit(np.zeros((1, self.n_columns)))

    def _paths(self, root: int) -> tuple[list[int], FloatArray]:
        """Return the nodes of a tree that ask, and for each leaf, in order, 1 for right, −1 for left on its path."""
        nodes: list[int] = []
        leaves: list[tuple[int, dict[int, float]]] = []
        waiting: list[tuple[int, dict[int, float]]] = [(root, {})]
        while waiting:
            node, path = waiting.pop()
            if self.feature[node] < 0:
                leaves.append((node, path))
                continue
            nodes.append(node)
            waiting += [(int(self.left[node]), {**path, node: -1.0}), (int(self.right[node]), {**path, node: 1.0})]
        paths = np.zeros((len(leaves), len(nodes)))
        for row, (_, path) in enumerate(sorted(leaves, key=lambda leaf: leaf[0])):
            for node, way in path.items():
                paths[row, nodes.index(node)] = way
        return nodes, paths


def shift_step(by: Any) -> Any:
    """Return ``rows - by`` as a fitted transformer of scikit-learn."""
    return preprocessing.StandardScaler(with_std=False).fit(np.asarray(by, dtype=np.float64)[None, :])

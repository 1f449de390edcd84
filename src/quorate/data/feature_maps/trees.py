"""Leaves of random trees that were grown on the pool: the feature map of tables with steps and corners."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.data.feature_maps.patches import linear_step
from quorate.deferred import sparse
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

TREES = 100
DEPTH = 5


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
        from sklearn.compose import ColumnTransformer
        from sklearn.frozen import FrozenEstimator
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import Binarizer, FunctionTransformer

        parts: list[tuple[str, Any, list[int]]] = []
        for root in self.roots.tolist():
            nodes, paths = self._paths(root)
            if not nodes:  # one leaf: every row is in it
                parts.append((f"tree{root}", FunctionTransformer(np.isfinite), [0]))
                continue
            steps = [
                ("from", shift_step(self.threshold[nodes])),
                ("right", Binarizer(threshold=0.0)),
                ("path", linear_step(paths)),
                ("whole", shift_step((paths > 0).sum(axis=1) - 0.5)),
                ("leaf", Binarizer(threshold=0.0)),
            ]
            parts.append((f"tree{root}", FrozenEstimator(Pipeline(steps)), self.feature[nodes].tolist()))
        return ColumnTransformer(parts, sparse_threshold=0.0).fit(np.zeros((1, self.n_columns)))

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
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_std=False).fit(np.asarray(by, dtype=np.float64)[None, :])

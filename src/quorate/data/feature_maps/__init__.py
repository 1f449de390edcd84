"""Feature maps of the public pool: rows to vectors, as functions of public data alone.

A map is fitted on public rows, and the image of a private row is a function of that row and the map, bit for bit
(``exact``). Here belong maps and the scaling that they share; what is learned in them belongs to ``direct/`` and
``students/``. Begin with ``composed``.
"""

from quorate.data.feature_maps.composed import ChainedMap, LinearMap, ResidualMap, StackedMap, patch_map, tree_map
from quorate.data.feature_maps.first_maps import PatchFeatures, SharedPatches, TreeLeaves
from quorate.data.feature_maps.fitted_transformer import FittedTransformer
from quorate.data.feature_maps.nystroem import ChiSquaredMap, ProductKernelMap, RBFMap
from quorate.data.feature_maps.pool_coordinates import PoolCoordinates, PoolDirections, PoolStandardizer
from quorate.data.feature_maps.scale import PoolScale, has_numbers

__all__ = [
    "ChainedMap",
    "ChiSquaredMap",
    "FittedTransformer",
    "LinearMap",
    "PatchFeatures",
    "PoolCoordinates",
    "PoolDirections",
    "PoolScale",
    "PoolStandardizer",
    "ProductKernelMap",
    "RBFMap",
    "ResidualMap",
    "SharedPatches",
    "StackedMap",
    "TreeLeaves",
    "has_numbers",
    "patch_map",
    "tree_map",
]

"""All points of a small grid, where a learner or a sanitizer has to list them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from quorate.errors import InvalidParameter
from quorate.learners.concepts.enumeration import DICHOTOMY_LIMIT, refuse_beyond
from quorate.learners.concepts.protocol import ConceptClass, Concepts, Points

#: All the points that a row can be, in lexicographic order: public.
PublicDomain: TypeAlias = tuple[tuple[float, ...], ...]

#: Largest domain that is tabulated, in points.
MAX_DOMAIN = 2**12


def grid(concept_class: ConceptClass) -> Points:
    """Return all points of a small grid ``(n_domain, n_features)``, in lexicographic order.

    Raises InvalidParameter if the class has no finite grid, or one of more than :data:`MAX_DOMAIN` points; the message
    holds the number.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> grid(Thresholds(2)).ravel().tolist()
    [0, 1, 2, 3]
    """
    bits = getattr(concept_class, "bits", None)
    size = concept_class.domain_size
    if bits is None or size is None:
        raise InvalidParameter(
            f"concept_class must have a finite grid (a field `bits`), got {type(concept_class).__name__}; "
            "take a class on a grid"
        )
    if size > MAX_DOMAIN:
        raise InvalidParameter(
            f"concept_class must have a domain of at most {MAX_DOMAIN} points, got {size}; "
            "use a coarser grid, list the points that a row can be (domain=), or let GenericLearner sanitize rows: "
            "Tree on a line, Boxes for Rectangles"
        )
    widths = (bits,) * concept_class.n_features if isinstance(bits, int) else tuple(bits)
    return np.indices([2**width for width in widths]).reshape(len(widths), -1).T.astype(np.int64)


def n_listed(concepts: ConceptClass, domain: Any) -> int | None:
    """Return how many points a listed domain has; None where none is given, or it is the whole grid of the class.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> n_listed(Thresholds(2), [[0], [3], [3]]), n_listed(Thresholds(2), [[0], [1], [2], [3]])
    (2, None)
    """
    if domain is None:
        return None
    n_points = len({tuple(point) for point in np.asarray(domain).tolist()})
    return None if n_points == concepts.domain_size else n_points


def public_dichotomies(concepts: ConceptClass, points: Points, *, limit: int = DICHOTOMY_LIMIT) -> Concepts:
    """Return one concept for every dichotomy on points that are *public*: their real number is held against the limit.

    Where points may be private, a class refuses by how many they are alone, which for points on a small grid is far
    more than there can be.

    `concepts`: the class. One with ``growth_on(points)`` says by it how many there may be. `points`: public. `limit`:
    more are refused. Raises InvalidParameter with the number in the message.

    Examples
    --------
    >>> from quorate.learners.concepts import Stumps
    >>> four = np.indices((4,) * 6).reshape(6, -1).T.astype(float)
    >>> len(public_dichotomies(Stumps(6), four, limit=100))
    38
    """
    by_values: Callable[[Points], int] | None = getattr(concepts, "growth_on", None)
    if by_values is not None:
        refuse_beyond(limit, by_values(points), concepts)
        found = concepts.dichotomies(points, limit=max(limit, concepts.n_dichotomies(points)))
    else:
        found = concepts.dichotomies(points, limit=max(limit, DICHOTOMY_LIMIT))
    refuse_beyond(limit, len(found), concepts)
    return found


def public_domain(domain: Any, *, most: int = MAX_DOMAIN) -> PublicDomain:
    """Return a list of points, each once, as a plain value in lexicographic order.

    Raises InvalidParameter if it is not a table of finite numbers with at least one row, no row twice, and at most
    `most`.

    Examples
    --------
    >>> public_domain([[1, 0.5], [0, 0.5]])
    ((0.0, 0.5), (1.0, 0.5))
    """
    table = np.asarray(domain)
    table = table[:, np.newaxis] if table.ndim == 1 else table
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iuf" or not np.isfinite(table).all():
        raise InvalidParameter(
            "domain must be a table (n_points, n_features) of finite numbers, all the points that a row can be"
        )
    distinct = np.unique(table.astype(np.float64), axis=0)
    if not len(distinct) == len(table) <= most:
        raise InvalidParameter(
            f"domain must hold each point once, at most {most}, got {len(table)} rows with {len(distinct)} points"
        )
    return tuple(tuple(row) for row in distinct.tolist())

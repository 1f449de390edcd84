"""All points of a small grid, where a learner or a sanitizer has to list them."""

from __future__ import annotations

import numpy as np

from quorate.errors import InvalidParameter
from quorate.learners.concepts.protocol import ConceptClass, Points

#: Largest domain that is tabulated, in points.
MAX_DOMAIN = 2**12


def grid(concept_class: ConceptClass) -> Points:
    """Return all points of a small grid ``(n_domain, n_features)``, in lexicographic order.

    Raises
    ------
    InvalidParameter
        If the class has no finite grid, or one of more than :data:`MAX_DOMAIN` points; the message holds the number.

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
            "use a coarser grid, or Tree on a line"
        )
    widths = (bits,) * concept_class.n_features if isinstance(bits, int) else tuple(bits)
    return np.indices([2**width for width in widths]).reshape(len(widths), -1).T.astype(np.int64)

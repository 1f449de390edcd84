"""Opening a model that skops wrote and this run published, to convert it."""

from __future__ import annotations

from typing import Any

from quorate.errors import PreconditionFailed
from quorate.folder.opened_student import untrusted_types


def opened(content: bytes) -> Any:
    """Open a student that this run published, whose sum was compared; parts of scikit-learn are trusted.

    Raises PreconditionFailed if it holds types of another package; they are named.
    """
    import skops.io

    unknown = untrusted_types(content)
    others = [name for name in unknown if name.partition(".")[0] not in ("sklearn", "numpy", "scipy")]
    if others:
        raise PreconditionFailed(
            f"the student holds the types {', '.join(others)}, which are not opened to convert them; leave ONNX out"
        )
    return skops.io.loads(content, trusted=unknown)

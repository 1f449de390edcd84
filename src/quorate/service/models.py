"""Models for the service: every file is what was noted of it, and none of it runs code when it is opened.

``private/service-models.json`` holds the SHA-256 sum of every file that a service reads a model from. Files are opened
by skops with a fixed list of types, never by pickle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final

import numpy as np

from quorate.arguments import for_shell
from quorate.data.column_kinds import ColumnKinds
from quorate.data.rows import Rows
from quorate.errors import PreconditionFailed
from quorate.folder.folder import RunFolder
from quorate.folder.opened_student import student_from
from quorate.folder.published import STUDENT, read_published
from quorate.release.file_writing import write_atomically

MANIFEST: Final = "service-models.json"

_FORMAT = "quorate service models 1"


def open_student(folder: RunFolder, *, trusted: Sequence[str] = ()) -> Any:
    """Open the published student, or the model of a direct run.

    `folder`: of a finished run. `trusted`: types that are opened beside those of scikit-learn, by their full names.
    Raises PreconditionFailed if the file is not what the run published, or holds a type that is not trusted.
    """
    return student_from(
        read_published(folder, STUDENT),
        place=f"public/{STUDENT}",
        trusted=trusted,
        name_them_in="trusted_types of service.toml",
        anew=f"quorate run {for_shell(folder.root)} writes it anew",
    )


def predictor(model: Any, kinds: ColumnKinds) -> Callable[[Rows], list[Any]]:
    """Return what gives a class, as JSON has it, for each row; `kinds` say what its columns are read as."""

    def predict(rows: Rows) -> list[Any]:
        found: list[Any] = np.asarray(model.predict(kinds(rows))).tolist()
        return found

    return predict


def check_models(folder: RunFolder) -> None:
    """Compare the files of the teachers with the manifest; a file that is not in it yet is not refused.

    Raises PreconditionFailed if a file is another than the one that was noted.
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
        return file_digest(file, "sha256").hexdigest()


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

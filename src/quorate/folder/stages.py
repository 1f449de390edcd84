"""Stages of a run in its folder: one file each, private."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from quorate.release.keys import write_atomically


@dataclass(frozen=True, slots=True)
class FolderStages:
    """Results in the private side of a run's folder: one file a stage, its key in front of its content."""

    folder: Path
    keeps: bool = True

    @property
    def private(self) -> Path:
        """The folder itself; the run's while there is none yet."""
        return self.folder if self.folder.is_dir() else self.folder.parent

    def load(self, stage: str, key: str) -> bytes | None:
        """Return the content saved under `key`; a file cut short or made from other things counts as absent."""
        try:
            file = self._path(stage).read_bytes()
        except FileNotFoundError:
            return None
        header, _, content = file.partition(b"\n")
        digest = blake2b(content, digest_size=16).hexdigest()
        return content if header.decode("ascii", "replace") == f"{key} {digest}" else None

    def save(self, stage: str, key: str, content: bytes) -> None:
        """Write the stage's file whole or not at all, readable by its owner alone."""
        path = self._path(stage)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = blake2b(content, digest_size=16).hexdigest()
        write_atomically(path, f"{key} {digest}\n".encode() + content, mode=0o600)

    def _path(self, stage: str) -> Path:
        return self.folder / f"{stage}.stage"

"""Stages keyed by content: what was computed once, from the same things, is not computed again.

A stage's key is a keyed hash of everything its result is made from. Two runs with the same key would compute the
same bytes, so a stored result may stand in for the computation; anything else is computed afresh. The keys are
made with the run's secret key, because an unkeyed hash of private rows can be guessed at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from quorate.release.keys import write_atomically
from quorate.types import Secret

CHUNK = 64  # teachers a stage: what a killed run trains again at most
COORDINATES = "coordinates"  # the stage of the direct method: what its rounds are computed in
FIRST_TEACHERS = "teachers-00000"  # the stage of the first chunk of them
FINISHED = "asked"  # the stage that says that a strategy has stopped
COUNTED = "counted"  # how stages begin that hold the summed votes of a chunk of teachers which no file can hold
PROMPTED, CALLED = "prompted", "called"  # how stages begin that hold one teacher's votes: a prompt's, or a command's
CLASS_SHARES = "class-shares"  # stages of the direct method: shares of the rarer class that runs were begun with


def coordinates_stage(key: str) -> str:
    """Name the stage that holds the coordinates of one plan, by a hash of its public facts."""
    return f"{COORDINATES}-{key}"


def shares_stage(key: str) -> str:
    """Name the stage that holds shares with which runs of the same data were begun, by how their charges begin."""
    return f"{CLASS_SHARES}-{key.split()[-1]}"


def pool_stage(key: str) -> str:
    """Name the stage that holds the rows that were drawn for one plan."""
    return f"drawn-pool-{key}"


def votes_stage(kind: str, number: int) -> str:
    """Name the stage that holds the votes of one teacher, or of a chunk, by the number of its first one."""
    return f"{kind}-{number:05d}"


class StageStore(Protocol):
    """Where stage results are kept: a run's folder, or nowhere."""

    @property
    def keeps(self) -> bool:
        """Whether what is saved can be loaded again; where not, a caller need not serialise."""

    @property
    def private(self) -> Path | None:
        """The folder of its owner alone in which rows may lie that memory does not hold; None where there is none."""

    def load(self, stage: str, key: str) -> bytes | None:
        """Return what was saved for this stage under this very key, or None."""

    def save(self, stage: str, key: str, content: bytes) -> None:
        """Keep `content`, durably, in place of whatever the stage held before."""


@dataclass(frozen=True, slots=True)
class NoStages:
    """An estimator in memory keeps nothing: a killed process leaves no private file behind."""

    keeps: bool = False
    private: None = None

    def load(self, stage: str, key: str) -> None:
        """Return None: nothing is kept."""

    def save(self, stage: str, key: str, content: bytes) -> None:
        """Keep nothing."""


def stage_key(key: Secret[bytes], stage: str, cache_inputs: Mapping[str, Any]) -> str:
    """Return a hash, keyed by the run's 32 bytes, of the plain JSON values that a stage's result is made from."""
    text = json.dumps([stage, cache_inputs], sort_keys=True, ensure_ascii=False, allow_nan=False)
    return blake2b(text.encode(), key=key.reveal(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class TaskStages:
    """The stages of one task in a store. `made_from`: what their results are a function of, beside the run's key."""

    store: StageStore
    key: Secret[bytes]
    made_from: Mapping[str, Any]

    def load(self, stage: str) -> bytes | None:
        """Return what was saved for this stage of the task, or None."""
        return self.store.load(stage, stage_key(self.key, stage, self.made_from)) if self.store.keeps else None

    def save(self, stage: str, content: bytes) -> None:
        """Keep `content`, durably, where anything is kept."""
        if self.store.keeps:
            self.store.save(stage, stage_key(self.key, stage, self.made_from), content)


@dataclass(frozen=True, slots=True)
class FolderStages:
    """Results in the private side of a run's folder: one file a stage, its key in front of its content."""

    folder: Path
    keeps: bool = True

    @property
    def private(self) -> Path | None:
        """The folder itself; None where there is none yet, and nothing is to be written beside it."""
        return self.folder if self.folder.is_dir() else None

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

"""A folder that passes for storage which workers share, and a worker that reads it in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.ensemble.one_worker import OneWorker, in_this_process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "rows"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def worker(folder: Path) -> Any:
    return OneWorker(folder, in_this_process)

"""A folder that passes for storage which workers share, and a worker that reads it in this process."""

from __future__ import annotations

import pytest
from tests.ensemble.one_worker import OneWorker, in_this_process


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "rows"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def worker(folder):
    return OneWorker(folder, in_this_process)

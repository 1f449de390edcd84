"""A scheduler with one worker, played without Dask, and a folder that passes for storage which workers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorate.ensemble.workers.cluster import remote
from quorate.ensemble.workers.cluster.exchange import take_each
from quorate.ensemble.workers.cluster.remote import RemoteResult, RemoteTask, do_remotely, environment
from quorate.errors import PreconditionFailed


class OneWorker:
    """A scheduler and a connection to it, without Dask: each task is done at once."""

    status = "running"

    def __init__(self, folder: Path, do: Callable[[RemoteTask], RemoteResult]) -> None:
        self.folder, self.do, self.client = folder, do, self
        self.environment = environment()
        self.sizes: list[int] = []

    @contextmanager
    def connected(self) -> Iterator[OneWorker]:
        yield self

    def threads(self) -> int:
        return 1

    def call(self, request: Callable[[], Any]) -> Any:
        return request()

    @property
    def workers(self) -> list[str]:
        return ["tcp://127.0.0.1:1"]

    def run(self, function: Any, *arguments: Any) -> dict[str, Any]:
        """Have each worker do the same, as ``distributed.Client.run``."""
        return {address: function(*arguments) for address in self.workers}

    def submit(self, function: Any, task: RemoteTask, *, key: str, pure: bool, **where: Any) -> Any:
        assert function is do_remotely
        assert not pure
        self.sizes.append(len(take_each(self.folder, task.items)))
        future: Any = Future()
        future.key = key
        future.set_result(self.do(task))
        return future


def in_this_process(task: RemoteTask) -> RemoteResult:
    """As :func:`do_remotely`, but without a process of its own."""
    try:
        return remote._do(task)
    except (PreconditionFailed, SystemExit):
        raise
    except Exception:  # noqa: BLE001 - as there
        return RemoteResult(None, 0)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "rows"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def worker(folder):
    return OneWorker(folder, in_this_process)

"""``[run]`` of ``quorate.toml``: this run's share of the budget, and where and how it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.run.section import Section


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSettings:
    """``[run]``: this run's share of the budget, and how it is made."""

    epsilon: float | None = None
    delta: float | None = None
    n_jobs: int | None = None
    memory: float | None = None  # gigabytes
    scheduler: str | None = None  # of Dask: its workers train the teachers
    plain_tcp: bool = False  # whether that scheduler may be on another machine without TLS
    shared_folder: Path | None = None  # where what its workers need lies meanwhile; by default in private/
    allow_hopeless: bool = False
    unsafe_noise_seed: int | None = None


def run_settings(document: Mapping[str, Any], folder: Path) -> RunSettings:
    """Read and check the section."""
    run = Section("run", _with_new_names(document), RunSettings)
    return RunSettings(
        epsilon=run.optional("epsilon", lambda key: real(f"[run] {key}", run.given[key], above=0)),
        delta=run.optional("delta", lambda key: real(f"[run] {key}", run.given[key], above=0, below=1)),
        n_jobs=run.optional("n_jobs", lambda key: run.count(key, at_least=1)),
        memory=run.optional("memory", lambda key: real(f"[run] {key}", run.given[key], above=0)),
        scheduler=run.optional("scheduler", run.text),
        plain_tcp=run.flag("plain_tcp"),
        shared_folder=run.optional("shared_folder", lambda key: folder / run.text(key)),
        allow_hopeless=run.flag("allow_hopeless"),
        unsafe_noise_seed=run.optional("unsafe_noise_seed", run.count),
    )


def _with_new_names(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read ``[run] jobs``, as version 0.1 wrote it, as ``n_jobs``."""
    run = dict(document.get("run", {}))
    if "jobs" in run:
        if "n_jobs" in run:
            raise InvalidParameter("[run] has n_jobs and jobs, which is its name of version 0.1; leave out jobs")
        run["n_jobs"] = run.pop("jobs")
    return {**document, "run": run}

"""``[run]`` of ``quorate.toml``: this run's share of the budget, and where and how it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.folder.section import Section


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


def refuse_more_than_the_cap(run: RunSettings, *, epsilon: float, delta: float) -> None:
    """Refuse a share of one run that is above the cap for all runs together; nothing but the settings is read.

    A ledger is opened with what ``[budget]`` says, and raised to what ``[budget]`` says, so that the file knows a
    raised cap as well.

    `run`: what ``[run]`` says. `epsilon`, `delta`: what ``[budget]`` says. Raises InvalidParameter if it is; both parts
    are named in one line.

    Examples
    --------
    >>> refuse_more_than_the_cap(RunSettings(epsilon=1.0), epsilon=1.0, delta=1e-6)
    """
    pairs = (("epsilon", run.epsilon, epsilon), ("delta", run.delta, delta))
    above = [(name, share, cap) for name, share, cap in pairs if share is not None and share > cap]
    if above:
        told = " and ".join(
            f"[run] {name} = {share!r} is above [budget] {name} = {cap!r}" for name, share, cap in above
        )
        keys = " and ".join(name for name, _, _ in above)
        raise InvalidParameter(
            f"{told}: [budget] is the cap for all runs together, and [run] the part of this one. Lower [run] {keys} to "
            f"the cap or below, or raise [budget] {keys}; a ledger that is there already then asks for a reason: "
            "quorate ledger open --raise-budget REASON"
        )


def _with_new_names(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read ``[run] jobs``, as version 0.1 wrote it, as ``n_jobs``."""
    run = dict(document.get("run", {}))
    if "jobs" in run:
        if "n_jobs" in run:
            raise InvalidParameter("[run] has n_jobs and jobs, which is its name of version 0.1; leave out jobs")
        run["n_jobs"] = run.pop("jobs")
    return {**document, "run": run}

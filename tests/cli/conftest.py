"""The small hospital of the runs' tests, and the command line by its own door."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_spec = spec_from_file_location("run_conftest", Path(__file__).parents[1] / "folder" / "conftest.py")
assert _spec is not None
assert _spec.loader is not None
_runs = module_from_spec(_spec)
_spec.loader.exec_module(_runs)

make_run, cli, visits, toml = _runs.make_run, _runs.cli, _runs.visits, _runs.toml
finished_runs, finished_run, small_shards = _runs.finished_runs, _runs.finished_run, _runs.small_shards

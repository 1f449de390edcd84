"""The small hospital of the runs' tests, and the command line by its own door."""

from tests.folder import conftest as runs

make_run, cli, visits, toml = runs.make_run, runs.cli, runs.visits, runs.toml
finished_runs, finished_run, small_shards = runs.finished_runs, runs.finished_run, runs.small_shards

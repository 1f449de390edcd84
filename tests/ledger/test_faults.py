"""The fault matrix: a short form of each row; the full form (``pytest -m faults``) writes its figures down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.ledger.faults import trials
from tests.ledger.faults.images import commit_ends, recorded
from tests.ledger.faults.table import Line, figures_of, lines, write

#: Each row: its name in the table, how many cases a full run has at least, and whether it needs a server.
ROWS = {
    "kill −9, SQLite": 200,
    "kill −9, PostgreSQL": 200,
    "log cut, torn, dropped in parts": 12_000,
    "bit flips": 6_000,
    "full disk, failed sync": 80,
    "many processes on one budget, SQLite": 20,
    "many processes on one budget, PostgreSQL": 20,
    "old, deleted, edited": 50,
}
Trial = Callable[..., Line]


@pytest.fixture
def trial(request: pytest.FixtureRequest, tmp_path: Any) -> Trial:
    """Return what tries a row, in its full form or a short one."""

    def run(row: str, *, full: bool) -> Line:
        def of(fixture: str) -> Any:
            return request.getfixturevalue(fixture)

        url = of("server").url if row.endswith("PostgreSQL") else None
        match row.partition(",")[0]:
            case "kill −9":
                return trials.kills(tmp_path, of("nursery"), 200 if full else 12, url)
            case "log cut":
                return trials.power_cuts(tmp_path, 12_000 if full else 120)
            case "bit flips":
                return trials.bit_flips(tmp_path, 6_000 if full else 120)
            case "full disk":
                return trials.storage_errors(tmp_path, of("failing_nursery"), 40 if full else 6)
            case "many processes on one budget":
                return trials.crowds(tmp_path, of("nursery"), 20 if full else 1, 64 if full else 8, url)
            case _:
                return trials.old_and_edited_files(tmp_path)

    return run


@pytest.mark.parametrize("row", ROWS)
def test_no_fault_breaks_a_promise_and_its_broken_twin_is_caught(trial: Trial, row: str) -> None:
    line = trial(row, full=False)
    assert line.violations == 0, line
    assert line.caught > 0, "the check would not have noticed"
    assert line.fault == row


@pytest.mark.faults
@pytest.mark.parametrize("row", ROWS)
def test_the_full_form(trial: Trial, row: str) -> None:
    line = trial(row, full=True)
    assert line.violations == 0, line
    assert line.caught > 0, "the check would not have noticed"
    assert line.cases >= ROWS[row]
    write(line, list(ROWS))


def test_the_page_has_the_figures_of_a_full_run_of_every_row() -> None:
    standing = lines()
    assert list(standing) == list(ROWS)
    for row, least in ROWS.items():
        cases, violations, caught = figures_of(standing[row])
        assert (cases >= least, violations, caught > 0) == (True, 0, True), row


def test_where_commits_end_in_the_recorded_log_is_what_its_format_says(tmp_path: Any) -> None:
    recording = recorded(tmp_path / "recording")
    assert recording.ends == commit_ends(recording.log)
    assert recording.heads == sorted(recording.heads)

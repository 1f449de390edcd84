"""The fault matrix: a short form of each row; the full form (``pytest -m faults``) writes its figures down."""

import pytest
from tests.ledger.faults import table, trials
from tests.ledger.faults.images import commit_ends, recorded
from tests.ledger.faults.table import Line, figures_of, lines, write

#: Each row: its name in the table, how many cases a full run has at least, and whether it needs a server.
ROWS = {
    "kill −9, SQLite": 200,
    "kill −9, PostgreSQL": 200,
    "log cut, torn, dropped in parts": 12_000,
    "anchor torn, lost, old": 6_000,
    "bit flips": 6_000,
    "full disk, failed sync": 80,
    "many processes on one budget, SQLite": 20,
    "many processes on one budget, PostgreSQL": 20,
    "old, deleted, edited": 50,
}


@pytest.fixture
def trial(request, tmp_path):
    def run(row, *, full):
        def of(fixture):
            return request.getfixturevalue(fixture)

        url = of("server").url if row.endswith("PostgreSQL") else None
        match row.partition(",")[0]:
            case "kill −9":
                return trials.kills(tmp_path, of("nursery"), 200 if full else 12, url)
            case "log cut":
                return trials.power_cuts(tmp_path, 12_000 if full else 120)
            case "anchor torn":
                return trials.anchor_faults(tmp_path, 6_000 if full else 60)
            case "bit flips":
                return trials.bit_flips(tmp_path, 6_000 if full else 120)
            case "full disk":
                return trials.storage_errors(tmp_path, of("failing_nursery"), 40 if full else 6)
            case "many processes on one budget":
                return trials.crowds(tmp_path, of("nursery"), 20 if full else 1, 64 if full else 8, url)
            case _:
                return trials.old_and_edited_files(tmp_path)

    return run


@pytest.fixture(scope="module")
def run_of_all():
    """Collect the rows of a run; where it had all of them, they are written down."""
    run = {}
    yield run
    if list(run) == list(ROWS):
        write(list(run.values()))


FORMS = [pytest.param(False, marks=pytest.mark.heavy), pytest.param(True, marks=pytest.mark.faults)]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("full", FORMS, ids=["short form", "full form"])
def test_no_fault_breaks_a_promise_and_its_broken_twin_is_caught(trial, run_of_all, row, full):
    line = trial(row, full=full)
    assert line.violations == 0, line
    assert line.caught > 0, "the check would not have noticed"
    assert line.fault == row
    if full:
        assert line.cases >= ROWS[row]
        run_of_all[row] = line


def test_a_run_writes_the_table_that_is_read(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}old\n{table.END}after\n")
    monkeypatch.setattr(table, "PAGE", page)
    rows = [Line(row, least, "counted", 0, "a twin", 3) for row, least in ROWS.items()]
    for _ in range(2):
        write(rows, page)
        assert [figures_of(line) for line in lines().values()] == [(line.cases, 0, 3) for line in rows]
        assert list(lines()) == list(ROWS)
        assert page.read_text().startswith(f"before\n{table.BEGIN}All rows are of one run: ")
        assert page.read_text().endswith(f"{table.END}after\n")


def test_the_page_has_the_figures_of_a_full_run_of_every_row():
    standing = lines()
    assert list(standing) == list(ROWS)
    for row, line in standing.items():
        cases, violations, caught = figures_of(line)
        assert (cases >= ROWS[row], violations, caught > 0) == (True, 0, True), row


def test_where_commits_end_in_the_recorded_log_is_what_its_format_says(tmp_path):
    recording = recorded(tmp_path / "recording")
    assert recording.ends == commit_ends(recording.log)
    assert recording.heads == sorted(recording.heads)

"""The fault matrix: a short form of each row; the full form (``pytest -m faults``) writes its figures down.

kill −9 at each named failpoint: released ⊆ charged, the chain stays valid. And the page of the promise: each clause
names its tests, and they are there.
"""

import ast
import re
from pathlib import Path

import pytest
from tests.ledger.faults import table, trials
from tests.ledger.faults.images import commit_ends, recorded
from tests.ledger.faults.table import Line, figures_of, lines, write
from tests.ledger.faults.trials import POINTS, breaches, breaches_of_a_twin, told

from quorate.ledger import Ledger

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


def test_every_clause_names_tests_that_are_there():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "ledger-promise.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|") and "`tests/" in line]
    assert len(rows) == 5, "a row for each clause"
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert len(named) == row.count("`tests/") > 1
        for file, name in named:
            tree = ast.parse((root / file).read_text(encoding="utf-8"))
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}, name


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("kind", "point"),
    [("sqlite", point) for point in POINTS]
    + [("postgresql", point) for point in POINTS if not point.startswith("anchor ")],
)
def test_killed_at_a_failpoint_nothing_was_released_uncharged_and_the_run_ends(request, nursery, tmp_path, kind, point):
    path = tmp_path / "ledger.db"
    url = request.getfixturevalue("server").url() if kind == "postgresql" else None
    order = {"do": "killed", "path": str(path), "url": url, "order": "honest", "delay": None}
    for occurrence in (0,) if point == "anchor renamed" else (0, 3, 5):  # an anchor is made once
        assert nursery(point=point, occurrence=occurrence, **order)["killed"]
        assert not breaches(path, url)
    assert nursery(point=None, occurrence=0, **order)["finished"]
    assert not breaches(path, url)
    with Ledger(url or path) as ledger:
        [reservation] = ledger.reservations()
        blocks = reservation.blocks("label")
        assert reservation.remaining("label") == 0
        assert ledger.spent.epsilon == 0.5  # resumed three times, charged once
    released = {first for first, _ in told(path, "released")}
    assert released <= {block.first for block in blocks if block.status == "stored"}
    assert {block.status for block in blocks} <= {"stored", "interrupted"}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("order", "breach"),
    [
        ("answers before charge", "an answer left before its charge"),
        ("answers before store", "an answer left that is not on record"),
    ],
)
def test_these_tests_catch_a_twin_that_answers_too_early(nursery, tmp_path, order, breach):
    assert breach in breaches_of_a_twin(nursery, tmp_path, order)

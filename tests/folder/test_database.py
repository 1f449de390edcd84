"""Tables from databases: by a query that can only read, in an order that is the same again, and without a password."""

import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import DIRECT
from tests.ledger.postgres_server import running, why_not

from quorate.data import database, read_cells, read_data, spool
from quorate.data.database import DatabaseQuery
from quorate.data.stream import PartedFrame
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.table_source import same_source

ROWS = [(3, "P2", 40, 0.5, "north", "yes"), (1, "P1", 30, None, "O'Hara, 'é'", "no"), (2, "P2", 50, 1.5, None, "yes")]
MAKE = "create table visits (id integer, person text, age integer, lab float, ward text, ill text)"


@pytest.fixture(scope="module")
def server():
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    with running() as server:
        server.sql(MAKE, "create table odd (id integer, day date, ok boolean, n numeric, j jsonb)")
        server.insert("visits", ROWS)
        server.sql("insert into odd values (1, 'infinity', true, 'NaN', '{}'), (2, '2024-03-01', null, 1.25, null)")
        yield server


def on(server, query):
    return DatabaseQuery(f"postgresql://quorate@/postgres?host={server.folder}", query, "[data] private", Path())


@contextmanager
def clinic(folder):
    """An SQLite database that is made or changed."""
    with closing(sqlite3.connect(folder / "clinic.db")) as made, made:
        yield made


def in_clinic(folder, query):
    return DatabaseQuery("sqlite:///clinic.db", query, "[data] private", folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def asked(request, tmp_path):
    """Return ``asked(query) -> DatabaseQuery`` of a database with :data:`ROWS`."""
    if request.param == "postgresql":
        return partial(on, request.getfixturevalue("server"))
    with clinic(tmp_path) as made:
        made.execute(MAKE)
        made.executemany("insert into visits values (?, ?, ?, ?, ?, ?)", ROWS)
    return partial(in_clinic, tmp_path)


@pytest.mark.heavy
def test_a_query_is_a_table(asked):
    query = asked("select * from visits order by id;")
    table = read_data(query, label="ill", unit="person", drop=["id"])
    assert table.X.rows() == [(30, None, "O'Hara, 'é'"), (50, 1.5, None), (40, 0.5, "north")]
    assert table.X.dtypes == [pl.Int64, pl.Float64, pl.String]
    assert (table.y.tolist(), table.unit) == (["no", "yes", "yes"], ["P1", "P2", "P2"])
    cells = read_cells(query, label="ill", n_features=1)
    assert cells.X["age"].to_list() == ["30", "50", "40"]
    assert cells.X["lab"].to_list()[0] is None


@pytest.mark.heavy
def test_rows_come_in_the_same_order_whatever_the_database_does(asked):
    one, other = asked("select * from visits"), asked("select * from visits order by age desc")
    assert one.cells().equals(asked("select * from visits where 1 = 1").cells())
    assert not one.is_ordered
    assert other.is_ordered
    assert not asked("select id from visits -- order by id").is_ordered
    assert one.cells()["id"].to_list() == ["1", "2", "3"]
    found = asked("select id, row_number() over (order by age desc) as n from visits").cells()
    assert found.rows() == [("1", "3"), ("2", "1"), ("3", "2")]


ODD = [None, "", " ", "é", "z", "10", "9", 10, 9, 2.5, -1, 1e300, float("inf"), "a\x00b", b"\xff\x00x", "\U0001f600"]


def test_rows_of_a_query_without_an_order_come_in_that_of_their_texts(tmp_path):
    """The database puts them in order, so that no more than some are held: as a sort of all texts would."""
    rng = np.random.default_rng(0)
    with clinic(tmp_path) as made:
        made.execute("create table odd (a, `it's b`, [c`d])")
        made.executemany(
            "insert into odd values (?, ?, ?)", [[ODD[at] for at in rng.integers(0, 16, 3)] for _ in "x" * 500]
        )
        made.execute("insert into odd values (cast(x'ff41' as text), 1, 2)")  # which is no text of UTF-8
    rows = in_clinic(tmp_path, "select * from odd order by rowid").cells()
    unordered = in_clinic(tmp_path, "select * from odd")
    assert unordered.cells().equals(rows.sort(rows.columns, nulls_last=True))
    assert not unordered.cells().equals(rows)


@pytest.mark.heavy
def test_postgresql_puts_rows_of_all_types_in_the_order_of_their_texts(server):
    values = ["'é'", "'z'", "'Z'", "''", "'a b'", "'ab'", "null"]
    server.sql(
        "create type pair as (x integer, y text)",
        "create table mixed (f char(5), j json, n numeric, p pair, b boolean, t text)",
        *(
            f"insert into mixed values ({value}, '{{}}', {n}, {pair}, {ok}, {value})"
            for value in values
            for n, pair, ok in ((10, "(null, null)", "true"), (9, "null", "null"), ("'NaN'", "(1, 'é')", "false"))
        ),
    )
    rows = on(server, "select * from mixed order by f").cells()
    assert on(server, "select * from mixed").cells().equals(rows.sort(rows.columns, nulls_last=True))


@pytest.mark.heavy
def test_texts_are_what_they_are_in_whatever_encoding_the_client_is_told_to_have(server, monkeypatch):
    query = on(server, "select ward from visits")
    expected = query.cells()
    assert expected["ward"][0] == "O'Hara, 'é'"
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    assert query.cells().equals(expected)
    monkeypatch.delenv("PGCLIENTENCODING")
    server.sql("alter role quorate set client_encoding = 'SQL_ASCII'")
    try:
        assert query.cells().equals(expected)
    finally:
        server.sql("alter role quorate reset client_encoding")


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("order", ["", " order by id desc"])
def test_a_query_is_read_block_by_block_and_rows_that_are_put_aside_are_the_same(asked, order, monkeypatch, tmp_path):
    query, spooled = asked(f"select * from visits{order}"), tmp_path / "private"
    whole = read_cells(query, label="ill", unit="person", n_features=4)
    monkeypatch.setattr(database, "_AT_ONCE", 1)
    monkeypatch.setattr(spool, "IN_MEMORY", 0)
    spooled.mkdir()
    parted = read_cells(query, label="ill", unit="person", n_features=4, memory=0, folder=lambda: spooled)
    assert isinstance(parted.X, PartedFrame)
    assert [block.height for block in parted.X.blocks(10)] == [1, 1, 1]
    assert pl.concat(list(parted.X.blocks(10))).equals(whole.X)
    assert (list(parted.y), parted.unit.to_list()) == (whole.y, whole.unit)
    assert list(spooled.iterdir()) == []
    nobody = read_cells(asked("select * from visits where id > 9"), label="ill", n_features=5, memory=0)
    assert (len(nobody.X), nobody.X.shape[1]) == (0, 5)


ORDERS = [
    ("select * from v order by id", True),
    ("select * from v\nORDER\tBY id desc limit 3;", True),
    ("select * from v order/* a comment */by id -- so", True),
    ("with w as (select * from v order by a) select *, ')' as b from w order by a", True),
    ("select a, row_number() over (order by a) as n from v", False),
    ("select a, row_number() over (partition by b order by a) as n from v order by (a)", True),
    ("select * from (select * from v order by a) as w", False),
    ("with w as (select * from v order by a) select * from w", False),
    ("select string_agg(a, ',' order by a) from v group by b", False),
    ("select 'in order by name' as a from v", False),
    ("select 'it''s order by' as a from v", False),
    ("select '(' as a from v order by a", True),
    ("select ')' as a, (select max(b) from w order by 1) as c from v", False),
    ('select a as "order by" from v', False),
    ("select a from v /* order by a */", False),
    ("select a from v /* order by a", False),
    ("select a from v -- ' order by a", False),
    ("select a from reorder by_name", False),
]
OF_POSTGRESQL = [
    ("select E'it\\'s order by ' as a from v", False),
    ("select E'\\\\' as a from v order by a", True),
    ("select '\\' as a from v order by '\\'", True),
    ("select $$it's order by$$ as a from v", False),
    ("select $t$ $$ ' order by $t$ as a from v", False),
    ("select $t$ $$ ' $t$ as a from v order by a", True),
    ("select a from v /* /* */ order by a */", False),
    ("select array['a]'], 'x order by y' from v", False),
]
OF_SQLITE = [
    ("select a as [it's order by] from v", False),
    ("select a as `it's order by` from v", False),
    ("select a as [it's] from v order by a", True),
    ("select a from v /* /* */ order by a", True),
]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("url", "query", "is_ordered"),
    [
        *(("sqlite:///c.db", *each) for each in ORDERS + OF_SQLITE),
        *(("postgresql://h/c", *each) for each in ORDERS + OF_POSTGRESQL),
    ],
)
def test_the_order_of_a_query_is_that_of_its_outermost_level(url, query, is_ordered):
    assert DatabaseQuery(url, query, "[data] private", Path()).is_ordered == is_ordered


SAME = DatabaseQuery("sqlite:///c.db", "select * from v order by id", "[data] private", Path())


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("url", "query", "same"),
    [
        ("sqlite:///c.db", "select * from v order by id", True),
        ("sqlite:///c.db", " select *\n  from v order by id ; ", True),
        ("SQLite:///./c.db", "select * from v order by id", True),
        ("sqlite:///d.db", "select * from v order by id", False),
        ("postgresql://h/c.db", "select * from v order by id", False),
        ("sqlite:///c.db", "select * from w order by id", False),
    ],
)
def test_a_query_is_known_again_but_for_spaces_and_its_end(url, query, same):
    other = DatabaseQuery(url, query, "[data] public", Path())
    assert same_source(SAME, other) == same_source(other, SAME) == same
    assert not same_source(SAME, Path("c.db"))


def test_the_private_query_as_the_public_one_is_refused(make_run, cli):
    urls = {"data.private": "sqlite:///c.db", "data.public": "sqlite:///c.db"}
    queries = {"data.private_query": "select * from v order by id", "data.public_query": "select * from v order by id;"}
    root = make_run(**urls, **queries)
    sqlite3.connect(root / "c.db").close()
    assert "[data] public is the private file again" in cli.refused(4, "check", root).words


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        *(
            (error("O'Hara"), PreconditionFailed, "was broken off")
            for error in (RuntimeError, ValueError, OSError, MemoryError)
        ),
        # as a search by words of a cell says: it hangs on a row, and is not told apart
        (sqlite3.OperationalError("no such column: O'Hara"), InvalidParameter, "an error while it ran"),
    ],
    ids=repr,
)
def test_an_error_of_a_driver_is_one_line_that_quotes_nothing(error, kind, said, tmp_path):
    query = in_clinic(tmp_path, "select 1")
    with pytest.raises(kind, match=said) as refused, query._refusing():
        raise error
    assert "O'Hara" not in str(refused.value)
    assert "column" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select pg_terminate_backend(pg_backend_pid()), pg_sleep(9)", "not quoted"),
        ("select person::integer from visits order by id", "not quoted"),
        # codes that hang on a row are not told apart
        ("select query_to_xml('select * from ' || person, true, true, '') from visits", "an error while it ran"),
    ],
)
def test_a_connection_that_is_lost_and_what_a_database_says_of_a_cell_are_one_line(server, query, said):
    with pytest.raises((PreconditionFailed, InvalidParameter), match=said) as refusal:
        on(server, query).cells()
    assert "P1" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__


NOT_SQL = "is no SQL that the database understands"
WRITES = ("does more than read, and is not run", "is more than one statement; write one statement", NOT_SQL)
WRONG = [
    ("select * from wisits", "names a table that is not there"),
    ("select ages from visits", "names a column that is not there"),
    ("select id from visits, visits as other", "names a column that two of its tables have"),
    ("select nosuch(id) from visits", "calls a function that is not there"),
    ("selec * from visits", NOT_SQL),
    ("select * from visits where", NOT_SQL),
    ("select 1; select 2", "is more than one statement; write one statement"),
    ("insert into visits (id) values (9)", WRITES[0]),
    ("drop table visits", WRITES[0]),
    ("insert into visits (id) values (9) returning id", *WRITES),
    ("delete from visits", *WRITES),
    ("create table other (id integer)", *WRITES),
    ("select 1; delete from visits", *WRITES),
    ("with gone as (delete from visits returning *) select * from gone", *WRITES),
]


@pytest.mark.default_cases(14)
@pytest.mark.parametrize(("query", "told"), [(query, told) for query, *told in WRONG], ids=[each[0] for each in WRONG])
def test_what_is_wrong_with_a_query_is_said_and_nothing_is_written(asked, query, told):
    for read in (asked(query).names, asked(query).cells):
        with pytest.raises(InvalidParameter) as refusal:
            read()
        assert str(refusal.value).startswith(tuple(f"the query of [data] private {each}" for each in told))
        assert "\n" not in str(refusal.value)
        assert refusal.value.__cause__ is None
        assert refusal.value.__suppress_context__
    assert asked("select * from visits").cells().height == 3


def test_what_one_may_not_read_is_said(server, tmp_path):
    server.sql("create role guest login")
    query = DatabaseQuery(f"postgresql://guest@/postgres?host={server.folder}", "table visits", "[data] x", tmp_path)
    with pytest.raises(InvalidParameter, match="reads what this user of the database may not"):
        query.names()


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path):
    (tmp_path / "clinic.db").write_text("id,ill\n" * 200)
    with pytest.raises(PreconditionFailed, match=r"clinic\.db, which is no SQLite database"):
        in_clinic(tmp_path, "select 1 from v").names()


def test_why_a_server_does_not_let_one_in_is_said(server, tmp_path, monkeypatch):
    server.sql("create role ann login password 'right'")
    rules = server.data / "pg_hba.conf"
    rules.write_text(f"local all ann scram-sha-256\n{rules.read_text()}")
    server.sql("select pg_reload_conf()")

    def told(url):
        with pytest.raises(PreconditionFailed) as refusal:
            DatabaseQuery(url, "select 1", "[data] private", tmp_path).names()
        return str(refusal.value).removeprefix("[data] private: the database cannot be reached: ")

    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    mine = f"postgresql://ann@/postgres?host={server.folder}"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with suppress(pytest.fail.Exception):  # until the server has read its rules again
            told(mine)
            break
    assert told(mine).startswith("the server asks for a password, and there is none")
    monkeypatch.setenv("PGPASSWORD", "wrong")
    assert told(mine).startswith("the server refuses the password")
    monkeypatch.delenv("PGPASSWORD")
    assert told(mine.replace("ann@", "nobody@")).startswith("the server has no such user or database")
    assert told(f"{mine}/none").startswith("no server answers at this socket")
    assert told("postgresql://ann@127.0.0.1:1/db").startswith("no server answers at this host and port")


def test_sqlite_attaches_and_changes_nothing(tmp_path):
    with clinic(tmp_path) as made:
        made.execute(MAKE)
    for query in (f"attach database '{tmp_path / 'new.db'}' as other", "pragma journal_mode = wal", "vacuum"):
        with pytest.raises(InvalidParameter):
            in_clinic(tmp_path, query).cells()
    assert not (tmp_path / "new.db").exists()


def test_values_that_python_has_no_form_for_stop_nothing(server):
    query = on(server, "select * from odd order by id")
    assert query.cells().rows() == [("1", "infinity", "true", "NaN", "{}"), ("2", "2024-03-01", None, "1.25", None)]
    assert query.table().dtypes == [pl.Int64, pl.String, pl.Boolean, pl.Float64, pl.String]


SECRETS = [
    "postgresql://ann:s3cret@host/db",
    "postgresql://ann@host/db?password=s3cret",
    "postgres://x:s3cret@[::1/db",
    "postgresql://ann:x#s3cret@host/db",  # urlsplit sees no password in these, and libpq, of most of them, does
    "postgresql://ann:x?s3cret@host/db",
    "postgresql://ann:x/s3cret@host/db",
    "postgresql://ann:5432/s3cret@host/db",
    "postgresql://ann:x@s3cret@host/db",
    "postgresql://:s3cret#@host/db",
    "postgresql://ann@host/db#x?password=s3cret",
    "postgresql://ann@host/db?sslp%61ssword=s3cret",
]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("key", "url"),
    [("public", "host=h user=ann password = s3cret dbname=clinic"), *(("private", url) for url in SECRETS)],
)
def test_a_password_in_the_settings_is_refused_and_not_shown(key, url, make_run, cli):
    query = {} if key == "public" else {"data.private_query": "select * from visits order by id"}
    code, out, err = cli("check", make_run(**{f"data.{key}": url, **query}))
    assert code == 2
    assert f"[data] {key} holds a password" in err.words
    assert "s3cret" not in out + err
    assert "s3cret" not in repr(DatabaseQuery("sqlite:///s3cret.db", "s3cret", "[data] private", Path()))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann@[::1]:5432/db?port=1",
        "postgres://host:5432/db",
        "sqlite:///C:/c.db",
        "postgresql://a%40b@h/db",
    ],
)
def test_a_colon_that_is_no_password_is_taken(url, tmp_path):
    assert DatabaseQuery(url, "select 1", "[data] private", tmp_path).url == url


def test_a_file_that_sqlite_does_not_open_is_one_line(make_run, cli, monkeypatch):
    root = make_run(**{"data.private": "sqlite:///private.csv", "data.private_query": "select * from v order by 1"})

    def refused(*_, **__):  # as to somebody without the permission; tests may run as root
        raise sqlite3.OperationalError("unable to open database file: cell")

    monkeypatch.setattr(sqlite3, "connect", refused)
    err = cli.refused(4, "check", root)
    assert err.startswith(f"quorate: [data] private: {root / 'private.csv'} cannot be opened as an SQLite database")
    assert "cell" not in err


def test_a_server_that_is_not_there_is_one_line(tmp_path):
    pytest.importorskip("psycopg")
    query = DatabaseQuery(f"postgresql://ann@/db?host={tmp_path}", "select 1", "[data] private", tmp_path)
    with pytest.raises(PreconditionFailed, match="cannot be reached"):
        query.names()


@pytest.mark.heavy
def test_a_query_is_told_of_as_a_query_and_not_as_a_file(make_run, cli):
    def said(verb, name, query, **how):
        root = make_run(name, **{**how, "data.private": "sqlite:///clinic.db", "data.private_query": query})
        with clinic(root) as made:
            made.execute("create table v (age integer, bmi real, ward text, ill text)")
            made.execute("insert into v values (40, 20.5, 'north', 'yes')")
        _, out, err = cli(verb, root)
        return " ".join((out + err).split())

    private = "quorate: the query of [data] private"
    assert f"{private}: it returns no row; at" in said("check", "a", "select * from v where age > 99 order by age")
    told = said("check", "b", "select age, bmi, ward from v order by age")
    has_none = private.replace("quorate: ", 'quorate: [data] label = "ill": ')
    assert f"{has_none} has no column 'ill'; its columns are 'age', 'bmi', 'ward'" in told
    told = said("check", "c", "select * from v order by age", **DIRECT)
    assert "Compare classes with column 'ill' of what your query returns before the run" in told


@pytest.mark.heavy
@pytest.mark.parametrize("how", [{}, {"data.unit": "patient_id"}, DIRECT], ids=["votes", "persons", "direct"])
def test_a_run_reads_all_tables_from_a_database_and_goes_on(how, make_run, cli):
    names, order = ("private", "public", "evaluation"), "" if "data.unit" in how else " order by rowid"
    queries = {f"data.{name}_query": f"select * from {name}{order}" for name in names}
    root = make_run(**{**how, **{f"data.{name}": "sqlite:///clinic.db" for name in names}, **queries})
    with clinic(root) as made:
        for name in names:
            rows = pl.read_csv(root / f"{name}.csv")
            made.execute(f"create table {name} ({', '.join(rows.columns)})")
            made.executemany(f"insert into {name} values ({', '.join('?' * rows.width)})", rows.rows())
            (root / f"{name}.csv").unlink()
    assert cli("check", root)[0] == 0
    assert "accuracy" in cli.ok("run", root)
    if "data.unit" in how:
        with clinic(root) as made:  # the same rows, somewhere else in the file
            made.execute("create table moved as select * from private order by age")
            made.execute("drop table private")
            made.execute("alter table moved rename to private")
    before = (root / "ledger.db").read_bytes()
    assert cli("run", root)[0] == 0
    assert (root / "ledger.db").read_bytes() == before

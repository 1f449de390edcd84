"""A run whose ledger is in PostgreSQL: two services on two copies of its folder answer from one budget."""

import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.ledger.postgres_server import running, why_not
from tests.service.conftest import rows, runs
from tests.service.processes import serving

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.batch import load_run
from quorate.folder.folder import RunFolder
from quorate.folder.methods import execute
from quorate.ledger import Budget, Ledger
from quorate.service import Client
from quorate.service.keys import KeyFile

KEPT = 12


@pytest.fixture(scope="module")
def server():
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def made(server, tmp_path_factory):
    """A finished run whose ledger is on the server; no test changes its folder."""
    root = runs.write_run(tmp_path_factory.mktemp("shared") / "run", **{"mechanism.online_answers": KEPT})
    url = server.url()
    (root / "ledger.url").write_text(f"{url}\n")
    execute(load_run(root), command="quorate run")
    return root, url


@pytest.fixture
def copied(made, tmp_path):
    return lambda name: shutil.copytree(made[0], tmp_path / name)


@pytest.mark.heavy
def test_a_run_with_a_url_keeps_nothing_but_the_key_in_its_folder(made, cli):
    root, url = made
    beside = {file.name for file in root.iterdir() if file.name.startswith("ledger")}
    assert beside == {"ledger.url", "ledger.db.key"}
    assert f"{KEPT} online answers" in cli("status", root)[1]
    for place in (root, url):
        code, out, _ = cli("ledger", "verify", place)
        assert (code, out.startswith("verified: ")) == (0, True)
    before = cli("ledger", "verify", root)[1]
    execute(load_run(root), command="quorate run")  # it is finished: charged once
    assert cli("ledger", "verify", root)[1] == before


@pytest.mark.heavy
def test_two_services_on_one_ledger_give_exactly_the_cap(made, tmp_path):
    token, _ = KeyFile(made[0] / "private").create("a test", ["ask", "read"])
    roots = [shutil.copytree(made[0], tmp_path / name) for name in ("one", "two")]
    points = rows(2 * KEPT)
    with serving(roots[0]) as one, serving(roots[1]) as two:
        urls = [f"http://127.0.0.1:{each.port}" for each in (one, two)]

        def ask(number):
            with Client(urls[number % 2], token) as client:
                label = client.label(points[number])
                return label.by, label.label

        with ThreadPoolExecutor(len(points)) as pool:
            told = list(pool.map(ask, range(len(points))))
        assert Counter(by for by, _ in told) == {"ensemble": KEPT, "student": KEPT}
        for url in urls:
            with Client(url, token) as client:
                again = client.label_many(points)
                assert client.answers_left == 0
            # What one of them answered, the other one tells, and charges nothing.
            assert [(each.by, each.label) for each in again] == told
        assert one.stop() == two.stop() == 0
    with Ledger(made[1]) as ledger:
        ledger.verify(prices=True)
        [reservation] = ledger.reservations()
        blocks = reservation.blocks("online answer")
        assert reservation.remaining("online answer") == 0
        assert sum(block.count for block in blocks) == KEPT
        assert {block.status for block in blocks} == {"stored"}
        assert len({entry.session for entry in ledger.entries() if entry.kind == "drawn"}) >= 3  # the run, and both


@pytest.mark.heavy
def test_a_folder_has_one_ledger(copied):
    root = copied("both")
    with Ledger(root.with_name("ledger.db"), budget=Budget(1.0, 1e-5)):
        pass
    for ending in ("", ".anchor"):
        root.with_name(f"ledger.db{ending}").rename(root / f"ledger.db{ending}")
    with pytest.raises(PreconditionFailed, match="a run has one ledger"):
        load_run(root)


@pytest.mark.parametrize("text", ["", "ledger.db", "postgresql://a\npostgresql://b"])
def test_what_is_no_url_is_refused(copied, text):
    root = copied("wrong")
    (root / "ledger.url").write_text(text)
    with pytest.raises(InvalidParameter, match="in one line"):
        load_run(root)


@pytest.mark.heavy
def test_where_a_run_has_results_a_missing_ledger_is_not_made_anew(copied, server, cli):
    root, elsewhere = copied("elsewhere"), server.url()
    (root / "ledger.url").write_text(elsewhere)
    for command in (("run", root), ("status", root), ("ledger", "show", root), ("serve", root)):
        code, _, said = cli(*command)
        assert code == 4, (command, said)
        assert "there is no ledger" in said
        assert len(said.strip().splitlines()) <= 3
    with pytest.raises(PreconditionFailed):
        Ledger(elsewhere)


def test_without_its_url_the_ledger_is_missed(copied, cli):
    root = copied("without")
    (root / "ledger.url").unlink()
    assert RunFolder(root).has_ledger
    code, _, said = cli("run", root)
    assert code == 5
    assert "are missing, but were there" in said

"""What somebody who may write to the ledger's folder can do by hand, and what of it is refused."""

import json
import sqlite3

import pytest
from tests.ledger.test_chain import resealed
from tests.ledger.test_sqlite import refused

from quorate.accounting import ApproxDP, Composed, DiscreteGaussian, DiscreteLaplace, PureDP, Repeated
from quorate.errors import LedgerIntegrityError, PreconditionFailed
from quorate.ledger import Budget, Ledger, ledger_files
from quorate.ledger.chain import read_line
from quorate.ledger.ledger_files import beside
from quorate.ledger.state import GENESIS, Head

BUDGET = Budget(1.0, 1e-5)


def anchor_of(head):
    """Both slots of an anchor, as whoever knows this package writes them by hand."""
    return 2 * ledger_files._slot(head)


GENESIS_ANCHOR = anchor_of(GENESIS)


def written(path, budget=BUDGET):
    """A closed ledger with most of its budget spent, standing alone: no run's folder, no key."""
    with Ledger(path, budget=budget) as ledger:
        delta = 1e-6 if budget.composition == "sum" else None
        ledger.reserve(Repeated(DiscreteGaussian(60.0, 1.0), 100), delta=delta, purposes={"label": 100}, key="labels")
        ledger.reserve(
            Composed((PureDP(0.125), DiscreteLaplace(20.0, 1.0))),
            delta=0.0 if budget.composition == "sum" else None,
            purposes={"evaluation": 1, "tuning": 1},
            key="evaluation",
            charged_to={"evaluation": 0, "tuning": 1},
        )
    return path


@pytest.fixture
def path(tmp_path):
    return written(tmp_path / "ledger.db")


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("left", ["nothing", "an empty file", "the ledger", "the first entry"])
def test_a_first_anchor_written_by_hand_resets_nothing(path, left):
    beside(path, ".anchor").write_bytes(GENESIS_ANCHOR)
    if left == "nothing":
        path.unlink()
    elif left == "an empty file":
        path.write_bytes(b"")
    elif left == "the first entry":
        edited(path, lambda entries: entries[:1], anchored=False)
    assert "the anchor was replaced" in str(refused(path))
    assert beside(path, ".anchor").read_bytes() == GENESIS_ANCHOR
    assert left != "nothing" or not path.exists()


def test_a_key_alone_tells_that_the_first_anchor_was_written_by_hand(path):
    beside(path, ".key").write_bytes(b"k" * 32)
    for ending in ("", ".lock"):
        beside(path, ending).unlink()
    beside(path, ".anchor").write_bytes(GENESIS_ANCHOR)
    assert "the anchor was replaced" in str(refused(path))


def edited(path, edit, *, anchored=True):
    """Rewrite a ledger as somebody can who knows this package: every hash right, and the anchor too."""
    connection = sqlite3.connect(path)
    lines = [row[0] for row in connection.execute("SELECT line FROM entry ORDER BY sequence")]
    sealed = resealed(edit([json.loads(line) for line in lines]))
    newest = read_line(sealed[-1])
    connection.execute("DELETE FROM entry")
    connection.executemany("INSERT INTO entry VALUES (?, ?)", enumerate(sealed, 1))
    connection.commit()
    connection.close()
    if anchored:
        beside(path, ".anchor").write_bytes(anchor_of(Head(sequence=newest.sequence, hash=newest.hash)))


def reserved(change, *, number=0):
    def edit(entries):
        charges = [entry for entry in entries if entry["kind"] == "reserved"]
        charges[number].update(change)
        return entries

    return edit


FORGED = {
    "a smaller epsilon": reserved({"amounts": {"delta_e18": 10**12, "epsilon_e9": 1, "rho_e9": 0}}),
    "a smaller delta": reserved({"amounts": {"delta_e18": 1, "epsilon_e9": 10**8, "rho_e9": 0}}),
    "an event of no known kind": reserved({"event": {"kind": "free"}}),
    "an event without a price": reserved({"event": {"kind": "approx_dp", "epsilon": 0.1, "delta": 0.5}}),
    "a part that pays and is not there": reserved({"paid_by": {"evaluation": 0, "tuning": 7}}, number=1),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("edit", FORGED.values(), ids=FORGED)
def test_a_charge_below_its_price_is_found_by_pricing_whoever_computed_the_hashes(path, edit):
    edited(path, edit)
    with Ledger(path) as ledger:
        ledger.verify()  # the chain is sound: no hash can tell
        with pytest.raises(LedgerIntegrityError, match=r"entry \d of the ledger (was charged less|cannot be priced)"):
            ledger.verify(prices=True)
        assert not ledger.healthy
        with pytest.raises(LedgerIntegrityError):
            _ = ledger.spent


def test_a_charge_below_its_price_is_found_under_zcdp(tmp_path):
    path = written(tmp_path / "ledger.db", Budget(1.0, 1e-5, composition="zcdp"))
    with Ledger(path) as ledger:
        ledger.verify(prices=True)
    edited(path, reserved({"amounts": {"delta_e18": 0, "epsilon_e9": 0, "rho_e9": 10}}))
    with Ledger(path) as ledger, pytest.raises(LedgerIntegrityError, match="was charged less"):
        ledger.verify(prices=True)


def test_an_honest_ledger_and_one_that_charged_more_are_priced_without_complaint(path):
    with Ledger(path) as ledger:
        ledger.reserve(
            ApproxDP(0.0625, 1e-7), delta=1e-7, epsilon=0.09, purposes={"label": 3}, key="more than it costs"
        )
        assert ledger.verify(prices=True) == ledger.head
        assert ledger.healthy


def test_what_no_price_and_no_hash_can_tell(path):
    """The limit that the documentation states: event and amount, or the budget, replaced together by other ones."""

    def enlarge(entries):
        entries[0]["budget"] = {"composition": "sum", "delta": 1e-5, "epsilon": 50.0}
        entries[0]["limit"] = {"delta_e18": 10**13, "epsilon_e9": 50 * 10**9, "rho_e9": 0}
        return entries

    edited(path, enlarge)
    with Ledger(path) as ledger:
        ledger.verify(prices=True)
        assert ledger.budget.epsilon == 50.0


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("budget", [None, BUDGET])
@pytest.mark.parametrize("target", ["ledger.db", "nowhere.db"])
def test_a_symbolic_link_is_no_name_of_a_ledger(path, budget, target):
    link = path.parent / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path.parent / target)
    with pytest.raises(PreconditionFailed, match=r"link\.db, is a symbolic link: .* give the path of the file itself"):
        Ledger(link, budget=budget)
    assert [file.name for file in link.parent.iterdir()] == ["link.db"]  # nothing was made beside it, nor where it led
    assert not (path.parent / "nowhere.db").exists()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("ending", [".anchor", ".anchor.tmp", ".lock", ".key", "-wal"])
def test_nothing_beside_a_ledger_may_be_a_symbolic_link(path, tmp_path, ending):
    other = tmp_path / "precious"
    other.write_bytes(beside(path, ending).read_bytes() if beside(path, ending).exists() else b"precious")
    content = other.read_bytes()
    beside(path, ending).unlink(missing_ok=True)
    beside(path, ending).symlink_to(other)
    with pytest.raises(PreconditionFailed, match=r"a file beside the ledger, .* is a symbolic link"):
        Ledger(path)
    assert other.read_bytes() == content


def test_a_link_that_appears_while_the_ledger_is_open_is_not_followed(path, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    content = beside(path, ".anchor").read_bytes()
    for ending in (".anchor", ".anchor.tmp"):
        ledger = Ledger(path)
        beside(path, ".anchor").unlink()
        beside(path, ending).symlink_to(precious)
        with pytest.raises(LedgerIntegrityError):
            ledger.set_quota(f"client{ending}", 1, "a trial")
        ledger.close()
        assert precious.read_text() == "precious"
        beside(path, ending).unlink()
        beside(path, ".anchor").write_bytes(content)


def test_a_hard_link_is_no_second_name_either(path):
    second = path.parent / "second.db"
    second.hardlink_to(path)
    for name in (path, second):
        with pytest.raises(PreconditionFailed, match="second name"):
            Ledger(name)
    second.unlink()
    with Ledger(path) as ledger:
        ledger.verify(prices=True)


def test_a_link_to_a_folder_above_it_is_the_same_ledger(path, tmp_path):
    (tmp_path / "link").symlink_to(path.parent)
    with Ledger(tmp_path / "link" / path.name) as ledger:
        head = ledger.head
        ledger.bind("a")
    with Ledger(path) as ledger:
        assert ledger.head.sequence == head.sequence + 2

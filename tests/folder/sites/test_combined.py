"""Votes of three sites: signed, verified, added up, released once; what is not as it should be is refused."""

import base64
import json
import math
import re
import tomllib

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, norm
from tests.folder.conftest import charges, edit

from quorate import load
from quorate.accounting import epsilon
from quorate.data import public_digest, read_data
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, SeededNoiseRefused
from quorate.export.check import check_export
from quorate.export.package import export_package
from quorate.findings import Outcome
from quorate.folder.published import read_facts
from quorate.folder.sites import combined
from quorate.folder.sites.signed_votes import MOST_SITES, MOST_TEACHERS, SignedVotes, Statement, new_key, sign, verified
from quorate.folder.votes_file import VotesFile
from quorate.mechanisms import SeveralVotesNoisyMax
from quorate.mechanisms.answers import half_lead
from quorate.noise.source import MAX_SCALE
from quorate.types import Secret

pytestmark = pytest.mark.mostly_heavy

M, CLASSES = 60, ("no", "yes")
SITES = ("north", "south", "west")
K = {"north": 80, "south": 50, "west": 120}
TIME = "2026-11-23T08:00:00Z"
PAIRS = {site: new_key() for site in SITES}
X = np.random.default_rng(2).normal(size=(M, 2))
YES = X[:, 0] > 0


def votes_of(site):
    right = np.random.default_rng(SITES.index(site)).binomial(K[site], 0.85, M)
    yes = np.where(YES, right, K[site] - right)
    return VotesFile(Secret(np.column_stack([K[site] - yes, yes]).astype(np.int64)), CLASSES, K[site])


def statement(root, site, /, **changes):
    said = {
        "site": site, "round": "2026-11", "unit": "patient", "neighbours": "add-remove-replace", "classes": CLASSES,
        "n_teachers": K[site], "time": TIME,
        "queries": public_digest(read_data(root / "public.csv").X),
    }  # fmt: skip
    return Statement(**{**said, **changes})


def hand_in(root, site, /, *, key=None, votes=None, **changes):
    votes = votes or votes_of(site)
    content = sign(votes, statement(root, site, **changes), key or PAIRS[site][0])
    (root / f"{site}.votes").write_bytes(content)


def write_toml(root, *, most=1, more=""):
    listed = "".join(
        f'[[sites]]\nname = "{site}"\nvotes = "{site}.votes"\nkey = "{PAIRS[site][1]}"\n' for site in SITES
    )
    (root / "quorate.toml").write_text(
        f"""
        [data]
        public = "public.csv"
        classes = ["no", "yes"]
        label = "ill"
        evaluation = "evaluation.csv"
        [budget]
        epsilon = 4.0
        delta = 1e-5
        [votes]
        round = "2026-11"
        unit = "patient"
        max_sites_per_unit = {most}
        promised_by = "the agreement of May"
        {more}
        {listed}
        """,
        encoding="utf-8",
    )


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "together"
    folder.mkdir()
    pl.DataFrame(X, schema=["a", "b"]).write_csv(folder / "public.csv")
    shown = np.random.default_rng(3).normal(size=(40, 2))
    answers = pl.Series("ill", np.where(shown[:, 0] > 0, "yes", "no").tolist())
    pl.DataFrame(shown, schema=["a", "b"]).with_columns(answers).write_csv(folder / "evaluation.csv")
    write_toml(folder)
    for site in SITES:
        hand_in(folder, site)
    return folder


def test_the_sum_of_the_votes_is_released_once_and_a_student_leaves(root, cli, tmp_path):
    made = combined.combine(root)
    expected = np.sum([votes_of(site).counts.reveal() for site in SITES], axis=0)
    assert np.array_equal(made.votes.counts.reveal(), expected)
    assert made.votes.n_teachers == 250
    shown = json.loads(cli.ok("votes", "combine", root, "--to", tmp_path / "outbox", "--json"))
    assert shown["epsilon"] <= 4.0
    assert shown["answered"] == M
    assert shown["accuracy"] > 0.7
    from quorate.deferred import skops

    student = skops.io.load(tmp_path / "outbox" / "student.skops")
    assert set(student.predict(read_data(root / "public.csv").X)) <= set(CLASSES)
    labels = (root / "public" / "labels.csv").read_text()
    said = cli.ok("votes", "combine", root)
    assert (root / "public" / "labels.csv").read_text() == labels
    assert charges(root) == 1
    assert "votes      250 teachers of 3 sites; one patient may be at 1 of them" in said
    assert "That no patient is at more was promised by the agreement of May" in said


@pytest.mark.parametrize(("most", "caveats"), [(1, 2), (2, 2), (3, 1)])
def test_the_price_and_the_caveats_follow_from_the_number_of_sites_of_a_unit(root, most, caveats):
    write_toml(root, most=most, more="[run]\nallow_hopeless = true")
    made = combined.combine(root)
    guarantee = combined.release_combined(root, made)[0].guarantee
    assert type(made.mechanism) is SeveralVotesNoisyMax
    moved = {1: 2, 2: 3, 3: 3}[most]
    assert made.mechanism.votes_per_unit == moved
    assert any(f"takes their place: {moved} votes" in said for said in guarantee.caveats) is (most < 3)
    alone = combined._mechanism(made.settings, made.votes)
    assert alone == made.mechanism
    assert len(guarantee.caveats) == caveats
    assert guarantee.epsilon <= 4.0
    assert "as the owner states" in guarantee.neighbours


def of_the_answers(before, after, sigma, eps):
    """Exact δ at `eps` of M answers alone, each whether half-lead plus noise is positive, both ways round.

    Answers of equal queries are exchangeable, so the number of "yes" tells all of them.
    """
    ones = np.arange(M + 1)
    one, other = (binom.pmf(ones, M, norm.cdf(lead / sigma)) for lead in (before, after))
    return float(max(np.maximum(0, p - math.exp(eps) * q).sum() for p, q in ((one, other), (other, one))))


def pair():
    """Half-leads of neighbours: a patient of north, and, in the same place of the other world, one of south.

    With its patient, north's teacher votes "no", and "yes" without; south's "yes" with its own, and "no" without.
    """
    leads = []
    for north, south in ((0, 0), (1, 1)):
        counts = np.array([[124, 124]])
        counts[0, north] += 1
        counts[0, south] += 1
        leads.append(int(half_lead(counts)[0]))
    return leads[0], leads[1]


@pytest.mark.quick
@pytest.mark.parametrize(("pricing", "covered"), [(None, True), (lambda n_sites, most: most, False)])
def test_a_patient_replaced_by_one_of_another_site_costs_what_is_claimed(root, pricing, covered, monkeypatch):
    """Both sites' teachers change; the cheat prices the sites that one patient may be at."""
    if pricing is not None:
        monkeypatch.setattr(combined, "votes_moved", pricing)
    write_toml(root, more="[run]\nallow_hopeless = true")
    mechanism = combined.combine(root).mechanism
    before, after = pair()
    assert (before, after) == (-1, 1)
    claimed = epsilon(mechanism.schedule(M), 1e-5)
    assert claimed <= 4.0
    assert (of_the_answers(before, after, mechanism.sigma, claimed) <= 1e-5) is covered


def wrapping(row):
    counts = np.tile(np.array([[0, 1]], dtype=np.int64), (M, 1))
    counts[0] = row
    return VotesFile(Secret(counts), CLASSES, 2**20)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("row", [[2**63 - 1, 2**63 - 1], [2**62, 2**62], [2**40, -(2**40)], [2**20 + 1, 0], [2**20, 1]])
def test_votes_whose_sum_wraps_are_refused_at_the_site_that_signed_them(root, row):
    hand_in(root, "north", votes=wrapping(row), n_teachers=2**20)
    with pytest.raises(DataRefused, match=r"north\.votes.*holds no votes of its teachers"):
        combined.combine(root)


@pytest.mark.parametrize("honest", [0, 1])
def test_no_vote_of_an_honest_site_decides_a_refusal(root, honest):
    """Two sites hand in the most that a file may hold; a sum out of range would tell the third one's vote."""
    for site in ("north", "west"):
        hand_in(root, site, votes=wrapping([2**20, 0]), n_teachers=2**20)
    hand_in(root, "south", votes=VotesFile(Secret(np.tile([[honest, 1 - honest]], (M, 1))), CLASSES, 1), n_teachers=1)
    made = combined.combine(root)
    assert made.votes.counts.reveal()[0].tolist() == [2**21 + honest, 1 - honest]
    assert combined.release_combined(root, made)[0].answers.asked == M
    assert MOST_SITES * MOST_TEACHERS <= MAX_SCALE  # what mechanisms refuse


@pytest.mark.quick
def test_more_sites_than_a_sum_has_room_for_are_refused(root):
    extra = "".join(f'[[sites]]\nname = "s{n}"\nvotes = "v"\nkey = "{PAIRS["north"][1]}"\n' for n in range(MOST_SITES))
    write_toml(root, more=extra)
    with pytest.raises(InvalidParameter, match="one release takes at most 1,024"):
        combined.combine(root)


@pytest.mark.parametrize("weak", [(), ("west",), SITES])
def test_the_guarantee_is_for_the_weakest_change_that_a_site_states(root, weak):
    for site in weak:
        hand_in(root, site, neighbours="replace")
    guarantee = combined.release_combined(root, combined.combine(root))[0].guarantee
    change = "replace one patient" if weak else "add, remove or replace one patient"
    assert guarantee.neighbours == f"{change}, as the owner states"
    said = [caveat for caveat in guarantee.caveats if "nobody comes or goes" in caveat]
    assert [each.partition(" ")[0] for each in said] == ([str(len(weak))] if weak else [])


@pytest.mark.quick
def test_another_change_and_a_file_of_another_form_are_refused(root):
    with pytest.raises(InvalidParameter, match="neighbours must be"):
        statement(root, "north", neighbours="replace-labels")
    path = root / "north.votes"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": "quorate votes of a site 1"}))
    with pytest.raises(DataRefused, match="is no file of signed votes; make one with: quorate votes sign"):
        combined.combine(root)


def rewritten(change):
    """What changes the content of a site's file, and signs nothing."""

    def rewrite(root):
        path = root / "south.votes"
        content = json.loads(path.read_bytes())
        change(content)
        path.write_text(json.dumps(content))

    return rewrite


def other_queries(root):
    pl.DataFrame(X[::-1].copy(), schema=["a", "b"]).write_csv(root / "public.csv")


FORGED = base64.b64encode(bytes(64)).decode()
TOO_MANY = VotesFile(Secret(np.full((M, 2), 40, dtype=np.int64)), CLASSES, K["south"])
YES_NO = ("yes", "no")
WRONG = {
    "altered": (rewritten(lambda content: content["counts"][0].reverse()), "not signed by the key"),
    "another signature": (rewritten(lambda content: content.update(signature=FORGED)), "not signed by the key"),
    "another's key": (lambda root: hand_in(root, "south", key=PAIRS["west"][0]), "not signed by the key"),
    "another's file": (
        lambda root: (root / "south.votes").write_bytes((root / "west.votes").read_bytes()),
        "not signed by the key",
    ),
    "another name": (lambda root: hand_in(root, "south", site="north"), "is signed for site 'north'"),
    "another round": (lambda root: hand_in(root, "south", round="2026-05"), "is for round '2026-05'"),
    "another unit": (lambda root: hand_in(root, "south", unit="visit"), "protects one visit"),
    "other queries": (other_queries, "is about other public rows"),
    "too many votes": (lambda root: hand_in(root, "south", votes=TOO_MANY), "holds no votes of its teachers"),
    "other classes": (
        lambda root: hand_in(root, "south", votes=VotesFile(votes_of("south").counts, YES_NO, 50), classes=YES_NO),
        r"other classes than \[data\] classes",
    ),
    "no file": (lambda root: (root / "south.votes").unlink(), "there is no file"),
    "no JSON": (lambda root: (root / "south.votes").write_text("votes"), "no file of signed votes"),
    "deep JSON": (lambda root: (root / "south.votes").write_text("[" * 100_000), "no file of signed votes"),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_not_a_sites_votes_for_this_release_is_refused_in_one_line(root, wrong, cli):
    spoil, said = WRONG[wrong]
    spoil(root)
    err = cli.refused(4, "votes", "combine", root)
    assert re.search(said, err)
    assert "nothing was charged" in err
    assert not (root / "ledger.db").exists()
    said = err.partition("nothing was charged")[0].replace(str(root), "").replace("2026", "")
    assert not re.search(r"\b(40|80|50|120)\b", said)


def test_an_older_file_put_back_is_refused(root, cli):
    old = (root / "south.votes").read_bytes()
    hand_in(root, "south", time="2026-11-24T08:00:00Z")
    combined.release_combined(root, combined.combine(root))
    (root / "south.votes").write_bytes(old)
    assert "an older file was put back" in cli.refused(4, "votes", "combine", root)
    hand_in(root, "south", time="2026-11-24T08:00:00Z", votes=votes_of("west"), n_teachers=K["west"])
    assert "differs from the file of the same time" in cli.refused(4, "votes", "combine", root)


def test_a_file_that_the_ledger_refused_was_not_taken(root, cli):
    """The newer file is other data, which the ledger refuses; the older one can then be put back."""
    taken = (root / "south.votes").read_bytes()
    combined.release_combined(root, combined.combine(root))
    hand_in(root, "south", time="2026-11-24T08:00:00Z", votes=votes_of("west"), n_teachers=K["west"])
    assert "nothing was charged" in cli.refused(4, "votes", "combine", root)
    (root / "south.votes").write_bytes(taken)
    cli.ok("votes", "combine", root)


def test_a_reviewer_gets_a_report_and_a_package_whose_check_passes(root, tmp_path):
    hand_in(root, "south", neighbours="replace")
    told, exported = combined.release_combined(root, combined.combine(root), to=tmp_path / "outbox")
    assert {path.name for path in exported} == {
        "facts.json", "guarantee.json", "labels.csv", "model_card.md", "report.html", "student.skops", "manifest.json",
    }  # fmt: skip
    facts = read_facts(root)
    assert facts == told
    assert (facts.setup.partition, facts.setup.n_teachers, facts.answers.answered) == ("sites", 250, M)
    assert facts.spending.of_run == pytest.approx(facts.guarantee.epsilon, abs=1e-9)
    outcomes = {check.code: str(check.outcome) for check in facts.checks}
    assert (outcomes["signatures"], outcomes["shards"], outcomes["seed"]) == ("passed", "not run", "passed")
    page = " ".join(re.sub(r"<[^>]+>", "", (root / "public" / "report.html").read_text()).split())
    assert "250 teachers; one patient of a site → exactly one teacher there; signed by each site" in page
    assert "Whoever adds up is trusted with the votes of every site" in page
    export_package(root, tmp_path / "out.zip", kind="tre")
    assert not [check for check in check_export(tmp_path / "out.zip").checks if check.outcome is Outcome.FAILED]
    opened = load(root)
    assert set(opened.predict(read_data(root / "public.csv").X)) <= set(CLASSES)
    with pytest.raises(PreconditionFailed, match="its votes were made elsewhere"):
        opened.ask(read_data(root / "public.csv").X)


def occupied(outbox):
    outbox.mkdir()
    (outbox / "notes.txt").write_text("mine")


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("occupy", [occupied, lambda outbox: outbox.symlink_to("nowhere")], ids=["folder", "link"])
def test_where_to_export_is_looked_at_before_anything_is_charged(root, tmp_path, occupy, cli):
    occupy(tmp_path / "outbox")
    for check in ([], ["--check"]):
        said = cli.refused(4, "votes", "combine", root, "--to", tmp_path / "outbox", *check)
        assert "name a new folder" in said
        assert "nothing was charged" in said
        assert not (root / "ledger.db").exists()


def test_what_is_in_the_way_of_an_export_after_the_charge_says_that_it_was_charged(root, tmp_path, cli, monkeypatch):
    fit = combined._taught

    def taught(*given):
        occupied(tmp_path / "outbox")
        return fit(*given)

    monkeypatch.setattr(combined, "_taught", taught)
    said = cli.refused(4, "votes", "combine", root, "--to", tmp_path / "outbox")
    assert "name a new folder" in said
    assert "the release was charged, once" in said
    assert "nothing was charged" not in said


def overwritten(path):
    path.write_text("row,label,status\n0,yes,answered\n")


def linked(path):
    path.unlink()
    path.symlink_to(path.parent.parent / "private" / "sites.json")


@pytest.mark.parametrize("alter", [overwritten, linked])
def test_labels_that_were_changed_on_disk_do_not_leave(root, tmp_path, alter, monkeypatch):
    """While the student is fitted, what was written is of no account; later, it is refused."""
    fit, labels = combined._taught, root / "public" / "labels.csv"
    made = combined.combine(root)
    combined.release_combined(root, made)
    released = labels.read_bytes()

    def taught(*given):
        alter(labels)
        return fit(*given)

    monkeypatch.setattr(combined, "_taught", taught)
    combined.release_combined(root, made, to=tmp_path / "outbox")
    assert (tmp_path / "outbox" / "labels.csv").read_bytes() == released
    assert labels.read_bytes() == released
    assert not labels.is_symlink()
    alter(labels)
    with pytest.raises(PreconditionFailed, match=r"quorate votes combine .* writes the public side anew"):
        combined.export_combined(root, tmp_path / "later")
    assert not (tmp_path / "later").exists()


def test_a_release_leaves_no_student_of_an_earlier_one_beside_it(root):
    share = "[run]\nallow_hopeless = true\nepsilon = 1.5\ndelta = 4e-6\n"
    for seed, side, other in (("", "public", "private"), ("unsafe_noise_seed = 1", "private", "public")) * 2:
        write_toml(root, more=share + seed)
        combined.release_combined(root, combined.combine(root))
        assert (root / side / "student.skops").exists()
        assert not (root / other / "student.skops").exists()


def test_evaluation_rows_are_read_by_the_rule_of_the_public_rows(root):
    """Dates are days for the student, and codes that only look like numbers are text in both tables."""
    days = [f"2026-01-{1 + row % 28:02}" for row in range(M)]
    codes = [f"{row % 3}{'A' if row == 0 else '1'}" for row in range(M)]
    pl.DataFrame(X, schema=["a", "b"]).with_columns(seen=pl.Series(days), ward=pl.Series(codes)).write_csv(
        root / "public.csv"
    )
    shown = pl.read_csv(root / "evaluation.csv")
    n = len(shown)
    shown.with_columns(seen=pl.Series(days[:n]), ward=pl.Series(["11"] * n)).select(
        "seen", "ill", "ward", "b", "a"
    ).write_csv(root / "evaluation.csv")
    for site in SITES:
        hand_in(root, site)
    found = combined.release_combined(root, combined.combine(root))[0].utility.student
    assert found.accuracy > 0.6


@pytest.mark.quick
def test_evaluation_rows_that_do_not_fit_are_seen_by_a_check(root, cli):
    shown = pl.read_csv(root / "evaluation.csv")
    shown.rename({"a": "other"}).write_csv(root / "evaluation.csv")
    assert "evaluation.csv" in cli.refused(4, "votes", "combine", root, "--check")
    shown.with_columns(ill=pl.lit("perhaps")).write_csv(root / "evaluation.csv")
    assert "column 'ill'" in cli.refused(4, "votes", "combine", root, "--check")


def signed_by_command(cli, root, *more, classes):
    """Each site's votes, signed as a site does it."""
    for site in SITES:
        (root / f"{site}.key").write_bytes(PAIRS[site][0])
        np.savetxt(root / f"{site}.csv", votes_of(site).counts.reveal(), "%d", ",", header=classes, comments="")
        cli.ok("votes", "sign", root / f"{site}.csv", "--site", site, "--key", root / f"{site}.key", "--queries",
               root / "public.csv", "--classes", classes, "--round", "2026-11", "--unit", "patient", "--neighbours",
               "replace", "--to", root / f"{site}.votes", *more)  # fmt: skip


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("declared", "typed"), [("[0, 1]", "0,1"), ('["0", "1"]', "0,1"), ("[false, true]", "false,true")]
)
def test_classes_that_are_no_texts_are_met_by_what_a_site_types(root, cli, declared, typed):
    edit(root, '["no", "yes"]', declared)
    edit(root, 'evaluation = "evaluation.csv"', "")
    signed_by_command(cli, root, classes=typed)
    document = tomllib.loads((root / "quorate.toml").read_text())
    assert combined.combine(root).votes.classes == tuple(document["data"]["classes"])


def test_a_column_of_labels_among_the_public_rows_is_left_out_by_sites_and_aggregator(root, cli):
    rows = pl.read_csv(root / "public.csv")
    rows.with_columns(ill=pl.Series(np.where(YES, "yes", "no").tolist())).write_csv(root / "public.csv")
    signed_by_command(cli, root, classes="no,yes")
    said = cli.refused(4, "votes", "combine", root, "--check")
    assert "without the column 'ill' (--label ill where it is there)" in said
    signed_by_command(cli, root, "--label", "ill", classes="no,yes")
    cli.ok("votes", "combine", root, "--check")


def test_corrected_votes_of_a_site_are_other_data_for_the_ledger(root, cli):
    combined.release_combined(root, combined.combine(root))
    corrected = votes_of("south").counts.reveal()[::-1].copy()
    hand_in(root, "south", time="2026-11-25T08:00:00Z", votes=VotesFile(Secret(corrected), CLASSES, K["south"]))
    assert "nothing was charged" in cli.refused(4, "votes", "combine", root)
    cli.ok("ledger", "open", root, "--same-release", "south had counted a day twice")
    cli.refused(3, "votes", "combine", root)  # nothing is left for them
    write_toml(root, more="[run]\nepsilon = 4.0\ndelta = 1e-5")
    edit(root, "[budget]\n        epsilon = 4.0\n        delta = 1e-5", "[budget]\nepsilon = 8.0\ndelta = 2e-5")
    cli.ok("ledger", "open", root, "--raise-budget", "for the corrected votes")
    cli.ok("votes", "combine", root)
    assert json.loads((root / "public" / "guarantee.json").read_text())["epsilon"] > 4.0


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda toml: toml.replace('name = "west"', 'name = "north"'), "the same name twice"),
        (lambda toml: toml.replace(PAIRS["west"][1], PAIRS["north"][1]), "the same key twice"),
        (lambda toml: toml.replace("west.votes", "./north.votes"), "the same file of votes twice"),
        (lambda toml: toml.replace("max_sites_per_unit = 1", ""), "max_sites_per_unit is required"),
        (lambda toml: toml.replace("max_sites_per_unit = 1", "max_sites_per_unit = 4"), "there are 3 sites"),
        (lambda toml: toml.replace("max_sites_per_unit = 1", "max_sites_per_unit = true"), "whole number"),
        (lambda toml: toml.replace('promised_by = "the agreement of May"', ""), "promised_by is required"),
        (lambda toml: toml.replace("ed25519:", "rsa:", 1), "must be its public key"),
        (lambda toml: toml.replace("round =", "rond ="), "did you mean"),
        (lambda toml: toml + "[teachers]\ncount = 3\n", "has no section"),
    ],
)
def test_wrong_settings_are_refused(root, change, said, cli):
    path = root / "quorate.toml"
    path.write_text(change(path.read_text()))
    assert said in cli.refused(2, "votes", "combine", root)


@pytest.mark.quick
def test_check_prices_and_charges_nothing(root, cli):
    said = cli.ok("votes", "combine", root, "--check")
    assert "ε = 4, δ = 1e-5 for any one patient" in said
    assert "Nothing was charged" in said
    assert not (root / "ledger.db").exists()


def test_seeded_noise_is_not_exported(root, tmp_path, cli):
    write_toml(root, more="[run]\nunsafe_noise_seed = 1")
    for check in (["--check"], []):
        said = cli.refused(4, "votes", "combine", root, *check, "--to", tmp_path / "outbox")
        assert ("it is not exported" in said, "nothing was charged" in said) == (True, True)
    assert not (root / "ledger.db").exists()
    assert combined.release_combined(root, combined.combine(root))[0].seeded
    assert "therefore not private" in (root / "public" / "report.html").read_text()
    with pytest.raises(SeededNoiseRefused):
        export_package(root, tmp_path / "out.zip", kind="tre")
    assert not (root / "public" / "student.skops").exists()
    with pytest.raises(SeededNoiseRefused):
        combined.export_combined(root, tmp_path / "outbox")
    assert not (tmp_path / "outbox").exists()


def test_no_vote_is_shown(root, cli):
    counts = votes_of("north").counts.reveal()
    counts[0] = (98_765, 1_235)
    hand_in(root, "north", votes=VotesFile(Secret(counts), CLASSES, 100_000), n_teachers=100_000)
    path = root / "north.votes"
    told = cli("votes", "verify", path, "--key", PAIRS["north"][1]), cli("votes", "combine", root)
    assert [code for code, *_ in told] == [0, 0]
    out = "".join(each for _, *streams in told for each in streams)
    for public in ("report.html", "model_card.md", "facts.json", "guarantee.json"):
        assert not any(each in (root / "public" / public).read_text() for each in ("98765", "98,765"))
    assert not any(each in out for each in ("98765", "98,765", "1235", "1,235"))
    found = verified(path.read_bytes(), PAIRS["north"][1], name="north.votes")
    assert isinstance(found, SignedVotes)
    assert "98765" not in repr(found)


@pytest.mark.quick
def test_a_site_makes_keys_signs_and_verifies_by_the_command_line(root, tmp_path, cli):
    site = tmp_path / "east"
    public = cli.ok("votes", "keys", "east", "--to", site).strip()
    assert (site / "east.key").stat().st_mode & 0o077 == 0
    cli.refused(4, "votes", "keys", "east", "--to", site)
    np.savetxt(site / "votes.csv", votes_of("west").counts.reveal(), "%d", ",", header="no,yes", comments="")
    asked = ("--site", "east", "--key", site / "east.key", "--queries", root / "public.csv", "--classes", "no,yes")
    asked += ("--neighbours", "replace")
    cli.ok("votes", "sign", site / "votes.csv", *asked, "--round", "r1", "--to", site / "east.votes")
    assert (site / "east.votes").stat().st_mode & 0o077 == 0
    said = json.loads(cli.ok("votes", "verify", site / "east.votes", "--key", public, "--json"))
    assert (said["site"], said["n_teachers"], said["n_queries"]) == ("east", 120, M)
    assert said["neighbours"] == "replace"
    cli.refused(4, "votes", "verify", site / "east.votes", "--key", PAIRS["west"][1])


@pytest.mark.quick
def test_a_changed_byte_anywhere_is_noticed():
    votes = VotesFile(Secret(np.array([[3, 1]])), CLASSES, 4)
    of = {"site": "north", "round": "r", "unit": "patient", "neighbours": "replace", "classes": CLASSES}
    said = Statement(**of, queries="ab", n_teachers=4, time=TIME)
    content = sign(votes, said, PAIRS["north"][0])
    assert verified(content, PAIRS["north"][1], name="f").statement == said
    rng = np.random.default_rng(1)
    for place in rng.choice(len(content) - 1, 200, replace=False).tolist():
        spoiled = bytearray(content)
        spoiled[place] ^= 1 << int(rng.integers(0, 7))
        try:
            found = verified(bytes(spoiled), PAIRS["north"][1], name="f")
        except (DataRefused, InvalidParameter):
            continue
        assert found.statement == said  # a blank between two values, or the like
        assert np.array_equal(found.votes.counts.reveal(), [[3, 1]])

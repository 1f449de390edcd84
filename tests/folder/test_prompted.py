"""Runs whose teachers are prompts: asked once, resumed, rehearsed before anything is paid, and nothing told."""

import json

import numpy as np
import polars as pl
import pytest
from tests.ensemble.teachers.prompted.stand_in import BAD, endpoint, send, well
from tests.folder.conftest import charges, edit, toml

from quorate import PrivateClassifier, PublicPool
from quorate.ensemble import ChatTeacher
from quorate.ensemble.teachers.prompted import endpoint as endpoint_module
from quorate.ensemble.teachers.prompted import teacher as teacher_module
from quorate.ensemble.teachers.prompted.teacher import ENDPOINT_IS_STATED, REHEARSED
from quorate.errors import PreconditionFailed, TeachersSilent, act
from quorate.folder.batch import load_run
from quorate.folder.methods import execute
from quorate.folder.paid_estimate import estimate_for_plan
from quorate.service.open_run import opened
from quorate.service.problems import Problem
from quorate.service.settings import ServiceSettings
from quorate.service.turns import Answered, LabelRequest
from quorate.students import PromptStudent
from quorate.voting import kept_votes

pytestmark = pytest.mark.mostly_heavy

K, N, M = 8, 96, 40
WORDS = {"no": ["dull", "bad", "slow"], "yes": ["good", "fun", "warm"]}


def notes(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.choice(["no", "yes"], n).tolist()
    return [f"{' '.join(rng.choice(WORDS[label], 2))} film {rng.integers(10**6)}" for label in labels], labels


PRIVATE, LABELS = notes(N, 1)
PUBLIC, TRUTH = notes(M, 2)


def requests_for_votes(there):
    """What was asked beside the public row of each block, which has no example, and the rehearsals."""
    return [each for each in there.asked if any(json.dumps(text) in json.dumps(each) for text in PRIVATE)]


@pytest.fixture
def there():
    with endpoint() as running:
        yield running


def write(root, url, **teachers):
    root.mkdir()
    pl.DataFrame({"review": PRIVATE, "liked": LABELS}).write_csv(root / "private.csv")
    pl.DataFrame({"review": PUBLIC}).write_csv(root / "public.csv")
    settings = {
        "data": {"private": "private.csv", "public": "public.csv", "label": "liked", "classes": ["no", "yes"],
                 "n_records": N},
        "budget": {"epsilon": 8.0, "delta": 1e-5},
        "teachers": {"endpoint": url, "model": "toy:8b", "count": K, "shots": 4, "timeout": 5.0, **teachers},
        "mechanism": {"queries": "all"},
        "run": {"n_jobs": 1, "allow_hopeless": True},
    }  # fmt: skip
    (root / "quorate.toml").write_text(toml(settings), encoding="utf-8")
    return root


def fitted(there):
    given = {"classes": ["no", "yes"], "epsilon": 8.0, "delta": 1e-5, "n_teachers": K, "allow_hopeless": True}
    clf = PrivateClassifier(ChatTeacher(there.url, "toy", shots=4), online_answers=2, n_jobs=1, **given)
    return clf.fit(pl.DataFrame({"review": PRIVATE}), LABELS, public=PublicPool(pl.DataFrame({"review": PUBLIC})))


@pytest.fixture
def impatient(monkeypatch):
    """Repeat at once what is repeated."""
    monkeypatch.setattr(endpoint_module, "_PAUSE", 0.0)
    monkeypatch.setattr(teacher_module, "PAUSES", (0.0, 0.0))


@pytest.mark.usefixtures("impatient")
def test_a_question_to_a_classifier_of_prompts_that_finds_the_endpoint_gone_costs_nothing_and_is_asked_again(there):
    """Else noise on no votes would be drawn, charged, and remembered as the answer."""
    clf = fitted(there)
    assert ENDPOINT_IS_STATED in clf.guarantee_.caveats
    assert len(requests_for_votes(there)) == K * M
    new = pl.DataFrame({"review": ["good fun film 5", "bad dull film 6"]})
    assert set(clf.predict(new)) <= {"no", "yes"}
    there.manner = BAD["always busy"]
    for _ in range(2):
        with pytest.raises(PreconditionFailed, match="has stopped answering") as refused:
            clf.ask(new)
        assert refused.value.charged == "nothing was charged"
    there.manner = well
    there.asked.clear()
    told = clf.ask(new)
    assert len(told) == 2
    assert clf.ask(new) == told  # from the memo, and both answers were left
    assert len(requests_for_votes(there)) == K * 2


def in_a_folder(root, url):
    """A finished run with answers kept back, and a table of a known and of a new row."""
    write(root, url, count=4)
    edit(root, 'queries = "all"', "queries = 20\nonline_answers = 2")
    execute(load_run(root), command="test")
    for name, row in (("new.csv", "good fun film 5"), ("other.csv", "dull bad film 6")):
        pl.DataFrame({"review": [row]}).write_csv(root / name)
    return root


@pytest.mark.usefixtures("impatient")
def test_a_service_and_the_command_line_draw_nothing_while_the_endpoint_is_gone(there, tmp_path, cli):
    root = in_a_folder(tmp_path / "run", there.url)
    first = cli.ok("ask", root, root / "new.csv")
    there.manner = BAD["always busy"]
    there.asked.clear()
    assert cli.ok("ask", root, root / "new.csv") == first  # what was answered is told
    assert there.asked == []
    assert "has stopped answering" in (said := cli.refused(4, "ask", root, root / "other.csv"))
    assert "nothing was charged" in said

    known, other = (LabelRequest("me", ((row,),)) for row in ("good fun film 5", "dull bad film 6"))
    with opened(root, ServiceSettings()) as served:
        before = served.answers.standing
        replies = served.answers.answer([other, known])
        assert isinstance(replies[0], Problem)
        assert (replies[0].code, replies[0].charged) == ("teachers-silent", False)
        assert isinstance(replies[1], Answered)
        assert served.answers.standing == before
        there.manner = well
        [reply] = served.answers.answer([other])
        assert isinstance(reply, Answered)
        assert reply.charged == 1


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("answers", [0, 12], ids=["at once", "on the way"])
def test_a_paid_estimate_draws_nothing_while_the_endpoint_is_gone(there, tmp_path, answers):
    root = write(tmp_path / "run", there.url, count=4)
    edit(root, "[run]", "[run]\nepsilon = 4.0")
    rehearsed, mend = len(there.asked), there.manner

    def dies(handler, said):
        (mend if len(there.asked) - rehearsed <= REHEARSED + answers else BAD["always busy"])(handler, said)

    there.manner = dies
    with act(), pytest.raises(TeachersSilent, match="has stopped answering") as refused:
        estimate_for_plan(root, spend=2.0)
    words = str(refused.value.charged)
    assert words.startswith("nothing was charged" if answers == 0 else "the estimate was charged, once")
    there.manner = well
    found = estimate_for_plan(root, spend=2.0)
    assert found.error < 1
    assert charges(root) == 1


def test_a_run_asks_once_and_publishes_nothing_of_it(there, tmp_path, cli):
    root = write(tmp_path / "run", there.url)
    cli.ok("run", root)
    assert len(requests_for_votes(there)) == K * M
    guarantee = json.loads((root / "public" / "guarantee.json").read_text())
    assert ENDPOINT_IS_STATED in guarantee["caveats"]
    public = b"".join(path.read_bytes() for path in (root / "public").iterdir() if path.suffix != ".skops")
    assert not any(text.encode() in public for text in PRIVATE)
    prompt = PromptStudent.load(root / "public" / "prompt.json")
    assert prompt.guarantee.epsilon == guarantee["epsilon"]
    assert {text for text, _ in prompt.examples} <= set(PUBLIC)
    asked = len(requests_for_votes(there))
    cli.ok("run", root)
    assert len(requests_for_votes(there)) == asked
    for path in (root / "private").glob("prompted-*.stage"):
        assert path.stat().st_mode & 0o077 == 0


def test_a_killed_run_goes_on_without_asking_again(there, tmp_path, monkeypatch, cli):
    monkeypatch.setattr(kept_votes, "PROMPTED_AT_ONCE", 10)
    root = write(tmp_path / "run", there.url)

    def killed(stage, done, total):
        if (stage, done) == ("votes", 3):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(load_run(root), command="test", watch=killed)
    before = len(requests_for_votes(there))
    assert before == 3 * M
    assert f"· votes: 3 of {K} teachers" in cli.ok("status", root)
    execute(load_run(root), command="test")
    assert len(requests_for_votes(there)) == K * M
    asked = [json.dumps(each, sort_keys=True) for each in requests_for_votes(there)]
    assert len(set(asked)) == len(asked)


def test_an_endpoint_that_dies_on_the_way_costs_nothing_and_the_run_goes_on(there, tmp_path, monkeypatch, impatient):
    monkeypatch.setattr(kept_votes, "PROMPTED_AT_ONCE", 10)
    root = write(tmp_path / "run", there.url)

    def dies(handler, said):
        (send(handler, b"", 503) if len(there.asked) > 120 else well(handler, said))

    there.manner = dies
    with pytest.raises(PreconditionFailed, match="has stopped answering"):
        execute(load_run(root), command="test")
    assert not (root / "ledger.db").exists() or not charges(root)
    there.manner = well
    there.asked.clear()
    execute(load_run(root), command="test")
    labels = pl.read_csv(root / "public" / "labels.csv")
    assert labels.height == M
    assert len(requests_for_votes(there)) < K * M - 80  # what was answered before is not asked again


@pytest.mark.parametrize("manner", ["refused", "an unknown class", "not JSON"])
def test_an_endpoint_of_no_use_is_found_out_before_anything_is_paid(there, tmp_path, manner, cli):
    root = write(tmp_path / "run", there.url)
    there.manner = BAD[manner]
    for command in ("check", "run"):
        said = cli.refused(4, command, root)
        assert "gave no class for 8 of 8 public rows" in said
        assert "nothing was charged" in said
    assert requests_for_votes(there) == []
    assert not (root / "ledger.db").exists()


@pytest.mark.quick
def test_check_says_how_often_the_endpoint_will_be_asked_and_that_prompts_show_little(there, tmp_path, cli):
    root = write(tmp_path / "run", there.url)
    assert N // K >= 2 * 4
    said = cli.ok("check", root).words
    assert f"{K * M} requests to {there.url}" in said
    assert requests_for_votes(there) == []
    assert "each prompt shows 4 of the about 12 rows of its shard" in said
    assert f"up to {K * 12 // 4} teachers would show as many each" in said
    assert f"Each further teacher is asked about {M} rows" in said
    edit(root, "shots = 4", 'shots = 4\nchoose = "similar"')
    said = cli.ok("check", root).words
    assert "each prompt shows" not in said  # all rows are looked through for similar ones


def test_votes_do_not_hang_on_blocks_or_connections(there, tmp_path):
    """The student's labels come from the same counts, however the requests were cut up."""
    seen = []
    for name, connections in (("one", 1), ("four", 4)):
        run = load_run(write(tmp_path / name, there.url, connections=connections))
        teacher = run.task.teacher
        voter = teacher.train(
            pl.DataFrame({"review": PRIVATE[:12]}), np.array([label == "yes" for label in LABELS[:12]]), 3
        )
        seen.append(voter.vote(pl.DataFrame({"review": PUBLIC})).tolist())
    assert seen[0] == seen[1]

"""``quorate ask``: a finished run answers from what it kept back, once for each row."""

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import entries

from quorate.folder import batch as module
from quorate.folder.published import read_facts
from quorate.ledger import Ledger
from quorate.run.stage_store import FolderStages
from quorate.voting import ask as asking
from quorate.voting.shard_rows import shards_to_train

pytestmark = pytest.mark.heavy


@pytest.fixture
def asked(finished_run):
    """A finished run with six answers kept back, and a file of five new rows beside it."""
    root = finished_run(m=60, **{"mechanism.online_answers": 6})
    pl.read_csv(root / "evaluation.csv").head(5).write_csv(root / "new.csv")  # with a label column, which is left out
    return root


def left(root):
    with Ledger(root / "ledger.db") as ledger:
        (reservation,) = ledger.reservations()
        return reservation.remaining("online answer")


def test_a_class_a_row_is_printed_and_charged_and_costs_nothing_a_second_time(asked, cli):
    code, out, said = cli("ask", asked, asked / "new.csv")
    assert (code, len(out.split())) == (0, 5)
    assert set(out.split()) <= {"no", "yes"}
    assert "1 answer left" in said
    assert cli.json("status", asked)["answers_left"] == 1
    first = cli.json("ask", asked, asked / "new.csv")
    assert (first["answers"], first["answers_left"], first["seeded"]) == (out.split(), 1, False)
    before = entries(asked)
    assert cli.json("ask", asked, asked / "new.csv") == first
    assert entries(asked) == before
    turned = pl.read_csv(asked / "new.csv").reverse()
    pl.concat([turned, turned]).write_csv(asked / "turned.csv")
    again = cli.json("ask", asked, asked / "turned.csv")
    assert again == {**first, "answers": first["answers"][::-1] * 2, "statuses": ["answered"] * 10}


def test_a_row_of_the_public_pool_has_its_label_already(asked, cli):
    labels = pl.read_csv(asked / "public" / "labels.csv")
    found = cli.json("ask", asked, asked / "public.csv")
    assert found["answers_left"] == 6
    assert [found["answers"][row] for row in labels["row"]] == labels["label"].to_list()


def test_when_fewer_answers_are_left_nothing_is_drawn(asked, cli):
    cli("ask", asked, asked / "new.csv")
    pl.read_csv(asked / "evaluation.csv").head(7).write_csv(asked / "more.csv")  # two new ones, one answer left
    code, out, said = cli("ask", asked, asked / "more.csv")
    assert (code, out) == (3, "")
    assert "2 of these rows are new, and 1 answers are left" in said
    assert "ask about 1 new rows at most" in said
    assert left(asked) == 1
    pl.read_csv(asked / "evaluation.csv").head(6).write_csv(asked / "more.csv")
    assert cli("ask", asked, asked / "more.csv")[0] == 0
    code, _, said = cli("ask", asked, asked / "new.csv")  # free for ever
    assert code == 0
    assert "these rows were answered before, and use no answer; " in said


def test_a_run_that_has_not_finished_is_not_asked(make_run, cli):
    root = make_run(m=60, **{"mechanism.online_answers": 6})
    code, out, said = cli("ask", root, root / "public.csv")
    assert (code, out) == (4, "")
    assert f"quorate run {root}" in said.words


def test_a_run_that_kept_nothing_back_is_not_asked(finished_run, cli):
    root = finished_run(m=60)
    pl.read_csv(root / "evaluation.csv").head(2).write_csv(root / "new.csv")
    assert "online_answers" in cli.refused(4, "ask", root, root / "new.csv")


@pytest.mark.parametrize(
    "content",
    [None, "age,bmi\n40,26.0\n", "age,bmi,ward\nold,26.0,north\n", "", "age,bmi,ward\n40,26.0,north\n41,27.0\n"],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_charged(asked, cli, content):
    before = entries(asked)
    if content is not None:
        (asked / "bad.csv").write_text(content)
    code, out, said = cli("ask", asked, asked / "bad.csv")
    assert (code, out) == (4, "")
    assert "Traceback" not in said
    assert entries(asked) == before


def test_changed_private_rows_are_refused(asked, cli):
    pl.read_csv(asked / "private.csv").head(399).write_csv(asked / "private.csv")
    assert cli("ask", asked, asked / "new.csv")[0] == 4


def test_a_seeded_run_says_so_with_every_answer(make_run, cli):
    root = make_run(m=60, **{"mechanism.online_answers": 6, "run.unsafe_noise_seed": 2})
    cli("run", root)
    _, out, said = cli("ask", root, root / "public.csv")
    assert len(out.split()) == 60
    assert "seeded noise: reproducible, therefore not private" in said.words
    assert cli.json("ask", root, root / "public.csv")["seeded"] is True


def test_teachers_that_were_not_kept_are_trained_again_and_vote_the_same(asked, cli, monkeypatch):
    seen = []
    real = asking.votes_of

    def overheard(*arguments, **how):
        votes = real(*arguments, **how)
        seen.append(votes.reveal().copy())
        return votes

    monkeypatch.setattr(asking, "votes_of", overheard)
    pl.read_csv(asked / "new.csv").head(2).write_csv(asked / "some.csv")
    kept = list((asked / "private").glob("teachers-*"))
    assert kept
    batch = module.load_run(asked)
    everything = batch.task.views.teacher(batch.task.inputs.public)
    before = real(batch.task, teachers_of(batch), everything).reveal()
    assert cli("ask", asked, asked / "some.csv")[0] == 0
    for path in kept:
        path.unlink()  # as where skops cannot write them
    batch = module.load_run(asked)
    np.testing.assert_array_equal(real(batch.task, teachers_of(batch), everything).reveal(), before)
    for path in (asked / "private").glob("teachers-*"):
        path.unlink()
    assert cli("ask", asked, asked / "new.csv")[0] == 0
    assert [len(votes) for votes in seen] == [2, 3]  # the new ones alone
    assert all(votes.sum(axis=1).max() <= 12 for votes in seen)


def test_a_question_that_was_answered_or_cannot_be_paid_for_needs_no_teacher(asked, cli, monkeypatch):
    first = cli.ok("ask", asked, asked / "new.csv")
    for path in (asked / "private").glob("teachers-*"):
        path.unlink()
    monkeypatch.setattr(module, "teachers", lambda *_, **__: pytest.fail("teachers are trained again"))
    assert cli("ask", asked, asked / "new.csv")[:2] == (0, first)
    assert cli("ask", asked, asked / "public.csv")[0] == 0
    pl.read_csv(asked / "evaluation.csv").slice(10, 5).write_csv(asked / "more.csv")
    assert cli("ask", asked, asked / "more.csv")[0] == 3
    assert left(asked) == 1
    monkeypatch.undo()
    pl.read_csv(asked / "evaluation.csv").slice(10, 1).write_csv(asked / "more.csv")
    assert cli("ask", asked, asked / "more.csv")[0] == 0


def teachers_of(batch):
    return module.teachers(
        batch.task,
        FolderStages(batch.folder.private),
        lambda stage, done, total: None,
        shards=shards_to_train(batch.task),
    )


def test_the_report_and_what_is_exported_tell_of_the_answers_since(asked, cli, tmp_path):
    def told():
        facts = read_facts(asked)
        return (
            facts.spending.answers_left,
            [part.asked for part in facts.spending.parts],
            facts.provenance.ledger_entries,
        )

    assert told()[:2] == (6, [60, 0])
    cli("ask", asked, asked / "new.csv")
    assert told()[:2] == (1, [60, 5])
    with Ledger(asked / "ledger.db") as ledger:
        assert told()[2] == ledger.head.sequence
    page = (asked / "public" / "report.html").read_text()
    assert "1 answer, already charged; " in (asked / "public" / "model_card.md").read_text()
    assert f"All {told()[2]} entries were read again" in page
    assert cli("export", asked, "--to", tmp_path / "outbox")[0] == 0
    before = page
    cli("ask", asked, asked / "new.csv")  # nothing is new, so nothing is said
    assert (asked / "public" / "report.html").read_text() == before


def test_a_report_that_somebody_changed_keeps_no_answer_back(asked, cli):
    (asked / "public" / "facts.json").write_text("{}")
    assert len(cli.ok("ask", asked, asked / "new.csv").split()) == 5
    assert (asked / "public" / "facts.json").read_text() == "{}"
    assert cli("report", asked)[0] == 4

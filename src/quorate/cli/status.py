"""``quorate status``: how far a run is and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from quorate.cli.options import as_json, print_json, run_folder


@click.command(name="status")
@run_folder
@as_json
def command(run: Path, as_json: bool) -> None:
    """Say how far RUN (default: here) is, what was spent and what is left."""
    found = read_status(run)
    if as_json:
        print_json(found)
        return
    click.echo(f"run        {found['run']}: {found['state']}")
    for name, done in found["stages"].items():
        stored = found["teachers_stored"] if name == "teachers" and not found["stages"]["votes"] else 0
        click.echo(f"  {'✓' if done else '·'} {name}{f': {stored:,} stored' if stored else ''}")
    if found["left"] is not None:
        from quorate.report.notation import at_least, at_most

        spent, left, budget = found["spent"], found["left"], found["budget"]
        over = left["epsilon"] if left["epsilon"] > 1e-6 * budget["epsilon"] else 0.0  # less is a rounding
        if found["answers_left"] is not None:
            click.echo(f"left       {found['answers_left']:,} online answers")
        click.echo(
            f"budget     ε {at_most(spent['epsilon'])} of {at_most(budget['epsilon'])} charged, {at_least(over)} left; "
            f"δ {at_most(spent['delta'])} of {at_most(budget['delta'])} charged"
        )
    click.echo(f"next       {found['next']}")


def read_status(run: Path) -> dict[str, Any]:
    """Read what is public about a run's progress: which stages are stored, and the ledger's totals."""
    from quorate.errors import LedgerBusy
    from quorate.release.claims import spent_of
    from quorate.run.folder import RunFolder
    from quorate.run.journey import CHUNK, FINISHED
    from quorate.run.settings import read_settings

    folder = RunFolder(run)
    settings = read_settings(folder.settings)
    spent = left = budget = answers_left = None
    labels = busy = False
    if folder.has_ledger:
        try:
            with folder.open_ledger() as ledger:
                budget = {"epsilon": ledger.budget.epsilon, "delta": ledger.budget.delta}
                charged = spent_of(ledger)
                spent = {"epsilon": charged[0], "delta": charged[1]}
                left = {
                    "epsilon": max(0.0, budget["epsilon"] - spent["epsilon"]),
                    "delta": max(0.0, budget["delta"] - spent["delta"]),
                }
                if ledger.reservations():
                    newest = ledger.reservations()[-1]
                    labels = newest.remaining("label") == 0
                    answers_left = newest.remaining("online answer") if "online answer" in newest.purposes else None
                    if not labels and (folder.private / f"{FINISHED}.stage").exists():  # a strategy has stopped
                        labels, answers_left = True, (answers_left or 0) + newest.remaining("label")
        except LedgerBusy:
            busy = True
    finished = (folder.public / "facts.json").exists()
    chunks = len(list(folder.private.glob("teachers-*.stage")))
    asked = settings.teachers.count
    stored = chunks * CHUNK if asked == "auto" else min(chunks * CHUNK, int(asked))
    votes = any((folder.private / f"{name}.stage").exists() for name in ("votes", "scores"))
    stages = {
        "teachers": votes or (asked != "auto" and stored == asked),
        "votes": votes,
        "labels": labels or finished,
        "student and report": finished,
    }
    begun = folder.has_ledger or chunks > 0 or any(stages.values())
    state = "running" if busy else "finished" if finished else "interrupted; it resumes" if begun else "not started"
    report = folder.public / "report.html"
    following = {
        "running": "wait for the process that holds the ledger",
        "finished": f"open {report}, or: quorate export {run} --to outbox"
        if report.exists()
        else f"quorate report {run} writes the report again, which is gone",
        "interrupted; it resumes": f"quorate run {run}",
        "not started": f"quorate check {run}",
    }[state]
    return {
        "run": str(run),
        "state": state,
        "seeded": settings.run.unsafe_noise_seed is not None,
        "stages": stages,
        "teachers_stored": stored,
        "budget": budget,
        "spent": spent,
        "left": left,
        "answers_left": answers_left,
        "next": following,
    }

"""``quorate status``: how far a run is and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.options import as_json, print_json, run_folder

if TYPE_CHECKING:
    from quorate.folder.status import AccountStatus, RunStatus


@click.command(name="status")
@run_folder
@as_json
def command(run: Path, as_json: bool) -> None:
    """Say how far RUN (default: here) is, what was spent and what is left."""
    from quorate.accounting.figures import at_least, at_most
    from quorate.folder.status import read_status
    from quorate.report import of_numbers
    from quorate.report.sentences import SEEDED, baseline, counted, raised, scored
    from quorate.report.spending import lost_in_words

    status = read_status(run)
    if as_json:
        print_json(status.tree())
        return
    click.echo(f"run        {status.run}: {status.in_words}")
    if not status.stages:
        click.echo("  · the method is chosen when the run begins")
    for name, done in status.stages.items():
        click.echo(f"  {'✓' if done else '·'} {name}{_partly(status, name)}")
    if (facts := status.facts) is not None:
        student, rounds = facts.utility.student, facts.rounds
        if rounds is None:
            click.echo(f"queries    {counted(facts.answers)}")
        else:
            lost = f", {rounds.interrupted:,} lost" if rounds.interrupted else ""
            click.echo(f"rounds     {rounds.stored:,} of {rounds.rounds:,} stored{lost}")
        scores = {
            "student": student and scored(student),
            "model": of_numbers.scored(facts),
            "baseline": baseline(facts, student),
        }
        for word, line in scores.items():
            if line is not None:
                click.echo(f"{word:<10} {line}")
    if status.account is not None:
        spent, budget = status.account.spent, status.account.budget
        if status.account.answers_left is not None:
            click.echo(f"left       {status.account.answers_left:,} online answers")
        click.echo(
            f"budget     ε {at_most(spent.epsilon)} of {at_most(budget.epsilon)} charged, "
            f"{at_least(status.account.usable_epsilon)} left; "
            f"δ {at_most(spent.delta)} of {at_most(budget.delta)} charged"
        )
        if (lost_words := lost_in_words(status.account.lost)) is not None:
            click.echo(f"lost       {lost_words}")
        if status.account.estimates:
            click.echo(f"estimate   {_estimates(status.account)}")
        for entry in status.account.raises:
            click.echo(f"raised     {raised(entry)}")
    if status.seeded:
        click.echo(f"guarantee  none: {SEEDED}")
    click.echo(f"next       {status.next_step}")


def _partly(status: RunStatus, stage: str) -> str:
    """Say how much of a stage is stored, or drawn, before it is whole."""
    drawn, reserved = (0, 0) if status.account is None else status.account.releases
    if stage in {"rounds", "labels", "noisy means", "answers"} and not status.stages[stage] and 0 < drawn < reserved:
        return f": {drawn:,} of {reserved:,} drawn"
    if status.stages.get("votes", True):
        return ""
    if stage == "teachers" and status.teachers_stored:
        # Parts are counted, and the last one may be smaller; how many teachers the recipe takes is not known here.
        return f": {'up to ' * (status.teachers is None)}{status.teachers_stored:,} stored"
    if stage == "votes" and status.votes_stored:
        of = "" if status.teachers is None else f" of {status.teachers:,}"
        return f": {status.votes_stored:,}{of} teacher{'s' * ((status.teachers or status.votes_stored) != 1)}"
    return ""


def _estimates(account: AccountStatus) -> str:
    """Say what `quorate plan --estimate` has charged; it is no part of the run, and the run may not have begun."""
    one = account.estimates == 1
    releases = f"{'one was' if one else f'{account.estimates:,} were'} released for quorate plan, and charged"
    return releases if account.run_charged else f"{releases}; the run itself has not begun"

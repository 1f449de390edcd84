"""``quorate ask``: the ensemble answers, from the answers kept back."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.options import as_json, print_json
from quorate.run.progress import progress


@click.command(name="ask")
@click.argument("run", type=click.Path(file_okay=False, path_type=Path))
@click.argument("rows", type=click.Path(path_type=Path))
@as_json
def command(run: Path, rows: Path, as_json: bool) -> None:
    """Ask the teachers of RUN about the rows of a file ROWS, and print a class a row, or "declined".

    Each new row is charged to the answers kept back; a row that was answered before gets the same answer and costs
    nothing. When fewer answers are left than there are new rows, or the mechanism is closed, nothing is asked (exit
    code 3). Where the mechanism closes on the way, the rows that follow are printed as "never asked".
    """
    from quorate.accounting.figures import several
    from quorate.folder import methods
    from quorate.run.cautions import ONE_ANSWER_IS_UNSURE

    lines: list[str] = []
    with progress(quiet=as_json) as watch:
        read = methods.read_run(run, try_models=False)
        reply = methods.ask(read, rows, watch=watch, tell=lines.append)
    seeded = read.settings.run.unsafe_noise_seed is not None
    if as_json:
        answers = {"answers": reply.answers, "statuses": reply.status, "answers_left": reply.left}
        print_json({**answers, "notes": lines, "seeded": seeded})
        return
    for answer, status in zip(reply.answers, reply.status, strict=True):
        click.echo(status if answer is None else answer)
    before = "these rows were answered before, and use no answer; " * (reply.new == 0)
    click.echo(f"{before}{several(reply.left, 'answer')} left", err=True)
    for line in lines:
        click.echo(f"note: {line}", err=True)
    for caution in read.cautions:
        if caution.code == ONE_ANSWER_IS_UNSURE:
            click.echo(f"caution: {caution.words}", err=True)
    if seeded:
        click.echo("seeded noise: reproducible, therefore not private, so no promise holds", err=True)

"""``quorate run``: the main job; started again after an interruption, it goes on from there."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from quorate.arguments import for_shell
from quorate.cli.options import as_json, run_folder, say_before
from quorate.cli.stopping import charged_as
from quorate.run.progress import PARTS, progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.folder.prepared import PreparedRun
    from quorate.folder.settings import Settings


@click.command(name="run")
@run_folder
@click.option(
    "--rehearse",
    is_flag=True,
    help="Before anything is charged, play the run on the labelled public rows of [data] evaluation; what is expected "
    "then stands beside what came.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Have the workers of this Dask scheduler (tls://host:port) train teachers, or add up rounds. Over [run] "
    "scheduler.",
)
@click.option("--plain-tcp", is_flag=True, help="Allow tcp:// to another machine, on a network that is yours alone.")
@click.option(
    "--shared-folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where private rows and teachers lie meanwhile, on storage that the workers share; by default RUN/private.",
)
@as_json
def command(
    run: Path, rehearse: bool, scheduler: str | None, plain_tcp: bool, shared_folder: Path | None, as_json: bool
) -> None:
    """Train the teachers of RUN (default: here), release private labels, fit the student, write the report.

    With [method] by = "direct" there are no teachers: noisy gradient rounds on the private rows give the model. Every
    stage is stored. Killed and started again, a run goes on from there; nothing is charged twice, and no label or round
    is drawn twice.
    """
    from quorate.deferred import load_ahead_of_skops
    from quorate.folder.settings import settings_of
    from quorate.folder.table_source import is_large

    written = settings_of(run)  # a wrong one is refused before what reads tables and trains models is loaded
    typed = {"scheduler": scheduler, "plain_tcp": plain_tcp or None, "shared_folder": shared_folder}
    options = {key: value for key, value in typed.items() if value is not None}
    settings = _with_scheduler(written, options)

    if settings.method.by == "auto":
        load_ahead_of_skops()
        from quorate.folder.planned import settings_to_run

        chosen = settings_to_run(written, before=None if as_json else say_before)
        settings = _with_scheduler(chosen, options)
    with progress(quiet=as_json) as watch:
        if watch is not None and is_large(settings.data.private):
            watch("private rows", 0, PARTS)  # before what reads them is loaded
        load_ahead_of_skops()

        from quorate.folder.methods import execute, read_run
        from quorate.folder.prepared import charged_so_far, outputs
        from quorate.folder.published import export_command
        from quorate.folder.status import stored_so_far
        from quorate.planning.planned_run import expected_score
        from quorate.report import Utility, render_text
        from quorate.run.cautions import rehearsal_caution

        command_line = _as_typed(run, options, rehearse=rehearse, as_json=as_json)
        stored = partial(_stored_and_next, partial(stored_so_far, run), command_line)
        read = None
        with charged_as(lambda: charged_so_far(run, read), stored=stored):
            read = read_run(run, settings=settings, watch=watch)
    with charged_as(lambda: charged_so_far(run, read), stored=stored):
        if not as_json:
            _say_cautions(read)
        expected = None
        if rehearse:
            expected, commonest = read.expected()
            doubt = rehearsal_caution(expected, commonest)
            if doubt.applies and not as_json:
                click.echo(f"caution: {doubt.words}", err=True)
        with progress(quiet=as_json) as watch:
            tell, command_ = None if as_json else say_before, f"quorate run {for_shell(run)}"
            extra = None if expected is None else Utility(expected=expected_score(expected))
            facts = execute(read, command=command_, watch=watch, extra=extra, tell=tell)
    if as_json:
        click.echo(json.dumps(json.loads(facts.to_json()), ensure_ascii=False, indent=2))
        return
    following = export_command(run, facts) or f"quorate status {for_shell(run)}"
    click.echo(render_text(facts, outputs=outputs(read.folder, next_command=following)))


def _say_cautions(read: PreparedRun) -> None:
    """Print why the run has its method, and what its owner should hear before the budget is spent."""
    from quorate.folder.methods import cautions_of

    if read.settings.choice is not None:
        for line in wrap(read.settings.choice.in_words, 80, subsequent_indent="        ", break_on_hyphens=False):
            click.echo(line)
    for caution in cautions_of(read):
        if caution.severity != "note":  # for before a choice: `check` says it
            click.echo(f"caution: {caution.words}", err=True)
    for note in read.promise_notes().reveal():  # on the owner's terminal alone
        click.echo(f"caution: {note.words}", err=True)


def _as_typed(run: Path, options: dict[str, Any], *, rehearse: bool, as_json: bool) -> str:
    """Return the command as it was typed."""
    flags = {"rehearse": rehearse, "json": as_json, **options}
    typed = [
        f"--{key.replace('_', '-')}" + ("" if value is True else f" {for_shell(value)}")
        for key, value in flags.items()
        if value is not False
    ]
    return " ".join(["quorate run", for_shell(run), *typed])


def _stored_and_next(look: Callable[[], str | None], command_line: str) -> str:
    """Say what a stop has stored, as `look` finds it, and what to type."""
    stored = look()
    if stored is None:
        return f"nothing of its teachers or coordinates is stored yet; type the same command again: {command_line}"
    return f"{stored}, and the same command goes on from there: {command_line}"


def _with_scheduler(settings: Settings, options: dict[str, Any]) -> Settings:
    """Let the options of this command go before what ``[run]`` says."""
    return replace(settings, run=replace(settings.run, **options))

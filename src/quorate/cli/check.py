"""``quorate check``: read the files and say what a run would do and cost."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.arguments import for_shell
from quorate.cli.options import GLOSSARY, as_json, print_json, run_folder, say_before
from quorate.errors import InvalidParameter


@click.command(name="check")
@run_folder
@click.option(
    "--rehearse/--no-rehearse",
    default=None,
    help="Whether to play the run on the labelled public rows of [data] evaluation, and say which accuracy to expect. "
    "By default it is, where there are enough and the models are quorate's own. Takes some seconds.",
)
@click.option(
    "--look",
    is_flag=True,
    help="Look at the private table too, for you alone: how many labels, ids and cells of each column can be used, and "
    "how its rows compare with the public ones. It is printed here and written nowhere, is outside the guarantee, and "
    "must not be reported.",
)
@as_json
def command(run: Path, rehearse: bool | None, look: bool, as_json: bool) -> None:
    """Read the files of RUN (default: here) and say what it would do and cost.

    No private row is learned from, nothing is drawn or charged. What is wrong with a table is told to its owner alone.
    """
    if look and as_json:
        raise InvalidParameter("--look is for your eyes alone, and --json is for programs; leave out one of the two")
    from quorate.folder.settings import settings_of

    settings = settings_of(run)  # a wrong one is refused before what reads tables and trains models is loaded

    from quorate.folder.methods import check, read_run
    from quorate.folder.prepared import was_charged
    from quorate.report.notation import under_label
    from quorate.run.progress import progress

    if settings.method.by == "auto":
        from quorate.folder.planned import settings_to_run

        settings = settings_to_run(settings, before=None if as_json else say_before)
    with progress(quiet=as_json) as watch:
        read = read_run(run, begin=False, settings=settings, watch=watch)
    done = was_charged(read)
    result = check(read, look=look, done=done)
    if rehearse or (rehearse is None and not done and read.can_be_rehearsed):
        result = result.expecting(*read.expected())
    elif rehearse is None and not done and (why := read.why_not_rehearsed) is not None:
        result = result.expecting_nothing(why)
    if as_json:
        print_json({**result.found, **({"finished": True} if done else {})})
        return
    if done:
        already = under_label(
            "",
            f"The run in {run} is finished, with these settings and files; quorate run {for_shell(run)} would charge "
            "nothing, and write its model and report again. What it was made from:",
            room=0,
        )
        click.echo("\n".join((*already, "")))
    click.echo(result.text())
    looked = result.look.reveal()  # printed as what it showed: for the owner alone
    first = "mend what the look shows, then " if looked is not None and looked.is_hopeless and not done else ""
    click.echo(
        f"\nNothing was charged. Next: {first}quorate {'status' if done else 'run'} {for_shell(run)}\n{GLOSSARY}"
    )

"""``quorate check``: read the files and say what a run would do and cost."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.options import as_json, print_json, run_folder


@click.command(name="check")
@run_folder
@as_json
def command(run: Path, as_json: bool) -> None:
    """Read the files of RUN (default: here) and say what it would do and cost.

    No private row is learned from, nothing is drawn or charged. What is wrong with a table is told to its owner alone.
    """
    from quorate.run.settings import settings_of

    settings = settings_of(run)  # a wrong one is refused before what reads tables and trains models is loaded

    from quorate.accounting.figures import plural
    from quorate.run.methods import METHODS

    method = METHODS[settings.method.by]
    read = method.read(run, begin=False, settings=settings)
    found = method.check(read)
    if as_json:
        print_json(found)
        return
    careful = any(caution["severity"] != "note" for caution in found["cautions"])
    click.echo("Everything fits, with caution. A run would" if careful else "Everything fits. A run would")
    for word, line in method.told(read, found):
        click.echo(f"  {word:<11}{line}")
    click.echo(f"  classes    {', '.join(str(each) for each in found['classes'])}")
    for sentence in found["why"]:
        click.echo(f"  why        {sentence}")
    if found["n_is_treated_as_public"]:
        units = plural(found["unit"])
        click.echo(
            f"  note       the number of {units} was read off {settings.data.private.name} and is treated as public; "
            "[data] n_records declares it"
        )
    if found.get("rows_are_treated_as_public"):
        click.echo(
            "  note       the number of private rows was read and is treated as public; [data] n_rows declares it"
        )
    for caution in found["cautions"]:
        click.echo(f"  {'note' if caution['severity'] == 'note' else 'caution':<11}{caution['message']}")
    for note in found["notes"]:
        click.echo(f"  note       {note['message']}")
    for private in method.private_notes(read).reveal():  # to the terminal, and into no JSON
        click.echo(f"  note       {private.words}")
    if found["seeded"]:
        click.echo(
            "  WARNING    seeded noise: reproducible, therefore not private, so no promise holds. Remove "
            "unsafe_noise_seed"
        )
    click.echo(f"\nNothing was charged. Next: quorate run {run}")

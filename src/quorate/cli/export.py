"""``quorate export``: what may leave the building."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.cli.options import as_json, print_json, run_folder


@click.command(name="export")
@run_folder
@click.option(
    "--to", "destination", type=click.Path(file_okay=False, path_type=Path), required=True, help="A new folder."
)
@as_json
def command(run: Path, destination: Path, as_json: bool) -> None:
    """Copy labels, student, guarantee and report of RUN into a new folder, with their SHA-256 sums.

    Only the public side is read. A run with seeded noise is refused.
    """
    from quorate.run.batch import export

    written = export(run, destination)
    if as_json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        click.echo(f"wrote {path}")

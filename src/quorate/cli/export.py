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
@click.option(
    "--unverified", is_flag=True, help="For a run of version 0.1, which noted no sums: take its files as they are."
)
@as_json
def command(run: Path, destination: Path, unverified: bool, as_json: bool) -> None:
    """Copy labels, student, guarantee and report of RUN into a new folder, with their SHA-256 sums.

    Each is compared with the sum that the run noted on its private side when it wrote it; a file that differs, or is a
    link, is refused. What else lies in public/ stays there. A run with seeded noise is refused.
    """
    from quorate.run.published import export, not_published

    left = not_published(run)
    written = export(run, destination, unverified=unverified)
    if as_json:
        print_json({"files": [str(path) for path in written], "left": left})
        return
    if left:
        click.echo(f"not copied, since this run did not publish it: {', '.join(map(repr, left))}", err=True)
    for path in written:
        click.echo(f"wrote {path}")

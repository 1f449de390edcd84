"""``quorate report``: the report again, public or internal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from quorate.cli.options import as_json, run_folder

if TYPE_CHECKING:
    from quorate.report.words import Language

LANGUAGES = ("en", "de", "fr")  # those of quorate.report.words, which takes long to load


@click.command(name="report")
@run_folder
@click.option(
    "--edition",
    type=click.Choice(["public", "internal"]),
    default="public",
    show_default=True,
    help="The internal edition shows margins and facts of single teachers: not for release.",
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    default="en",
    show_default=True,
    help="Of the first page and of the headings: English, German or French.",
)
@as_json
def command(run: Path, edition: Literal["public", "internal"], language: Language, as_json: bool) -> None:
    """Write the report of a finished RUN (default: here), or print its facts.

    The public edition goes to public/report.html, in another language to public/report.de.html or report.fr.html. The
    internal one goes to private/report-internal.html, readable by
    its owner alone; it reads the private rows again.
    """
    from quorate.folder.folder import RunFolder
    from quorate.folder.methods import internal_facts, read_run
    from quorate.folder.published import publish_files, read_facts
    from quorate.release.keys import write_atomically
    from quorate.report import render_html, render_json
    from quorate.report.words import REPORT_FILES
    from quorate.voting.method import with_later_raises

    facts, folder = read_facts(run), RunFolder(run)
    if folder.has_ledger:
        with folder.open_ledger() as ledger:
            facts = with_later_raises(facts, ledger)
    if as_json:
        click.echo(render_json(facts), nl=False)
        return
    if edition == "public":
        path = folder.public / REPORT_FILES[language]
        publish_files(folder, {path.name: render_html(facts, language=language).encode()})
    else:
        path = folder.private / REPORT_FILES[language].replace("report", "report-internal", 1)
        internal = internal_facts(read_run(run, try_models=False))
        page = render_html(facts, edition="internal", internal=internal, language=language)
        write_atomically(path, page.encode(), mode=0o600)
    click.echo(f"wrote {path}")

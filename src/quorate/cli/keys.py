"""``quorate keys``: who may ask a service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.arguments import for_shell
from quorate.cli.options import as_json, in_question, print_json, whole

if TYPE_CHECKING:
    from quorate.service.keys import Key, KeyFile

run_folder = click.argument("run", type=click.Path(file_okay=False, path_type=Path), callback=in_question)


@click.group(name="keys")
def command() -> None:
    """Create, list and revoke keys of the service of a run. A service that runs sees each change at once."""


@command.command(name="create")
@run_folder
@click.option("--name", required=True, help="Whose key it is.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="SCOPE",
    help="ask (for answers), read (budget, guarantee, page) or admin (metrics, and read); may be given again.",
)
@click.option("--days", type=whole, help="When it ends. [default: never]")
@click.option("--quota", type=whole, help="Answers that may be charged for it. [default: all]")
@as_json
def create(run: Path, name: str, scopes: tuple[str, ...], days: int | None, quota: int | None, as_json: bool) -> None:
    """Make a key and print it, this one time; its hash alone is kept."""
    token, key = _keys(run).create(name, scopes, days=days, quota=quota)
    if as_json:
        print_json({"key": token, **_public_fields(key)})
        return
    click.echo(token)
    click.echo(f"key {key.id} for {key.name}: {_line(key)}. It is shown this one time", err=True)


@command.command(name="list")
@run_folder
@as_json
def list_(run: Path, as_json: bool) -> None:
    """List all keys, ended ones included."""
    keys = _keys(run).keys()
    if as_json:
        print_json([_public_fields(key) for key in keys])
        return
    for key in keys:
        click.echo(f"{key.id}  {key.name}: {_line(key)}")
    if not keys:
        click.echo(f"no key yet; make one: quorate keys create {for_shell(run)} --name NAME --scope ask", err=True)


@command.command(name="revoke")
@run_folder
@click.argument("key")
@as_json
def revoke(run: Path, key: str, as_json: bool) -> None:
    """End KEY (its twelve digits), for ever."""
    ended = _keys(run).revoke(key)
    if as_json:
        print_json(_public_fields(ended))
        return
    click.echo(f"key {ended.id} of {ended.name} ended {ended.revoked}")


def _keys(run: Path) -> KeyFile:
    from quorate.folder.folder import RunFolder
    from quorate.service.keys import KeyFile

    return KeyFile(RunFolder(run).private)


def _public_fields(key: Key) -> dict[str, Any]:
    from dataclasses import asdict

    return {name: value for name, value in asdict(key).items() if name != "hash"}


def _line(key: Key) -> str:
    parts = [", ".join(key.scopes)]
    if key.quota is not None:
        parts.append(f"at most {key.quota:,} answers")
    parts.append(
        f"revoked {key.revoked}" if key.revoked else f"until {key.expires}" if key.expires else "without an end"
    )
    return "; ".join(parts)

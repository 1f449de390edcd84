"""``quorate ledger``: the record of what was spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.options import as_json, print_json
from quorate.errors import PreconditionFailed

if TYPE_CHECKING:
    from quorate.ledger import Ledger

place = click.argument("place", type=click.Path(path_type=Path), default=Path(), metavar="[RUN|LEDGER]")


@click.group(name="ledger")
def command() -> None:
    """Show or verify the record of what was spent. There is no reset."""


@command.command(name="show")
@place
@as_json
def show(place: Path, as_json: bool) -> None:
    """List the entries of a run's ledger, oldest first."""
    with opened(place) as ledger:
        entries = ledger.export()
        totals = {"budget": _budget(ledger), "spent": _spent(ledger)}
    if as_json:
        print_json({**totals, "entries": entries})
        return
    for entry in entries:
        click.echo(line_of(entry))
    click.echo(
        f"spent ε {totals['spent']['epsilon']:.6g} of {totals['budget']['epsilon']:g}, "
        f"δ {totals['spent']['delta']:.3g} of {totals['budget']['delta']:g}"
    )


@command.command(name="verify")
@place
@as_json
def verify(place: Path, as_json: bool) -> None:
    """Read every entry again, replay every rule, and compare with the anchor. Exit code 5 if anything is wrong."""
    with opened(place) as ledger:
        head = ledger.verify()
    if as_json:
        print_json({"verified": True, "entries": head.sequence, "head": head.hash})
        return
    click.echo(f"verified: {head.sequence} entries, head {head.hash}")


def opened(place: Path) -> Ledger:
    """Open the ledger of a run's folder, or the ledger file itself; a missing one is refused, never made."""
    from quorate.ledger import Ledger

    path = place / "ledger.db" if place.is_dir() else place
    if not path.exists() and not path.with_name(f"{path.name}.anchor").exists():
        raise PreconditionFailed(f"no ledger at {path}; a run opens one: quorate run")
    return Ledger(path)


def line_of(entry: dict[str, Any]) -> str:
    """One entry in one line."""
    shown = {
        key: value
        for key, value in entry.items()
        if key in {"purpose", "purposes", "first", "count", "reason", "client"}
    }
    facts = ", ".join(f"{key} {_short(value)}" for key, value in shown.items() if value is not None)
    return f"{entry['sequence']:>6}  {entry['time'][:19]}  {entry['kind']:<14} {facts}"


def _short(value: Any) -> str:
    return "+".join(f"{count} {name}" for name, count in value.items()) if isinstance(value, dict) else str(value)


def _budget(ledger: Ledger) -> dict[str, Any]:
    return {"epsilon": ledger.budget.epsilon, "delta": ledger.budget.delta, "composition": ledger.budget.composition}


def _spent(ledger: Ledger) -> dict[str, Any]:
    return {"epsilon": ledger.spent.epsilon, "delta": ledger.spent.delta, "rho": ledger.spent.rho}

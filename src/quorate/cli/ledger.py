"""``quorate ledger``: the record of what was spent."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.arguments import for_shell
from quorate.cli.options import as_json, number, print_json, run_folder, whole
from quorate.errors import InvalidParameter, LedgerIntegrityError, PreconditionFailed

if TYPE_CHECKING:
    from quorate.ledger import Head, Ledger, Receipt


class Place(click.Path):
    """A path; or the URL of a ledger, as the text that it is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Leave a URL alone."""
        from quorate.ledger.ledger import is_url

        return value if is_url(value) else super().convert(value, param, ctx)


place = click.argument("place", type=Place(path_type=Path), default=Path(), metavar="[RUN|LEDGER]")


@click.group(name="ledger")
def command() -> None:
    """Show, verify, export, open or close the record of what was spent; set quotas. There is no reset."""


@command.command(name="show")
@place
@as_json
def show(place: Path | str, as_json: bool) -> None:
    """List the entries of a run's ledger, oldest first."""
    from quorate.accounting.figures import at_most

    with opened(place) as ledger:
        entries = ledger.export()
        totals = _totals(ledger)
    if as_json:
        print_json({**totals, "entries": entries})
        return
    for entry in entries:
        click.echo(line_of(entry))
    click.echo(
        f"spent ε {at_most(totals['spent']['epsilon'], 6)} of {at_most(totals['budget']['epsilon'], 6)}, "
        f"δ {at_most(totals['spent']['delta'], 6)} of {at_most(totals['budget']['delta'], 6)}"
    )


@command.command(name="verify")
@place
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="An installed module that registers an event; none is taken from the folder that is verified.",
)
@click.option(
    "--receipt",
    "receipts",
    multiple=True,
    metavar="FILE|JSON",
    help="A receipt that a client kept: refused unless the ledger holds its entry. May be given several times.",
)
@as_json
def verify(place: Path | str, modules: tuple[str, ...], receipts: tuple[str, ...], as_json: bool) -> None:
    """Read every entry again, replay every rule, price every charge again, and compare with the anchor.

    Exit code 5 if anything is wrong. A run's ledger is also held against the newest entry noted on its private side. An
    event of one's own (register_event) has a price only where its module was imported: exit code 2 otherwise. Its rule
    is the ledger owner's statement, so import a copy that you have read.

    A receipt exposes a ledger that was put back to an older state together with its anchor. Whoever has no access to
    the ledger verifies the file that quorate ledger export wrote, in place of it.
    """
    from quorate.accounting.figures import several
    from quorate.ledger.pricing import priced_again
    from quorate.voting.models import import_events, nothing_from

    kept = _receipts(receipts)
    folder = Path() if isinstance(place, str) else place if place.is_dir() else place.parent
    with nothing_from(folder):
        for module in modules:
            import_events(module, audited=folder)
        head, charges = _verified(place, kept)
    if as_json:
        summary = {"verified": True, "entries": head.sequence, "head": head.hash, "charges_priced": charges}
        print_json({**summary, "receipts": len(kept)})
        return
    click.echo(f"verified: {several(head.sequence, 'entry')}, head {head.hash}; {priced_again(charges)}")
    if kept:
        click.echo(f"{several(len(kept), 'receipt')} checked: the ledger holds every entry that they name")


@command.command(name="receipt")
@place
def receipt(place: Path | str) -> None:
    """Print a receipt of the newest entry, for whoever is to be able to tell an older ledger from this one.

    It is a line of JSON without any data. quorate ledger verify --receipt checks it.
    """
    with opened(place) as ledger:
        click.echo(json.dumps(ledger.receipt().to_object()))


@command.command(name="export")
@place
@click.option("--to", type=click.Path(dir_okay=False, path_type=Path), help="A new file. [default: standard output]")
@as_json
def export(place: Path | str, to: Path | None, as_json: bool) -> None:
    """Write budget, spending and every entry as one JSON object."""
    from quorate.accounting.figures import several
    from quorate.release.keys import write_atomically

    with opened(place) as ledger:
        whole = {**_totals(ledger), "head": ledger.head.hash, "entries": ledger.export()}
    if to is None:
        print_json(whole)
        return
    if to.exists():
        raise PreconditionFailed(f"{to} exists already; choose a new file")
    write_atomically(to, (json.dumps(whole, ensure_ascii=False, indent=2) + "\n").encode())
    if as_json:
        print_json({"file": str(to), "entries": len(whole["entries"]), "head": whole["head"]})
        return
    click.echo(f"wrote {several(len(whole['entries']), 'entry')} to {to}")


@command.command(name="open")
@run_folder
@click.option("--same-release", metavar="REASON", help="The data were changed, and are the same release: one budget.")
@click.option("--raise-budget", metavar="REASON", help="Raise the budget to that of quorate.toml, which is larger.")
@click.option(
    "--epsilon", type=number, help="The larger ε, for votes made elsewhere: their folder has no quorate.toml."
)
@click.option("--delta", type=number, help="Likewise the δ. [default: as it is]")
@click.option("--votes", type=click.Path(path_type=Path), help="The changed file of votes, for votes made elsewhere.")
@click.option("--classes", help="Likewise every class there may be, with commas: no,yes")
@click.option("--n-teachers", type=whole, help="Likewise the number of teachers, where some abstain.")
@as_json
def open_(
    run: Path,
    same_release: str | None,
    raise_budget: str | None,
    epsilon: float | None,
    delta: float | None,
    votes: Path | None,
    classes: str | None,
    n_teachers: int | None,
    as_json: bool,
) -> None:
    """Open the ledger of RUN to changed data, or to a larger budget; the reason is recorded for ever.

    What was spent stays spent either way.
    """
    if (same_release is None) == (raise_budget is None):
        raise InvalidParameter("give one of --same-release REASON and --raise-budget REASON")
    from quorate.accounting.figures import at_most
    from quorate.folder.methods import changed_fingerprint, larger_budget

    if same_release is not None:
        _place_of(run)  # before the files are read, which takes its time
        fingerprint = changed_fingerprint(run, votes=votes, classes=classes, n_teachers=n_teachers)
        with opened(run) as ledger:
            ledger.same_release(fingerprint, same_release)
            done = f"recorded: the data of {run} are the same release, and charged to the same budget"
            _tell(ledger, done, as_json)
    elif raise_budget is not None:
        with opened(run) as ledger:
            budget = larger_budget(run, ledger.budget, epsilon=epsilon, delta=delta)
            ledger.raise_budget(budget, raise_budget)
            now = f"the budget is now ε = {at_most(budget.epsilon, 6)}, δ = {at_most(budget.delta, 6)}"
            _tell(ledger, f"recorded: {now}; every later report shows the raise and its reason", as_json)


@command.command(name="quota")
@place
@click.option("--client", help="Whose quota; without it, every client that has one is listed.")
@click.option("--answers", type=whole, help="The most answers that this client is ever given, those it has included.")
@click.option("--remove", is_flag=True, help="Take the quota away: the cap alone bounds this client.")
@click.option("--reason", help="Why; it is recorded.")
@as_json
def quota(
    place: Path | str, client: str | None, answers: int | None, remove: bool, reason: str | None, as_json: bool
) -> None:
    """Show the quotas of clients, or set one: the most answers that a client is given, below the cap of all.

    Quotas bound each client by itself. What all of them are given together never passes the cap.
    """
    changes = answers is not None or remove
    if changes and (client is None or reason is None or (answers is not None and remove)):
        raise InvalidParameter("to change a quota give --client NAME, --reason TEXT, and --answers N or --remove")
    with opened(place) as ledger:
        if client is not None and answers is not None and reason is not None:
            ledger.set_quota(client, answers, reason)
        elif client is not None and remove and reason is not None:
            ledger.remove_quota(client, reason)
        names = list(ledger.quotas) if client is None else [client]
        quotas = {name: ledger.quota(name) for name in names}
    rows = [
        {"client": name, "quota": its.answers, "drawn": its.drawn, "left": its.left} for name, its in quotas.items()
    ]
    if as_json:
        print_json({"quotas": rows})
        return
    if not rows:
        click.echo("no client has a quota: the cap alone bounds them")
    for row in rows:
        bound = "no quota" if row["quota"] is None else f"of {row['quota']:,} answers, {row['left']:,} left"
        click.echo(f"{row['client']}: {row['drawn']:,} drawn, {bound}")


@command.command(name="close")
@place
@click.option("--reason", required=True, help="Why the release ends; it is recorded.")
@as_json
def close(place: Path | str, reason: str, as_json: bool) -> None:
    """End the release: nothing more is charged to this ledger, for ever. Answers kept back may still be asked."""
    with opened(place) as ledger:
        ledger.close_release(reason)
        _tell(ledger, "recorded: the release is closed, nothing more is charged to it", as_json)


def _receipts(texts: tuple[str, ...]) -> list[Receipt]:
    from quorate.ledger.chain import read_receipts

    receipts: list[Receipt] = []
    for text in texts:
        name = text if len(text) <= 60 and text.isprintable() else f"of {len(text):,} characters"
        try:
            kept = text if text.lstrip().startswith(("{", "[")) else Path(text).read_text(encoding="utf-8")
        except (OSError, ValueError):  # no such file, no text, or nothing that a file could be called
            raise InvalidParameter(
                f"--receipt {name}: that is neither a receipt nor a file of receipts; give the JSON itself, "
                '{"sequence": NUMBER, "head_hash": 64 HEXADECIMAL DIGITS}, or a file that holds it'
            ) from None
        try:
            receipts += read_receipts(kept)
        except (InvalidParameter, RecursionError) as refusal:
            why = refusal if isinstance(refusal, InvalidParameter) else "it is nested too deep for a receipt"
            raise InvalidParameter(f"--receipt {name}: {why}") from None
    return receipts


def _verified(place: Path | str, receipts: list[Receipt]) -> tuple[Head, int]:
    """Verify a ledger, or an export of one; return its newest entry, and how many charges were priced again."""
    from quorate.ledger.chain import check_held
    from quorate.ledger.chain import verify as replay
    from quorate.ledger.pricing import check_prices

    if isinstance(place, Path) and _is_export(place):
        state = replay(_exported(place))
        check_prices(state)
        for receipt in receipts:
            check_held(state, receipt)
        return state.head, len(state.reservations)
    with opened(place) as ledger:
        for receipt in receipts:
            ledger.check_receipt(receipt)
        return ledger.verify(prices=True), len(ledger.reservations())


def _is_export(place: Path) -> bool:
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return file.read(1) == b"{"


def _exported(file: Path) -> list[Any]:
    try:
        whole = json.loads(file.read_text(encoding="utf-8"))
        entries, head = whole["entries"], whole["head"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise PreconditionFailed(f"{file} is no export of a ledger; quorate ledger export writes one") from None
    if not isinstance(entries, list) or not entries or not isinstance(entries[-1], dict):
        raise PreconditionFailed(f"{file} holds no entry; quorate ledger export writes all of them")
    if entries[-1].get("hash") != head:
        raise LedgerIntegrityError(f"{file} does not end at the head that it names: entries were cut off or added")
    return entries


def opened(place: Path | str) -> AbstractContextManager[Ledger]:
    """Open the ledger of a run's folder, or the ledger file itself; a missing one is refused, never made."""
    from quorate.folder.folder import RunFolder
    from quorate.ledger import Ledger

    if isinstance(place, str):
        return Ledger(place)
    path = _place_of(place)
    folder = RunFolder(path.parent)
    lost = path == folder.ledger and folder.has_ledger and not path.exists()
    return folder.open_ledger() if place.is_dir() or lost else Ledger(path)


def _place_of(place: Path) -> Path:
    from quorate.folder.folder import RunFolder

    path = place / "ledger.db" if place.is_dir() else place
    folder = RunFolder(path.parent)
    gone = path == folder.ledger and folder.has_ledger  # of a run that had one: opening it says that it was there
    if not (gone or path.exists() or path.is_symlink() or path.with_name(f"{path.name}.anchor").exists()):
        raise PreconditionFailed(f"there is no ledger at {path} yet; quorate run {for_shell(path.parent)} opens one")
    return path


def line_of(entry: dict[str, Any]) -> str:
    """One entry in one line."""
    keys = {"quota", "reason", "client"}
    fields = {key: value for key, value in entry.items() if key in keys}
    answers = _answers(entry)
    if answers:
        fields = {"by client": fields.pop("client", None), **fields}
    if entry.get("parts"):  # of several clients, whose requests share the block
        by_client = Counter[str]()
        for part in entry["parts"]:
            by_client[part["client"]] += part["count"]
        fields = {**fields, "by client": None, "for": dict(by_client)}
    if entry["kind"] == "budget raised":
        fields = {"to": f"ε {entry['budget']['epsilon']}, δ {entry['budget']['delta']}", **fields}
    if entry["kind"] == "quota set" and entry["quota"] is None:
        fields = {"quota": "none", **{key: value for key, value in fields.items() if key != "quota"}}
    for key, value in fields.items():
        if isinstance(value, dict):
            fields[key] = "+".join(f"{count} {name}" for name, count in value.items())
    said = (f"{key} {value}" for key, value in fields.items() if value is not None)
    facts = ", ".join([*answers, *said])
    return f"{entry['sequence']:>6}  {entry['time'][:19]}  {entry['kind']:<14} {facts}".rstrip()


def _answers(entry: dict[str, Any]) -> list[str]:
    """Return in words what was charged for, or drawn: "32 gradient rounds", or "gradient round 1"."""
    if entry["kind"] == "reserved":
        free = {"statement of coordinates": " (digests, which cost nothing)"}
        counts = [
            f"{n:,} {purpose if n == 1 else _plural(purpose)}{free.get(purpose, '')}"
            for purpose, n in entry["purposes"].items()
        ]
        return [f"for {' and '.join(counts)}"]
    if entry["kind"] != "drawn":
        return []
    purpose, first, count = entry["purpose"], entry["first"] + 1, entry["count"]
    if count == 1:
        return [f"{purpose} {first:,}"]
    return [f"{_plural(purpose)} {first:,} to {first + count - 1:,}"]


def _plural(purpose: str) -> str:
    """Return the plural of a purpose, such as "level of marginals"."""
    from quorate.accounting.figures import plural

    head, of, whose = purpose.partition(" of ")
    return f"{plural(head)}{of}{whose}"


def _tell(ledger: Ledger, done: str, as_json: bool) -> None:
    if as_json:
        print_json({**_totals(ledger), "entry": ledger.export()[-1]})
        return
    click.echo(done)


def _totals(ledger: Ledger) -> dict[str, Any]:
    budget, spent = ledger.budget, ledger.spent
    return {
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "composition": budget.composition},
        "spent": {"epsilon": spent.epsilon, "delta": spent.delta, "rho": spent.rho},
    }

"""``quorate learn``: a rule that people can read, from a table of which few rows are labelled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.options import as_json, number, print_json, whole

if TYPE_CHECKING:
    from quorate.learn.request import LearnCheck
    from quorate.learn.rule import PrivateCells


class Cut(click.ParamType[tuple[str, tuple[Any, ...]]]):
    """``COLUMN=VALUE,VALUE,…``: numbers, or texts."""

    name = "column=value,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the name and the values."""
        name, equals, listed = str(value).partition("=")
        values = [value_text.strip() for value_text in listed.split(",") if value_text.strip()]
        if not (name and equals and values):
            return self.fail(f"{value!r} is not COLUMN=VALUE,VALUE, such as age=30,40,50", param, ctx)
        try:
            return name, tuple(float(value_text) for value_text in values)
        except ValueError:
            return name, tuple(values)


class Domain(click.ParamType[tuple[str, Any]]):
    """``COLUMN=LOW..HIGH``, or ``COLUMN=VALUE,VALUE,…``."""

    name = "column=low..high"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the name, and the range or the values."""
        from quorate.learn.request import DeclaredDomain

        name, equals, said = str(value).partition("=")
        low, dots, high = said.partition("..")
        try:
            if name and equals and dots and float(low) < float(high):
                return name, DeclaredDomain(low=float(low), high=float(high))
        except ValueError:
            pass
        values = tuple(text.strip() for text in said.split(",") if text.strip())
        if dots or not (name and equals and values):
            return self.fail(f"{value!r} is not COLUMN=LOW..HIGH or COLUMN=VALUE,VALUE, such as age=0..120", param, ctx)
        return name, DeclaredDomain(values=values)


@click.command(name="learn")
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--label", required=True, metavar="COLUMN", help="Column of the labels; an empty cell is no label.")
@click.option(
    "--class",
    "classes",
    required=True,
    multiple=True,
    metavar="LABEL",
    help="Give two; the rule tells when a row is the second.",
)
@click.option(
    "--cut",
    "cuts",
    multiple=True,
    type=Cut(),
    metavar="COLUMN=VALUE,…",
    help="A column and its public cuts: increasing numbers, or texts. Give one for each column.",
)
@click.option(
    "--pool",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Public rows that tell the cuts of each --column.",
)
@click.option(
    "--column", "columns", multiple=True, metavar="COLUMN", help="A column that is cut at the quantiles of the --pool."
)
@click.option(
    "--domain",
    "domains",
    multiple=True,
    type=Domain(),
    metavar="COLUMN=LOW..HIGH",
    help="What a column can hold, or COLUMN=VALUE,VALUE,…; a cut that parts none of it is refused before it costs.",
)
@click.option("--levels", type=whole, default=16, show_default=True, help="Levels of such a column, at most.")
@click.option("--epsilon", required=True, type=number, help="What this may cost.")
@click.option(
    "--concept", default="rectangle", show_default=True, help="rectangle, stump; for one column interval, threshold."
)
@click.option(
    "--learner",
    default="whole-class",
    show_default=True,
    help="whole-class, or sanitized: it uses the rows without a label too.",
)
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Record of what was spent; by default it stands beside TABLE, as TABLE.ledger.db.",
)
@click.option("--budget", type=number, help="ε of a ledger that is new, where several fits are to share it.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("learned"),
    show_default=True,
    help="Folder for rule.json and report.html.",
)
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Do all that comes before the charge, and say what would be done; nothing is charged.",
)
@click.option("--unsafe-noise-seed", type=whole, help="For tests and demos: reproducible, therefore not private.")
@as_json
def command(
    table: Path, label: str, cuts: tuple[tuple[str, tuple[Any, ...]], ...], pool: Path | None,
    columns: tuple[str, ...], domains: tuple[tuple[str, Any], ...], levels: int, ledger: Path | None, out: Path,
    only_check: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Learn a rule from TABLE that may be published, and write it with its report.

    The columns are cut at public values, which you declare with --cut or which public rows tell (--pool, --column). The
    guarantee is for replacing one record; the number of rows, and which of them have a label, are public. The same
    command on the same table with the same ledger gives the same rule again, and costs nothing. The ledger and its key
    stand beside the table and stay with it; what is in --out may be published.
    """
    from quorate.errors import InvalidParameter, naming
    from quorate.learn.request import LearnRequest, refuse_other_rule
    from quorate.learn.rule import check_learn, learn, ledger_beside

    if bool(columns) != (pool is not None):
        raise InvalidParameter("--pool and --column go together: the one tells the cuts of the other")
    with naming({"X": table.name, "y": "--label"}), _advised():
        cells, known_cuts = _cells_and_cuts(table, label, cuts, pool, columns, domains, levels)
        ledger = ledger or ledger_beside(table)
        request = LearnRequest(table=table, label=label, cuts=known_cuts, ledger=ledger, **options)
        check = check_learn(request, cells)  # as much as a fit refuses, it refuses
        refuse_other_rule(request, out)
        if only_check:
            _checked(check, as_json=as_json)
            return
        learned = learn(request, cells)
        written = learned.write(out)
    if as_json:
        print_json(learned.tree())
        return
    for caution in (
        *learned.cautions,
        *(caution for caution in check.cautions if caution not in learned.cautions and caution.applies),
    ):
        click.echo(f"{'note' if caution.severity == 'note' else 'caution'}: {caution.words}", err=True)
    click.echo(f"{request.classes[1]} where {learned.rule}; otherwise {request.classes[0]}")
    click.echo(f"guarantee  {learned.guarantee}")
    for caveat in learned.guarantee.caveats:
        click.echo(f"caveat     {caveat}")
    for path in written:
        click.echo(f"wrote      {path}")
    click.echo(f"ledger     {ledger}")


@contextmanager
def _advised() -> Iterator[None]:
    """Have a refusal of the budget say what to do about it here: no command raises the budget of such a ledger."""
    from quorate.errors import BudgetExhausted

    try:
        yield
    except BudgetExhausted as refusal:
        advice = "give a smaller --epsilon; a larger budget is for a ledger that is new (--budget)"
        raise refusal.reworded(advice=advice) from None


def _cells_and_cuts(
    table: Path, label: str, cuts: tuple[tuple[str, tuple[Any, ...]], ...], pool: Path | None,
    columns: tuple[str, ...], domains: tuple[tuple[str, Any], ...], levels: int,
) -> tuple[PrivateCells, dict[str, Any]]:  # fmt: skip
    """Read the table, once its public cuts are known to be sound; return both."""
    from quorate.data import read_data
    from quorate.learn.request import gathered_cuts, pool_cuts, refuse_idle_cuts
    from quorate.learn.rule import PrivateCells

    declared, known = gathered_cuts(cuts, columns, domains)
    public = None if pool is None else read_data(pool).X
    if declared:
        refuse_idle_cuts(declared, known, public)
    cells = PrivateCells.read(table, label)
    of_pool = {} if pool is None else pool_cuts(public, columns, levels, cells.X)
    refuse_idle_cuts({**declared, **of_pool}, known, public)
    return cells, {**declared, **of_pool}


def _checked(check: LearnCheck, *, as_json: bool) -> None:
    if as_json:
        print_json(check.tree())
        return
    click.echo("Nothing is wrong. This would")
    for word, line in check.lines():
        click.echo(f"  {word:<9}{line}")
    click.echo("\nThe table, the cuts and the ledger were checked as for a fit. Nothing was charged.")

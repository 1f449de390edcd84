"""``quorate learn``: a rule that people can read, from a table of which few rows are labelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from quorate.cli.options import as_json, print_json


class Cut(click.ParamType[tuple[str, tuple[Any, ...]]]):
    """``COLUMN=VALUE,VALUE,…``: numbers, or texts."""

    name = "column=value,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the name and the values."""
        name, equals, listed = str(value).partition("=")
        values = [each.strip() for each in listed.split(",") if each.strip()]
        if not (name and equals and values):
            return self.fail(f"{value!r} is not COLUMN=VALUE,VALUE, such as age=30,40,50", param, ctx)
        try:
            return name, tuple(float(each) for each in values)
        except ValueError:
            return name, tuple(values)


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
@click.option("--levels", default=16, show_default=True, help="Levels of such a column, at most.")
@click.option("--epsilon", required=True, type=float, help="What this may cost.")
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
@click.option("--budget", type=float, help="ε of a ledger that is new, where several fits are to share it.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("learned"),
    show_default=True,
    help="Folder for rule.json and report.html.",
)
@click.option("--check", "only_check", is_flag=True, help="Say what would be done and cost; nothing is charged.")
@click.option("--unsafe-noise-seed", type=int, help="For tests and demos: reproducible, therefore not private.")
@as_json
def command(
    table: Path, label: str, classes: tuple[str, ...], cuts: tuple[tuple[str, tuple[Any, ...]], ...], pool: Path | None,
    columns: tuple[str, ...], levels: int, epsilon: float, concept: str, learner: str, ledger: Path | None,
    budget: float | None, out: Path, only_check: bool, unsafe_noise_seed: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Learn a rule from TABLE that may be published, and write it with its report.

    The columns are cut at public values, which you declare with --cut or which public rows tell (--pool, --column). The
    guarantee is for replacing one record; the number of rows, and which of them have a label, are public. The same
    command on the same table with the same ledger gives the same rule again, and costs nothing. The ledger and its key
    stand beside the table and stay with it; what is in --out may be published.
    """
    from quorate.errors import InvalidParameter
    from quorate.run.learned import LearnRequest, check_learn, learn, ledger_beside, pool_cuts

    if bool(columns) != (pool is not None):
        raise InvalidParameter("--pool and --column go together: the one tells the cuts of the other")
    told = pool_cuts(pool, columns, levels, private=table, label=label) if pool is not None else {}
    request = LearnRequest(
        table=table,
        label=label,
        classes=classes,
        cuts={**dict(cuts), **told},
        epsilon=epsilon,
        concept=concept,
        learner=learner,
        ledger=ledger or ledger_beside(table),
        budget=budget,
        unsafe_noise_seed=unsafe_noise_seed,
    )
    if only_check:
        _checked(*check_learn(request), as_json=as_json)
        return
    learned = learn(request)
    written = learned.write(out)
    if as_json:
        print_json(learned.tree())
        return
    for each in learned.cautions:
        click.echo(f"{'note' if each.severity == 'note' else 'caution'}: {each.words}", err=True)
    click.echo(f"{classes[1]} where {learned.rule}; otherwise {classes[0]}")
    click.echo(f"guarantee  {learned.guarantee}")
    for path in written:
        click.echo(f"wrote      {path}")
    click.echo(f"ledger     {request.ledger}")


def _checked(learner: Any, cautions: Any, n_rows: tuple[int, int], *, as_json: bool) -> None:
    said = [each.tree() for each in cautions if each.applies]
    name = type(learner).__name__
    if as_json:
        print_json(
            {
                "learner": name,
                "labelled": n_rows[0],
                "unlabelled": n_rows[1],
                "epsilon": learner.epsilon,
                "cautions": said,
            }
        )
        return
    click.echo(
        f"{name} would learn from {n_rows[0]:,} rows with a label and {n_rows[1]:,} without, at ε = {learner.epsilon:g}"
    )
    for each in said:
        click.echo(f"  {'note' if each['severity'] == 'note' else 'caution':<9}{each['message']}")
    click.echo("Nothing was charged.")

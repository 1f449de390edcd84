"""``quorate predict``: the published model over a table of any size."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from quorate.cli.options import Number, as_json, print_json
from quorate.run.progress import progress


@click.command(name="predict")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="A new .parquet or .csv file for the predictions."
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="A column of TABLE to write beside them, such as an id.")
@click.option(
    "--coverage",
    type=Number(),
    help="Write prediction sets too: a column in_set_CLASS for each class. Of rows drawn as those that "
    "calibrated the model, such as 0.9 have their class in the set. Of a number, the ends of an interval: columns "
    "lower and upper.",
)
@as_json
def command(run: Path, table: Path, out: Path, keep: tuple[str, ...], coverage: float | None, as_json: bool) -> None:
    """Predict the rows of TABLE by the published model of RUN, a run's folder or an exported one; free for ever.

    TABLE is a file with named columns (Parquet, Arrow, CSV), or a folder or a pattern (in quotes) of Parquet files,
    read some rows at a time. --out gets a class a row and, where the model has them, a probability of each class; or a
    number a row, where [data] target is one; in the order of the rows. Other columns than those of the model are not
    read. Nothing is written where a file lacks a column or cannot be read.
    """
    from quorate.accounting.figures import several
    from quorate.estimators.finished_run import load
    from quorate.estimators.predicted_table import predict_table

    finished = load(run)
    lines: list[str] = []
    ends = finished.facts().setup.target_range
    kind = "sets" if ends is None else "intervals"
    with progress(quiet=as_json) as watch:
        n_rows = predict_table(finished, table, out, keep=keep, coverage=coverage, watch=watch, tell=lines.append)
    seeded = finished.facts().seeded
    if as_json:
        promise = {} if coverage is None else {kind: asdict(finished.coverage_promise(coverage))}
        what = {"classes": finished.classes_.tolist()} if ends is None else {"target_range": list(ends)}
        print_json({"out": str(out), "rows": n_rows, **what, "notes": lines, "seeded": seeded, **promise})
        return
    click.echo(f"wrote {out} ({several(n_rows, 'row')})")
    if coverage is not None:
        click.echo(f"{kind}: {finished.coverage_promise(coverage)}")
    for line in lines:
        click.echo(f"note: {line}", err=True)
    if seeded:
        click.echo("seeded noise: reproducible, therefore not private, so no promise holds", err=True)

"""``quorate plan``: say what a budget would buy, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.options import GLOSSARY, as_json, number, print_json, run_folder, say_before, whole
from quorate.errors import PreconditionFailed, QuorateError

if TYPE_CHECKING:
    from quorate.folder.paid_estimate import PaidEstimate
    from quorate.planning.plan import Plan


FREE = "Nothing was charged, and the private file was not opened."


class Point(click.ParamType[tuple[float, float]]):
    """``ROWS:ACCURACY``."""

    name = "rows:accuracy"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the two numbers."""
        rows, colon, accuracy = str(value).partition(":")
        try:
            if colon:
                return float(rows), float(accuracy)
        except ValueError:
            pass
        return self.fail(f"{value!r} is not ROWS:ACCURACY, such as 50:0.8", param, ctx)


@click.command(name="plan")
@run_folder
@click.option(
    "--records", "n_records", type=whole, help="Number of private units, where quorate.toml has no n_records."
)
@click.option("--rows", "n_rows", type=whole, help="Number of private rows, where a unit has several.")
@click.option(
    "--curve", "learning_curve", type=Point(), multiple=True, metavar="ROWS:ACCURACY",
    help="A point of one teacher's learning curve, as you know it from elsewhere; give several. What is expected is "
    "then rehearsed with rules as hard as that.",
)  # fmt: skip
@click.option("--commonest", type=number, metavar="SHARE", help="Share of the commonest class, as you know it.")
@click.option(
    "--rehearse", type=click.Choice(["auto", "labels", "rules", "synthetic", "no"]), default="auto",
    help="Play the best rows on public rows: with the labels of [data] evaluation (auto, where there are some), or "
    "with labels of rules drawn at random, a guess about another task.",
)  # fmt: skip
@click.option(
    "--model", "models", multiple=True, metavar="NAME",
    help="A model of [teachers] model to compare as teachers, on labelled public rows; give several. By default trees, "
    "where [teachers] model is the default and columns are numbers and categories.",
)  # fmt: skip
@click.option(
    "--estimate",
    is_flag=True,
    help="Release how often teachers are wrong on private rows that are held out, and plan with that. This is charged "
    "to the run's ledger; say how much with --spend.",
)
@click.option("--spend", type=number, metavar="EPSILON", help="The ε that --estimate may take.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write one HTML page with pictures.")
@as_json
def command(
    run: Path,
    n_records: int | None,
    n_rows: int | None,
    learning_curve: tuple[tuple[float, float], ...],
    commonest: float | None,
    rehearse: Any,
    models: tuple[str, ...],
    estimate: bool,
    spend: float | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Compare what the budget of RUN (default: here) would buy: methods, mechanisms, teachers, queries.

    Reads quorate.toml and the public rows. The private file is never opened, and nothing is spent, unless --estimate
    asks for it. Where there are labelled public rows ([data] evaluation), the best rows are rehearsed on them, which
    takes up to half a minute, and with thousands of images a minute.
    """
    from quorate.folder.number_plan import plan_number
    from quorate.folder.planned import plan_folder, recommended
    from quorate.release.keys import file_to_write

    options = (n_records, n_rows, learning_curve, commonest, models, estimate, html, rehearse != "auto")
    if not any(options) and (of_number := plan_number(run)) is not None:
        print_json(of_number.tree()) if as_json else click.echo(f"{of_number}\n\n{FREE}")
        return

    if html is not None:
        file_to_write(html, "plan.html", charged="nothing was charged")  # before half a minute of rehearsing
    _one_source(estimate=estimate, spend=spend, typed_in=bool(learning_curve))
    known: dict[str, Any] = {"n_records": n_records, "n_rows": n_rows, "commonest": commonest}
    paid: PaidEstimate | None = None
    if estimate:
        from quorate.folder.paid_estimate import CHARGED, estimate_for_plan

        _goes_with_an_estimate(rehearse, models)
        _can_be_rehearsed(plan_folder(run, rehearse="no", **known))  # what is refused here is refused for nothing
        paid = estimate_for_plan(run, spend=spend)
    curve = learning_curve or None if paid is None else paid.curve
    before = None if as_json else say_before
    try:
        plan = plan_folder(run, learning_curve=curve, rehearse=rehearse, models=models or None, before=before, **known)
    except QuorateError as error:
        if paid is not None:
            error.charged = CHARGED
        raise
    if html is not None:
        from quorate.planning.page import plan_page

        html.write_text(plan_page(plan, paid="" if paid is None else str(paid)), encoding="utf-8")
    if as_json:
        print_json({**plan.tree(), **({} if paid is None else {"paid_estimate": paid.tree()})})
        return
    from quorate.planning.text import render_plan

    click.echo(render_plan(plan))
    if html is not None:
        click.echo(f"\nwrote {html}")
    click.echo(f"\n{paid or FREE}")
    click.echo(recommended(run, plan))
    click.echo(GLOSSARY)


def _one_source(*, estimate: bool, spend: float | None, typed_in: bool) -> None:
    """Refuse a price without an estimate, and a learning curve beside one."""
    if spend is not None and not estimate:
        raise click.UsageError("--spend says what --estimate may take; without --estimate a plan is free")
    if estimate and typed_in:
        raise click.UsageError("--curve and --estimate are two sources of the same figures; leave out one of them")


def _can_be_rehearsed(plan: Plan) -> None:
    """Refuse to pay for an estimate that no rules can be drawn for."""
    from quorate.run.pool_cautions import few_rows_caution

    few = few_rows_caution(
        plan.facts.n_public, plan.facts.n_classes, learns="a plan by --estimate is rehearsed with rules on them alone"
    )
    if few.applies:
        raise PreconditionFailed(few.words)


def _goes_with_an_estimate(rehearse: str, models: tuple[str, ...]) -> None:
    """Refuse what a plan by an estimate does not take, before the estimate is paid for."""
    if rehearse in ("labels", "no"):
        raise click.UsageError(
            f"--rehearse {rehearse} does not go with --estimate, which is rehearsed with rules as hard as it says; "
            "leave out one of them"
        )
    if models:
        raise click.UsageError(
            "--model compares teachers on labelled public rows, which a plan by --estimate does not rehearse on; leave "
            "out one of them"
        )

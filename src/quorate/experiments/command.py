"""``quorate reproduce``: the papers' experiments, with their figures beside ours."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from quorate.cli.options import NumberAbove, WholeAtLeast, as_json, print_json
from quorate.errors import InvalidParameter, QuorateWarning
from quorate.run.progress import progress

if TYPE_CHECKING:
    from quorate.experiments import Experiment

NAMES = ("table4", "margins", "mnist", "writers", "few-labels")
WITH_LINES = ("table4", "mnist", "writers")


@click.command(name="reproduce")
@click.argument("name", type=click.Choice(NAMES))
@click.option("--repeats", type=WholeAtLeast(min=1), help="Splits, each with noise of its own. [default: the name's]")
@click.option(
    "--data", multiple=True, help="A data set of table4: mushroom, a9a, imdb, imdb-5000, real-sim. Repeatable."
)
@click.option(
    "--epsilon",
    "epsilons",
    multiple=True,
    type=NumberAbove(min=0, min_open=True),
    help="A budget of table4, mnist or writers, in place of the name's. Repeatable.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="A line of table4, mnist or writers, by its name; the others are left out.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduced"),
    show_default=True,
    help="The folder for JSON, CSV, text and figures.",
)
@click.option(
    "--files",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of the larger data sets. [default: $QUORATE_DATA]",
)
@click.option(
    "--real-sim",
    "real_sim",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your copy of real-sim (LIBSVM collection).",
)
@click.option("--seed", type=WholeAtLeast(min=0), default=0, show_default=True, help="Of splits and noise.")
@as_json
def command(
    name: str,
    repeats: int | None,
    data: tuple[str, ...],
    epsilons: tuple[float, ...],
    methods: tuple[str, ...],
    out: Path,
    files: Path | None,
    real_sim: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Run one of the papers' experiments on public data, and print its figures beside ours.

    \b
    table4      accuracy of passive, active and our own recipes (LZCW21 Table 4)
    margins     how far teachers agree on Adult (LZCW21 Appendix E)
    mnist       digits: a student at ε up to 2 (PATE18), and direct methods
    writers     digits, where the unit is who wrote them: votes, direct methods
    few-labels  private learners that need few labels (BNS15, LWY25)
    """  # noqa: D301 - the backspace is click's word for lines that stay as they are
    if (data or real_sim) and name != "table4":
        raise InvalidParameter(f"--data and --real-sim choose the data sets of table4; {name} has its own")
    if (epsilons or methods) and name not in WITH_LINES:
        raise InvalidParameter(f"--epsilon and --method are for {', '.join(WITH_LINES)}; {name} has its own")
    chosen = (*data, "real-sim") if real_sim and "real-sim" not in data else data
    arguments: dict[str, object] = {} if repeats is None else {"repeats": repeats}
    if chosen:
        arguments["data"] = chosen
    if real_sim:
        arguments["real_sim_file"] = real_sim
    if files and name in WITH_LINES:
        arguments["files"] = files
    arguments |= {option: values for option, values in (("epsilons", epsilons), ("methods", methods)) if values}
    typed = ["quorate", "reproduce", name]
    typed += [f"--repeats={repeats}"] if repeats else []
    typed += [f"--data={table}" for table in data]
    typed += [f"--epsilon={epsilon:g}" for epsilon in epsilons] + [f"--method={method}" for method in methods]
    typed += [f"--seed={seed}"] if seed else []
    with progress(quiet=as_json) as watch:
        experiment = _run(name, {**arguments, "seed": seed, "command": shlex.join(typed), "watch": watch})
    paths = experiment.write(out)
    if as_json:
        print_json([row.tree() for row in experiment.rows])
        return
    click.echo(experiment.text())
    click.echo("written: " + ", ".join(str(path) for path in paths))


def _run(name: str, arguments: dict[str, object]) -> Experiment:
    from quorate import experiments

    reproduce = getattr(experiments, f"reproduce_{name.replace('-', '_')}")
    with warnings.catch_warnings():  # cautions are about a release; here all rows are public, and large ε are a column
        warnings.simplefilter("ignore", QuorateWarning)
        return cast("Experiment", reproduce(**arguments))

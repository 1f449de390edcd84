"""``quorate votes``: votes made elsewhere, released or analysed. No vote is ever printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from quorate.cli.mechanisms import fields_of, mechanism_class, mechanism_fields
from quorate.cli.options import as_json, number, print_json, whole
from quorate.cli.sites import combine, keys, sign, verify

if TYPE_CHECKING:
    from quorate.folder.votes_file import VotesFile
    from quorate.mechanisms import Mechanism

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(name="votes")
def command() -> None:
    """Release or analyse votes made elsewhere: counts, or one label per teacher and query; or votes of several sites.

    That each unit went to one teacher is then the owner's statement, and the guarantee says so.
    """


def votes_options(command: Command) -> Command:
    """What release and analyse have in common."""
    for option in reversed(
        [
            click.argument("file", type=click.Path(path_type=Path)),
            click.option("--classes", required=True, help="Every class there may be, with commas: no,yes"),
            click.option(
                "--kind",
                type=click.Choice(["auto", "counts", "labels"]),
                default="auto",
                show_default=True,
                help="One column per class, or one per teacher.",
            ),
            click.option("--n-teachers", type=whole, help="Number of teachers, where some abstain."),
            click.option(
                "--mechanism",
                default="GaussianNoisyMax",
                show_default=True,
                help="What answers: a name, or package.module:Class of your own.",
            ),
            mechanism_fields,
            click.option("--delta", type=number, required=True, help="δ of the whole release."),
            click.option(
                "--out",
                type=click.Path(file_okay=False, path_type=Path),
                required=True,
                help="A run folder: ledger, public and private side.",
            ),
        ]
    ):
        command = option(command)
    return command


@command.command(name="release")
@votes_options
@click.option("--epsilon", type=number, required=True, help="What a new ledger is opened with.")
@click.option("--unit", default="record", show_default=True, help="Whose data one teacher saw alone.")
@click.option(
    "--data-dependent",
    is_flag=True,
    help="Release the data-dependent ε too, with noise scaled to its smooth sensitivity, for its own price.",
)
@click.option(
    "--allow-hopeless", is_flag=True, help="Pay although the mechanism can answer nothing with so few teachers."
)
@click.option("--unsafe-noise-seed", type=whole, help="Reproducible noise, for tests: no privacy at all.")
@as_json
def release(
    file: Path,
    classes: str,
    kind: Literal["auto", "counts", "labels"],
    n_teachers: int | None,
    mechanism: str,
    given: tuple[str, ...],
    delta: float,
    out: Path,
    epsilon: float,
    unit: str,
    data_dependent: bool,
    allow_hopeless: bool,
    unsafe_noise_seed: int | None,
    as_json: bool,
) -> None:
    """Charge and release a label for every query of FILE; write labels and guarantee to the folder's public side."""
    from quorate.accounting.figures import several
    from quorate.folder.external_votes import release_votes, share_for_figure
    from quorate.ledger import Budget
    from quorate.release.target import floor_budget, noise_and_key
    from quorate.report.sentences import counted
    from quorate.voting.facts import answers_of

    votes = _read(file, classes, kind, n_teachers)
    epsilon, delta = floor_budget(epsilon, delta)
    sanitiser, *left = share_for_figure(epsilon, delta) if data_dependent else (None, epsilon, delta)
    done = release_votes(
        votes,
        _mechanism(mechanism, given, votes, *left),
        root=out,
        budget=Budget(epsilon, delta),
        delta=delta,
        noise=noise_and_key(unsafe_noise_seed)[0],
        unit=unit,
        sanitiser=sanitiser,
        allow_hopeless=allow_hopeless,
    )
    answers = answers_of(done.released, len(votes.classes))
    shown = {
        **answers.numbers,
        "n_teachers": votes.n_teachers,
        "epsilon": done.guarantee.epsilon,
        "delta": done.guarantee.delta,
        "sanitised_data_dependent_epsilon": done.sanitised_epsilon,
        "caveats": list(done.guarantee.caveats),
        "labels": str(out / "public" / "labels.csv"),
    }
    if as_json:
        print_json(shown)
        return
    click.echo(f"queries    {counted(answers)}; {several(votes.n_teachers, 'teacher')}")
    click.echo(f"guarantee  {done.guarantee}")
    for caveat in done.guarantee.caveats:
        click.echo(f"caveat     {caveat}")
    if done.sanitised_epsilon is not None:
        click.echo(f"described  data-dependent ε about {done.sanitised_epsilon:.3g}, released with noise; no guarantee")
    click.echo(f"labels     {shown['labels']}")


@command.command(name="analyse")
@votes_options
@as_json
def analyse(
    file: Path,
    classes: str,
    kind: Literal["auto", "counts", "labels"],
    n_teachers: int | None,
    mechanism: str,
    given: tuple[str, ...],
    delta: float,
    out: Path,
    as_json: bool,
) -> None:
    """Say what answering every query of FILE would cost; nothing is drawn or charged.

    The data-independent ε is printed. The data-dependent one is a secret: it goes to the folder's private side,
    readable by its owner alone.
    """
    from quorate.accounting.figures import at_most, several
    from quorate.folder.external_votes import data_dependent_epsilon, price_of, write_analysis
    from quorate.mechanisms import data_dependent_terms

    votes = _read(file, classes, kind, n_teachers)
    made = _mechanism(mechanism, given, votes, 1.0, delta)
    shown: dict[str, Any] = {
        "queries": votes.n_queries,
        "n_teachers": votes.n_teachers,
        "mechanism": mechanism,
        "delta": delta,
        "data_independent_epsilon": price_of(votes, made, delta),
        "analysis": None,
    }
    if data_dependent_terms(made) is not None:
        shown["analysis"] = str(write_analysis(out, data_dependent_epsilon(votes, made, delta)))
    if as_json:
        print_json(shown)
        return
    click.echo(f"queries    {votes.n_queries:,}, {several(votes.n_teachers, 'teacher')}")
    click.echo(
        f"guarantee  ε = {at_most(shown['data_independent_epsilon'])} at δ = {at_most(delta)}, "
        "if every query were answered"
    )
    if shown["analysis"]:
        click.echo(f"secret     the data-dependent figures are in {shown['analysis']}: not for release")


def _read(file: Path, classes: str, kind: Literal["auto", "counts", "labels"], n_teachers: int | None) -> VotesFile:
    from quorate.folder.votes_file import read_votes

    named = [each.strip() for each in classes.split(",")]
    return read_votes(file, classes=named, kind=kind, n_teachers=n_teachers)


def _mechanism(name: str, given: tuple[str, ...], votes: VotesFile, epsilon: float, delta: float) -> Mechanism:
    from quorate.mechanisms.schedule import mechanism_for

    return mechanism_for(
        mechanism_class(name),
        fields_of(given),
        n_classes=len(votes.classes),
        n_teachers=votes.n_teachers,
        answers=votes.n_queries,
        epsilon=epsilon,
        delta=delta,
    )


for _each in (keys, sign, verify, combine):
    command.add_command(_each)

"""``quorate votes``: votes made elsewhere or at several sites, released or analysed. No vote is ever printed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from quorate.arguments import for_shell
from quorate.cli.options import as_json, fields_of, mechanism_class, mechanism_fields, number, print_json, whole

if TYPE_CHECKING:
    from quorate.folder.sites.combined import Combined
    from quorate.folder.sites.signed_votes import SiteChange, Statement
    from quorate.folder.votes_file import VotesFile
    from quorate.mechanisms import Mechanism
    from quorate.report import Facts

_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command(name="keys")
@click.argument("site")
@click.option(
    "--to", "folder", type=click.Path(file_okay=False, path_type=Path), default=".", help="Where SITE.key is written."
)
def keys(site: str, folder: Path) -> None:
    """Make the pair of keys of SITE: SITE.key stays there and signs; what is printed is for the aggregator.

    The private key is not encrypted: its file is readable by its owner alone.
    """
    from quorate.errors import PreconditionFailed
    from quorate.folder.sites.signed_votes import new_key, word
    from quorate.release.keys import write_atomically

    path = folder / f"{word('SITE', site)}.key"
    if path.exists():
        raise PreconditionFailed(f"{path} exists already; another key would make every file that it signed worthless")
    private, public = new_key()
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, private, mode=0o600)
    click.echo(f"wrote {path}, which stays at the site", err=True)
    click.echo(public)


@click.command(name="sign")
@click.argument("file", type=_PATH)
@click.option("--site", required=True, help="Who signs.")
@click.option("--key", type=_PATH, required=True, help="The site's private key.")
@click.option("--queries", type=_PATH, required=True, help="The public rows that were voted on.")
@click.option("--label", help="Its column that is no feature, if it is there: the aggregator's [data] label.")
@click.option("--classes", required=True, help="Every class there may be, with commas: no,yes")
@click.option("--round", "round_", required=True, help="The word that all sites have agreed on for this release.")
@click.option("--unit", default="record", show_default=True, help="Whose data one teacher saw alone.")
@click.option(
    "--neighbours",
    type=click.Choice(["add-remove-replace", "replace"]),
    required=True,
    help="Which change of a unit changes one teacher alone: replace for a balanced partition, or K read from the data.",
)
@click.option(
    "--kind", type=click.Choice(["auto", "counts", "labels"]), default="auto", help="A column a class, or a teacher."
)
@click.option("--n-teachers", type=whole, help="Number of teachers, where some abstain.")
@click.option("--to", "signed", type=_PATH, required=True, help="The file that is handed over.")
def sign(
    site: str, key: Path, queries: Path, label: str | None, round_: str, unit: str, neighbours: SiteChange,
    signed: Path, **of_file: Any,
) -> None:  # fmt: skip
    """Sign the votes of FILE for an aggregator. The signed file holds votes: it is private, and not encrypted."""
    from quorate.errors import DataRefused, PreconditionFailed
    from quorate.folder.sites import signed_votes
    from quorate.release.keys import write_atomically

    if not key.exists():
        raise PreconditionFailed(f"there is no key {key}; make a pair with: quorate votes keys {for_shell(site)}")
    votes = _read(**of_file)
    rows = signed_votes.read_queries(queries, label=label)
    if rows.n != votes.n_queries:
        raise DataRefused(f"{of_file['file']} has not one row of votes for each row of {queries}")
    said = signed_votes.Statement(
        site=site,
        round=round_,
        unit=unit,
        neighbours=neighbours,
        classes=votes.classes,
        queries=rows.digest,
        n_teachers=votes.n_teachers,
        time=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    write_atomically(signed, signed_votes.sign(votes, said, key.read_bytes()), mode=0o600)
    click.echo(f"wrote {signed}: {_statement_line(said, votes.n_queries)}")


@click.command(name="verify")
@click.argument("signed", type=_PATH)
@click.option("--key", required=True, help="The site's public key: ed25519:...")
@as_json
def verify(signed: Path, key: str, as_json: bool) -> None:
    """Verify the signature of a site's file, and say what the site states."""
    from quorate.errors import PreconditionFailed
    from quorate.folder.sites.signed_votes import verified

    if not signed.exists():
        raise PreconditionFailed(f"there is no file {signed}")
    votes = verified(signed.read_bytes(), key, name=signed.name)
    said = votes.statement
    if as_json:
        statement = {
            name: getattr(said, name)
            for name in ("site", "round", "unit", "neighbours", "queries", "n_teachers", "time")
        }
        print_json({**statement, "classes": list(said.classes), "n_queries": votes.votes.n_queries})
        return
    click.echo(f"signed by the key given: {_statement_line(said, votes.votes.n_queries)}")


@click.command(name="combine")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--check", is_flag=True, help="Verify and price; release nothing.")
@click.option("--to", "outbox", type=click.Path(file_okay=False, path_type=Path), help="Export to a new folder, too.")
@as_json
def combine(folder: Path, check: bool, outbox: Path | None, as_json: bool) -> None:
    """Add up the votes of the sites that FOLDER/quorate.toml lists, release labels, and fit a student.

    Each file must be signed by its site's key, and be about the same public rows, classes, unit and round. The same
    votes are charged once.
    """
    from quorate.folder.sites import combined as sites

    combined = sites.combine(folder)
    if check and outbox is not None:
        sites.refuse_export(combined, outbox)
    done = None if check else sites.release_combined(folder, combined, to=outbox)
    if as_json:
        print_json({**_planned(combined), **({} if done is None else _released(*done))})
        return
    for word, line in [*_planned_lines(combined), *([] if done is None else _released_lines(*done))]:
        click.echo(f"{word:<10} {line}")
    if check:
        click.echo(f"\nNothing was charged. Next: quorate votes combine {for_shell(folder)}")


def _planned(combined: Combined) -> dict[str, Any]:
    from quorate.voting.method import mechanism_in_words

    return {
        "sites": [statement.site for statement in combined.statements],
        "n_teachers": combined.votes.n_teachers,
        "max_sites_per_unit": combined.settings.votes.max_sites_per_unit,
        "mechanism": mechanism_in_words(combined.mechanism),
    }


def _planned_lines(combined: Combined) -> list[tuple[str, str]]:
    from quorate.accounting.figures import at_most, several
    from quorate.voting.method import mechanism_in_words

    agreed, (epsilon, delta) = combined.settings.votes, combined.settings.share
    teachers = f"{several(combined.votes.n_teachers, 'teacher')} of {several(len(combined.statements), 'site')}"
    return [
        *(("site", _statement_line(statement, combined.votes.n_queries)) for statement in combined.statements),
        ("votes", f"{teachers}; one {agreed.unit} may be at {agreed.max_sites_per_unit} of them"),
        ("by", mechanism_in_words(combined.mechanism)),
        ("spend", f"ε = {at_most(epsilon, 6)}, δ = {at_most(delta, 6)} for any one {agreed.unit}"),
    ]


def _released(facts: Facts, exported: list[Path]) -> dict[str, Any]:
    from quorate.accounting.figures import as_printed

    student = facts.utility.student
    return {
        **facts.answers.numbers,
        "epsilon": as_printed(facts.guarantee.epsilon),
        "delta": as_printed(facts.guarantee.delta),
        "caveats": list(facts.guarantee.caveats),
        "accuracy": None if student is None else student.accuracy,
        "exported": [str(path) for path in exported],
    }


def _released_lines(facts: Facts, exported: list[Path]) -> list[tuple[str, str]]:
    from quorate.report.sentences import counted

    student = facts.utility.student
    lines = [("queries", counted(facts.answers)), ("guarantee", str(facts.guarantee))]
    lines += [("caveat", caveat) for caveat in facts.guarantee.caveats]
    if student is not None:
        lines.append(("student", f"accuracy {100 * student.accuracy:.1f} % on {student.n_rows:,} public rows"))
    return lines + [("wrote", str(path)) for path in exported]


def _statement_line(said: Statement, n_queries: int) -> str:
    from quorate.accounting.figures import several

    changes = {"add-remove-replace": "added, removed or replaced", "replace": "replaced"}[said.neighbours]
    return (
        f"{said.site}, {several(said.n_teachers, 'teacher')} on {n_queries:,} public rows, each {said.unit} "
        f"({changes}) in one teacher, round {said.round}, signed {said.time}"
    )


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
    mechanism: str, given: tuple[str, ...], delta: float, out: Path, epsilon: float, unit: str, data_dependent: bool,
    allow_hopeless: bool, unsafe_noise_seed: int | None, as_json: bool, **of_file: Any,
) -> None:  # fmt: skip
    """Charge and release a label for every query of FILE; write labels and guarantee to the folder's public side."""
    from quorate.accounting.figures import as_printed, several
    from quorate.folder.external_votes import release_votes, share_for_figure
    from quorate.ledger import Budget
    from quorate.release.charge import floor_budget, noise_and_key
    from quorate.report.sentences import counted
    from quorate.voting.method import answers_of

    votes = _read(**of_file)
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
    summary = {
        **answers.numbers,
        "n_teachers": votes.n_teachers,
        "epsilon": as_printed(done.guarantee.epsilon),
        "delta": as_printed(done.guarantee.delta),
        "sanitised_data_dependent_epsilon": done.sanitised_epsilon,
        "caveats": list(done.guarantee.caveats),
        "labels": str(out / "public" / "labels.csv"),
    }
    if as_json:
        print_json(summary)
        return
    click.echo(f"queries    {counted(answers)}; {several(votes.n_teachers, 'teacher')}")
    click.echo(f"guarantee  {done.guarantee}")
    for caveat in done.guarantee.caveats:
        click.echo(f"caveat     {caveat}")
    if done.sanitised_epsilon is not None:
        click.echo(f"described  data-dependent ε about {done.sanitised_epsilon:.3g}, released with noise; no guarantee")
    click.echo(f"labels     {summary['labels']}")


@command.command(name="analyse")
@votes_options
@as_json
def analyse(mechanism: str, given: tuple[str, ...], delta: float, out: Path, as_json: bool, **of_file: Any) -> None:
    """Say what answering every query of FILE would cost; nothing is drawn or charged.

    The data-independent ε is printed. The data-dependent one is a secret: it goes to the folder's private side,
    readable by its owner alone.
    """
    from quorate.accounting.figures import at_most, several
    from quorate.folder.external_votes import data_dependent_epsilon, price_of, write_analysis
    from quorate.mechanisms import data_dependent_terms

    votes = _read(**of_file)
    mechanism_ = _mechanism(mechanism, given, votes, 1.0, delta)
    summary: dict[str, Any] = {
        "queries": votes.n_queries,
        "n_teachers": votes.n_teachers,
        "mechanism": mechanism,
        "delta": delta,
        "data_independent_epsilon": price_of(votes, mechanism_, delta),
        "analysis": None,
    }
    if data_dependent_terms(mechanism_) is not None:
        summary["analysis"] = str(write_analysis(out, data_dependent_epsilon(votes, mechanism_, delta)))
    if as_json:
        print_json(summary)
        return
    click.echo(f"queries    {votes.n_queries:,}, {several(votes.n_teachers, 'teacher')}")
    click.echo(
        f"guarantee  ε = {at_most(summary['data_independent_epsilon'])} at δ = {at_most(delta)}, "
        "if every query were answered"
    )
    if summary["analysis"]:
        click.echo(f"secret     the data-dependent figures are in {summary['analysis']}: not for release")


def _read(file: Path, classes: str, kind: Literal["auto", "counts", "labels"], n_teachers: int | None) -> VotesFile:
    from quorate.folder.votes_file import read_votes

    named = [name.strip() for name in classes.split(",")]
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

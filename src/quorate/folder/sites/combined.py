"""Votes of several sites, verified and added up, and what is released of them.

Whoever adds up sees each site's votes, which are private; so does whoever reads the files on their way. What protects
units is the noise on what is released.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from quorate.accounting import epsilon as price
from quorate.accounting.figures import several
from quorate.arguments import for_shell, shown
from quorate.data import PublicPool, check_classes, encode_labels, match_columns, read_data
from quorate.data.columns import text_columns
from quorate.errors import DataRefused, PreconditionFailed, SeededNoiseRefused
from quorate.findings import Finding, Outcome
from quorate.folder.external_votes import VotesReleased, release_votes
from quorate.folder.folder import RunFolder
from quorate.folder.labelled_rows import Evaluation
from quorate.folder.prepared import publish_run
from quorate.folder.published import published_files, refuse_filled, write_copies
from quorate.folder.sites.settings import Site, SitesData, SitesSettings, read_sites_settings
from quorate.folder.sites.signed_votes import Queries, SignedVotes, Statement, read_queries, same_classes, verified
from quorate.folder.student_rows import student_file
from quorate.folder.table_source import no_file
from quorate.folder.votes_file import VotesFile
from quorate.labelling import Released
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import GaussianNoisyMax, Mechanism, Schedule, SeveralVotesNoisyMax
from quorate.mechanisms.schedule import mechanism_for, scale_of
from quorate.noise import NoiseSource
from quorate.planning.public_side import Models, PublicSide, public_side
from quorate.release.charge import floor_budget, noise_and_key
from quorate.release.keys import fingerprint_key, write_atomically
from quorate.report import Facts, Fitted, Part, Setup, Utility
from quorate.report.facts import name_of as name_of_function
from quorate.run.checks import AUDIT_NOT_RUN, EXACT_NOISE, chain, seed
from quorate.run.facts import RunMetadata, attack_curve, name_of, provenance_of, spending_of
from quorate.run.scores import score
from quorate.students import Student, StudentData
from quorate.types import IntArray, Secret, derive
from quorate.voting.dry_run import try_student
from quorate.voting.inputs import Inputs, PrivateRows
from quorate.voting.method import answers_of, is_constant
from quorate.voting.models import student_of
from quorate.voting.scope import scope_of_sites, votes_moved

ACCEPTED = "sites.json"  # on the private side: which file of each site was taken last
SEEDED = "seeded noise: this release is reproducible, therefore not private; it is not exported"
TRUST_MODEL = (
    "Each site is trusted with its own private rows, and to have given each unit to one teacher. Whoever adds up is "
    "trusted with the votes of every site. Whoever reads what was published is not trusted, and may know everything "
    "else."
)
CHARGED = "the release was charged, once; the same command charges nothing more"


@dataclass(frozen=True, slots=True)
class Combined:
    """What is to be released: statements in the order of the settings, the sum of votes, what answers and what learns.
    `side`: the public rows as the student takes them. `digests`: of each site's file.
    """

    settings: SitesSettings
    statements: tuple[Statement, ...]
    queries: Queries
    votes: VotesFile
    mechanism: Mechanism
    side: PublicSide
    student: Student
    digests: dict[str, str]
    evaluation: Evaluation | None


def combine(root: Path) -> Combined:
    """Verify the votes of every site, and add them up; nothing is drawn or charged."""
    settings = read_sites_settings(root)
    data = settings.data
    classes = check_classes(data.classes)
    if not data.public.exists():
        raise PreconditionFailed(no_file("[data] public", data.public, root))
    queries, before = read_queries(data.public, label=data.label), _accepted(RunFolder(root))
    signed = [_checked(site, settings, classes, queries, before.get(site.name)) for site in settings.sites]
    counts: IntArray = np.zeros((queries.n, len(classes)), dtype=np.int64)
    for of_site in signed:
        counts += of_site.votes.counts.reveal()
    votes = VotesFile(Secret(counts), classes, sum(of_site.votes.n_teachers for of_site in signed))
    student = student_of(settings.student.model, method="auto", shares="linear", folder=root)
    mechanism = _mechanism(settings, votes)
    student.check(mechanism)
    side = public_side(PublicPool(queries.rows), classes, Models(student=student))
    if ":" in settings.student.model:
        public = Inputs(private=Secret(PrivateRows.none()), public=side.pool, digests=(), classes=tuple(classes))
        try_student(student, mechanism, public, side.views, n_teachers=votes.n_teachers)
    return Combined(
        settings=settings,
        statements=tuple(of_site.statement for of_site in signed),
        queries=queries,
        votes=votes,
        mechanism=mechanism,
        side=side,
        student=student,
        digests={of_site.statement.site: of_site.digest for of_site in signed},
        evaluation=_evaluation(data, classes, side),
    )


def release_combined(root: Path, combined: Combined, *, to: Path | None = None) -> tuple[Facts, list[Path]]:
    """Charge, release, fit the student and write the public side; the same votes are charged once. `to`: a new folder
    for copies. What would refuse them is looked for before anything is charged; what is in the way later says that the
    release was charged. Returns what the report says, and the copies.
    """
    if to is not None:
        refuse_export(combined, to)
    settings, folder, started = combined.settings, RunFolder(root), datetime.now(UTC).isoformat(timespec="seconds")
    noise: NoiseSource = noise_and_key(settings.run.unsafe_noise_seed)[0]
    folder.make()
    done = release_votes(
        combined.votes,
        combined.mechanism,
        root=root,
        budget=Budget(*floor_budget(settings.budget.epsilon, settings.budget.delta)),
        delta=settings.share[1],
        noise=noise,
        unit=settings.votes.unit,
        scope=scope_of_sites(
            settings.votes.unit,
            combined.mechanism,
            stated=[statement.neighbours for statement in combined.statements],
            most=settings.votes.max_sites_per_unit,
            promised_by=settings.votes.promised_by,
        ),
        allow_hopeless=settings.run.allow_hopeless,
    )
    _note_accepted(folder, combined)  # not before the ledger took them: a file that it refuses was not taken
    facts = _published(root, combined, done, noise, started)
    exported: list[Path] = []
    if to is not None:
        try:
            exported = export_combined(root, to)
        except PreconditionFailed as refusal:
            refusal.charged = CHARGED
            raise
    return facts, exported


def refuse_export(combined: Combined, destination: Path) -> None:
    """Refuse what could not be exported once it is released: seeded noise, and a destination that holds other files."""
    if combined.settings.run.unsafe_noise_seed is not None:
        raise SeededNoiseRefused(SEEDED)
    refuse_filled(destination)


def export_combined(root: Path, destination: Path) -> list[Path]:
    """Copy all that was published into a new folder, with a manifest of SHA-256 sums; or nothing if refused."""
    return write_copies(destination, published_files(root))


def _checked(
    site: Site, settings: SitesSettings, classes: tuple[Any, ...], queries: Queries, before: dict[str, str] | None
) -> SignedVotes:
    """Read one site's file, and refuse what is not its votes for this release."""
    name = f"{site.votes.name} of site {site.name!r}"
    try:
        content = site.votes.read_bytes()
    except FileNotFoundError:
        raise PreconditionFailed(
            f"there is no file {site.votes}, which is to hold the votes of {site.name!r}"
        ) from None
    signed = verified(content, site.key, name=name)
    said, agreed, label = signed.statement, settings.votes, settings.data.label
    without = "" if label is None else f" without the column {label!r} (--label {label} where it is there)"
    for wrong, what in (
        (said.site != site.name, f"is signed for site {said.site!r}"),
        (said.round != agreed.round, f"is for round {said.round!r}, and [votes] round is {agreed.round!r}"),
        (said.unit != agreed.unit, f"protects one {said.unit}, and [votes] unit is {agreed.unit!r}"),
        (not same_classes(said.classes, classes), "has other classes than [data] classes, or another order of them"),
        (said.queries != queries.digest, f"is about other public rows than {settings.data.public.name}{without}"),
        (signed.votes.n_queries != queries.n, "has not one row of votes for each public row"),
    ):
        if wrong:
            raise DataRefused(f"{name} {what}; ask the site to sign votes for this release")
    if before is not None and said.time < before["time"]:
        raise DataRefused(
            f"{name} was signed at {said.time}, before the one that was taken last (of {before['time']}); an older "
            "file was put back in its place"
        )
    if before is not None and said.time == before["time"] and signed.digest != before["digest"]:
        raise DataRefused(
            f"{name} differs from the file of the same time that was taken before; ask the site which holds"
        )
    return signed


def _mechanism(settings: SitesSettings, votes: VotesFile) -> Mechanism:
    """Return the least noise that the budget allows, for the votes that one added, removed or replaced unit moves."""
    epsilon, delta = settings.share
    moved = votes_moved(len(settings.sites), settings.votes.max_sites_per_unit)
    if moved > 1:
        schedule = Schedule(answers=votes.n_queries, epsilon=epsilon, delta=delta)
        return SeveralVotesNoisyMax.calibrated({"votes_per_unit": moved, "n_classes": len(votes.classes)}, schedule)
    return mechanism_for(
        GaussianNoisyMax,
        {},
        n_classes=len(votes.classes),
        n_teachers=votes.n_teachers,
        answers=votes.n_queries,
        epsilon=epsilon,
        delta=delta,
    )


def _taught(root: Path, combined: Combined, released: Released) -> Any:
    side = combined.side
    key = fingerprint_key(RunFolder(root).ledger)
    model = combined.student.fit(
        StudentData(
            pool=side.views.student(side.pool),
            points=side.views.numbers(side.pool),
            queries=np.arange(combined.votes.n_queries),
            released=released,
            classes=combined.votes.classes,
            n_teachers=combined.votes.n_teachers,
            seed=int.from_bytes(derive(key, "student"), "big"),
            one_unit=side.views.numbers.directions is not None,
        )
    )
    return side.views.student.wrapped(model, side.pool)


def _evaluation(data: SitesData, classes: tuple[Any, ...], side: PublicSide) -> Evaluation | None:
    """Read the public rows with labels; the pool says which columns are text, and how each one is read."""
    if data.evaluation is None:
        return None
    if data.label is None:
        raise PreconditionFailed("[data] evaluation needs [data] label, the column of its labels")
    if not data.evaluation.exists():
        raise PreconditionFailed(f"[data] evaluation names {data.evaluation}, and there is no such file")
    name, text = data.evaluation.name, text_columns(side.pool)
    table = read_data(data.evaluation, label=data.label, text=text, n_features=side.pool.shape[1])
    _, rows = match_columns(side.pool, table.X, called=(data.public.name, name))
    side.views.student.check(rows, name)
    codes = encode_labels(table.y, classes, name=f"{name}, column {data.label!r}")
    return Evaluation(side.views.student.kinds(rows), np.asarray(list(classes))[codes])


def _published(root: Path, combined: Combined, done: VotesReleased, noise: NoiseSource, started: str) -> Facts:
    """Fit the student and write the public side: what was released, the student, and what is told of both."""
    folder, view = RunFolder(root), combined.side.views.student
    model = _taught(root, combined, done.released)
    title = shown(root.resolve().name)
    metadata = RunMetadata(
        title=title,
        command=f"quorate votes combine {for_shell(title)}",
        started=started,
        readers=(("cryptography", version("cryptography")),),
    )
    with folder.open_ledger() as ledger:
        facts = _facts(combined, done, model, ledger, noise, metadata)
    rows = student_file(combined.side.pool, view.kinds, images=False)
    more = {"labels.csv": done.files["labels.csv"].decode("utf-8")}
    return publish_run(folder, model, facts, more, pool=view.kinds(combined.side.pool), rows=rows, seeded=noise.seeded)


def _facts(
    combined: Combined, done: VotesReleased, model: Any, ledger: Ledger, noise: NoiseSource, metadata: RunMetadata
) -> Facts:
    """Return what is told of a release: released, public, or stated by the sites."""
    votes, guarantee, rows, n_sites = combined.votes, done.guarantee, combined.evaluation, len(combined.statements)
    mechanism, delta = type(combined.mechanism).__name__, combined.settings.share[1]
    event, answers = combined.mechanism.schedule(votes.n_queries), answers_of(done.released, len(votes.classes))
    fitted = model if combined.side.views.student.encoder is None else model.steps[-1][1]
    part = Part(
        purpose="label",
        mechanism=mechanism,
        sigma=scale_of(combined.mechanism),
        reserved=votes.n_queries,
        share=1.0,
        asked=answers.asked,
        answered=answers.answered,
        declined=answers.declined,
        interrupted=answers.interrupted,
        never_asked=answers.never_asked,
    )
    return Facts(
        guarantee=guarantee,
        setup=Setup(
            n_teachers=votes.n_teachers,
            partition="sites",
            unit=guarantee.unit,
            classes=tuple(str(label) for label in votes.classes),
            n_public=combined.queries.n,
            n_queries=votes.n_queries,
            teacher=f"made at {several(n_sites, 'site')}",
            student=name_of(combined.student),
            mechanism=mechanism,
            trust_model=TRUST_MODEL,
        ),
        spending=spending_of(ledger, event, delta, (part,)),
        answers=answers,
        fitted=Fitted(name=name_of(fitted), constant=is_constant(fitted, combined.student.learner)),
        utility=Utility(student=None if rows is None else score(model, rows.X, rows.truth, list(votes.classes))),
        checks=(*_of_sites(guarantee.unit, n_sites), EXACT_NOISE, seed(noise), chain(ledger), AUDIT_NOT_RUN),
        attacker=attack_curve(event, price(event, delta), delta, beside=guarantee),
        provenance=provenance_of(
            ledger, metadata, seeded=noise.seeded, public_digests=(("public rows", combined.queries.digest),)
        ),
    )


def _of_sites(unit: str, n_sites: int) -> tuple[Finding, ...]:
    """Return what was looked at of the sites' files, and what is theirs to say."""
    return (
        Finding(
            code="signatures",
            words="Is each site's file signed by its key, for these public rows, classes, unit and round?",
            outcome=Outcome.PASSED,
            evidence=f"The files of {several(n_sites, 'site')} were verified before anything was charged. Whether a "
            "key is the site's own is known to whoever was handed it.",
            ran=name_of_function(verified),
        ),
        Finding(
            code="shards",
            words=f"Does each {unit} of a site belong to exactly one teacher there?",
            outcome=Outcome.NOT_RUN,
            evidence="Teachers were trained at the sites, and nobody looked here: it is what each site signed.",
        ),
        Finding(
            code="classes",
            words="Was the class list declared, and not read off the private labels?",
            outcome=Outcome.BY_CONSTRUCTION,
            evidence="It stands in the settings, and votes for other classes are refused. Where those who agreed "
            "on it have it from, quorate cannot see.",
        ),
    )


def _accepted(folder: RunFolder) -> dict[str, dict[str, str]]:
    try:
        sites = json.loads((folder.private / ACCEPTED).read_text(encoding="utf-8"))
        return {
            str(name): {"time": str(entry["time"]), "digest": str(entry["digest"])} for name, entry in sites.items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PreconditionFailed(f"private/{ACCEPTED} is damaged; restore it from a backup") from None


def _note_accepted(folder: RunFolder, combined: Combined) -> None:
    noted = {said.site: {"time": said.time, "digest": combined.digests[said.site]} for said in combined.statements}
    content = json.dumps({**_accepted(folder), **noted}, indent=2, sort_keys=True) + "\n"
    write_atomically(folder.private / ACCEPTED, content.encode(), mode=0o600)

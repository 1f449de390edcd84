"""The public rows that sites vote on, and what their report says: released, public, or stated by the sites."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

from quorate.accounting import Event, Guarantee
from quorate.accounting import epsilon as price
from quorate.accounting.figures import several
from quorate.arguments import for_shell
from quorate.data import public_digest, read_data
from quorate.data.rows import Rows, n_rows
from quorate.findings import Finding, Outcome
from quorate.folder.sites.signed_votes import verified
from quorate.folder.votes_file import VotesFile
from quorate.ledger import Ledger
from quorate.mechanisms import Mechanism
from quorate.mechanisms.schedule import scale_of
from quorate.noise import NoiseSource
from quorate.report import AnswerCounts, Facts, Fitted, Part, Score, Setup, Spending, Utility
from quorate.report.facts import name_of
from quorate.run.checks import audit_not_run, chain, exact_noise, seed
from quorate.run.facts import RunMetadata, attack_curve, provenance_of, spending_of


@dataclass(frozen=True, slots=True)
class Queries:
    """Public rows, in their order.

    `rows`: features alone. `digest`: by which sites and aggregator know that they mean the same rows.
    """

    rows: Rows = field(repr=False)
    digest: str

    @property
    def n(self) -> int:
        """Number of rows."""
        return n_rows(self.rows)


def read_queries(path: Path, *, label: str | None = None) -> Queries:
    """Read public rows.

    `path`: a table, in any format that is read. `label`: a column that is no feature, left out where it is there.
    Raises DataRefused if it cannot be read, or no feature or row is left.
    """
    rows = read_data(path, drop=[] if label is None else [label]).X
    return Queries(rows, public_digest(rows))


TRUST_MODEL: Final = (
    "Each site is trusted with its own private rows, and to have given each unit to one teacher. Whoever adds up is "
    "trusted with the votes of every site. Whoever reads what was published is not trusted, and may know everything "
    "else."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesFacts:
    """What facts are made from.

    `n_sites`: sites.
    `votes`: their sum; of which the classes and the number of teachers are told.
    `queries`: the public rows.
    `mechanism`: what answered.
    `noise`: where its noise came from.
    `guarantee`: what was promised.
    `answers`: what became of the queries.
    `delta`: of this release.
    `student`: what was asked to learn from the answers.
    `fitted`: what came of it.
    `score`: on public rows with labels.
    `title`, `started`: of the report.
    """

    n_sites: int
    votes: VotesFile
    queries: Queries
    mechanism: Mechanism
    noise: NoiseSource
    guarantee: Guarantee
    answers: AnswerCounts
    delta: float
    student: str
    fitted: Fitted
    score: Score | None
    title: str
    started: str

    def facts(self, ledger: Ledger) -> Facts:
        """Return them, with what the ledger says."""
        guarantee, event = self.guarantee, self.mechanism.schedule(self.votes.n_queries)
        return Facts(
            guarantee=guarantee,
            setup=Setup(
                n_teachers=self.votes.n_teachers,
                partition="sites",
                unit=guarantee.unit,
                classes=tuple(str(label) for label in self.votes.classes),
                n_public=self.queries.n,
                n_queries=self.votes.n_queries,
                teacher=f"made at {several(self.n_sites, 'site')}",
                student=self.student,
                mechanism=type(self.mechanism).__name__,
                trust_model=TRUST_MODEL,
            ),
            spending=self._spending(ledger, event),
            answers=self.answers,
            fitted=self.fitted,
            utility=Utility(student=self.score),
            checks=self._checks(ledger),
            attacker=attack_curve(event, price(event, self.delta), self.delta, beside=guarantee),
            provenance=provenance_of(
                ledger,
                RunMetadata(
                    title=self.title,
                    command=f"quorate votes combine {for_shell(self.title)}",
                    started=self.started,
                    readers=(("cryptography", version("cryptography")),),
                ),
                seeded=self.noise.seeded,
                public_digests=(("public rows", self.queries.digest),),
            ),
        )

    def _spending(self, ledger: Ledger, event: Event) -> Spending:
        answers = self.answers
        part = Part(
            purpose="label",
            mechanism=type(self.mechanism).__name__,
            sigma=scale_of(self.mechanism),
            reserved=self.votes.n_queries,
            share=1.0,
            asked=answers.asked,
            answered=answers.answered,
            declined=answers.declined,
            interrupted=answers.interrupted,
            never_asked=answers.never_asked,
        )
        return spending_of(ledger, event, self.delta, (part,))

    def _checks(self, ledger: Ledger) -> tuple[Finding, ...]:
        unit, sites = self.guarantee.unit, several(self.n_sites, "site")
        return (
            Finding(
                code="signatures",
                words="Is each site's file signed by its key, for these public rows, classes, unit and round?",
                outcome=Outcome.PASSED,
                evidence=f"The files of {sites} were verified before anything was charged. Whether a key is the site's "
                "own is known to whoever was handed it.",
                ran=name_of(verified),
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
            exact_noise(),
            seed(self.noise),
            chain(ledger),
            audit_not_run(),
        )

"""A release of votes made elsewhere: the same mechanisms, ledger and report, without teachers of our own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from quorate.accounting import Composed, Guarantee, epsilon
from quorate.accounting.data_dependent import SanitisedTotal, release_rdp
from quorate.accounting.figures import several
from quorate.accounting.renyi import epsilon_of_curve
from quorate.data import fingerprint
from quorate.data.cell_text import csv_text
from quorate.errors import InvalidParameter, LedgerMismatch
from quorate.folder.folder import RunFolder
from quorate.folder.votes_file import VotesFile
from quorate.labelling import DataDependentRelease, Released, label, release_data_dependent_total, stages_of
from quorate.ledger import Budget, GuaranteeScope, Ledger, Reservation
from quorate.mechanisms import Mechanism, check_own, data_dependent_terms
from quorate.mechanisms.schedule import check_mechanism
from quorate.noise import NoiseSource
from quorate.release import Charge, guarantee_of
from quorate.release.keys import fingerprint_key, write_atomically
from quorate.release.model_digest import described_mechanism
from quorate.run.cautions import reach, refuse_hopeless
from quorate.run.stage_store import stage_key
from quorate.types import Secret
from quorate.voting.method import mechanism_in_words
from quorate.voting.scope import scope_of_votes

FIGURE_LOST = "the data-dependent figure was paid for and lost with a process that ended; it is never drawn again"


@dataclass(frozen=True, slots=True)
class VotesReleased:
    """What came of a release. `sanitised_epsilon`: the data-dependent ε, released with noise at its own price; it
    describes, and guarantees nothing. `files`: what was written to the public side, by name: on disk it may change.
    """

    released: Released
    guarantee: Guarantee
    sanitised_epsilon: float | None
    files: dict[str, bytes] = field(repr=False)


def release_votes(
    votes: VotesFile,
    mechanism: Mechanism,
    *,
    root: Path,
    budget: Budget,
    delta: float,
    noise: NoiseSource,
    unit: str = "record",
    scope: GuaranteeScope | None = None,
    sanitiser: DataDependentRelease | None = None,
    allow_hopeless: bool = False,
) -> VotesReleased:
    """Charge, release and write labels for votes made elsewhere; the same votes and mechanism are charged once.
    `budget`: what a new ledger is opened with. `unit`: whose data one teacher saw alone. `scope`: what the guarantee is
    about, where that is more than a `unit` whose partition is stated. `sanitiser`: releases the data-dependent ε too,
    for its own price inside the same reservation.
    """
    _refuse_unfit(votes, mechanism, sanitiser)
    folder = RunFolder(root)
    folder.make()
    key = fingerprint_key(folder.ledger)
    data = votes_fingerprint(votes, root)
    charge = _charge(
        votes,
        mechanism,
        sanitiser,
        key=key,
        data=data,
        delta=delta,
        scope=scope_of_votes(unit, mechanism) if scope is None else scope,
        seeded=noise.seeded,
    )
    with _ledger_of(folder, budget, data) as ledger:
        if not allow_hopeless and charge.find(ledger) is None:
            sizes = {"n_teachers": votes.n_teachers, "n_classes": len(votes.classes), "n_queries": votes.n_queries}
            near = reach(mechanism, **sizes)
            refuse_hopeless([near], unless="allow_hopeless=True (--allow-hopeless)")
        reservation = charge.reserve(ledger)
        released = label(votes.counts, mechanism, reservation, noise)
        sanitised = None
        if sanitiser is not None:
            total = _sanitised(votes, mechanism, sanitiser, reservation, released, noise)
            sanitised = None if total is None else total.epsilon(delta)
        lost = sanitiser is not None and sanitised is None
        promised = guarantee_of(
            ledger,
            charge.event,
            delta=delta,
            mechanism=f"at most {several(votes.n_queries, 'answer')} of {mechanism_in_words(mechanism)}",
            seeded=noise.seeded,
            caveats=(FIGURE_LOST,) if lost else (),
        )
    files = {
        "labels.csv": _labels(votes, released, seeded=promised.seeded).encode(),
        "guarantee.json": (promised.to_json() + "\n").encode(),
    }
    for name, content in files.items():
        write_atomically(folder.public / name, content)
    return VotesReleased(released, promised, sanitised, files)


def _refuse_unfit(votes: VotesFile, mechanism: Mechanism, sanitiser: DataDependentRelease | None) -> None:
    """Refuse a mechanism that is not for such votes, and a figure that is not known for it."""
    if sanitiser is not None and data_dependent_terms(mechanism) is None:
        raise InvalidParameter(
            "a data-dependent figure is known for quorate's GaussianNoisyMax and ConfidentNoisyMax of three classes or "
            f"more alone, got {type(mechanism).__name__}; leave it out"
        )
    if mechanism.takes == "scores":
        raise InvalidParameter(
            f"{type(mechanism).__name__} needs the teachers' scores, and a file of votes has none; choose another"
        )
    n_classes = len(votes.classes)
    check_mechanism(mechanism, n_classes=n_classes)
    check_own(mechanism, n_teachers=votes.n_teachers, n_classes=n_classes, answers=votes.n_queries)


def _charge(
    votes: VotesFile,
    mechanism: Mechanism,
    sanitiser: DataDependentRelease | None,
    *,
    key: Secret[bytes],
    data: str,
    delta: float,
    scope: GuaranteeScope,
    seeded: bool,
) -> Charge:
    """Everything that is to be charged at once: the labels, and the data-dependent figure if there is to be one."""
    event = mechanism.schedule(votes.n_queries)
    order = blake2b(np.ascontiguousarray(votes.counts.reveal()).tobytes(), key=key.reveal(), digest_size=16)
    purposes = {"label": votes.n_queries, **stages_of(mechanism)}
    charged_to = None
    if sanitiser is not None:
        charged_to = {**dict.fromkeys(purposes, 0), "evaluation": 1}
        event, purposes = Composed((event, sanitiser.event)), {**purposes, "evaluation": 1}
    return Charge(
        event=event,
        delta=delta,
        purposes=purposes,
        key=stage_key(
            key,
            "votes made elsewhere",
            {
                "votes": data,
                "order": order.hexdigest(),  # the fingerprint does not see it, and labels go by it
                "mechanism": _text_in_key(mechanism, sanitiser),
                "event": event.to_json(),
                "delta": delta,
            },
        ),
        scope=scope,
        seeded=seeded,
        charged_to=charged_to,
    )


def _text_in_key(mechanism: Mechanism, sanitiser: DataDependentRelease | None) -> str:
    """Both with all their fields, as version 0.1 wrote them: keys of its charges are found again."""
    return f"({described_mechanism(mechanism)}, {sanitiser!r})".replace("DataDependentRelease(", "Sanitiser(")


def share_for_figure(epsilon: float, delta: float) -> tuple[DataDependentRelease, float, float]:
    """Set aside what the data-dependent figure costs; return what releases it, and ε and δ that labels are left.

    >>> sanitiser, epsilon, delta = share_for_figure(8.0, 1e-5)
    >>> round(epsilon, 4), delta
    (7.4689, 9e-06)
    """
    sanitiser = DataDependentRelease(order=20.0, beta=0.01, multiplier=40.0, delta=delta / 10)
    left = epsilon - sanitiser.event.epsilon
    if not left > 0:
        raise InvalidParameter(
            f"epsilon={epsilon:g} leaves nothing for labels beside the data-dependent figure, which alone costs "
            f"{sanitiser.event.epsilon:.4g}; raise it or leave the figure out"
        )
    return sanitiser, left, delta - sanitiser.delta


@contextmanager
def _ledger_of(folder: RunFolder, budget: Budget, data: str) -> Iterator[Ledger]:
    """Open the folder's ledger; one that is there keeps its own budget, which may have been raised."""
    with ExitStack() as stack:
        try:
            ledger = stack.enter_context(folder.open_ledger(budget, fingerprint=data))
        except LedgerMismatch:
            ledger = stack.enter_context(folder.open_ledger(fingerprint=data))
        yield ledger


def votes_fingerprint(votes: VotesFile, root: Path) -> str:
    """Return the keyed fingerprint of votes, to which the ledger of `root` is bound."""
    key = fingerprint_key(RunFolder(root).ledger)
    return fingerprint(votes.counts.reveal().astype(np.float64), None, None, key)


def price_of(votes: VotesFile, mechanism: Mechanism, delta: float) -> float:
    """The data-independent ε of answering every query of a file: a public number."""
    return epsilon(mechanism.schedule(votes.n_queries), delta)


def data_dependent_epsilon(votes: VotesFile, mechanism: Mechanism, delta: float) -> Secret[dict[str, float]]:
    """What the votes as they fell would cost (PATE18): a secret, for the owner alone. For a confident mechanism the
    cost of answers is weighed by the probability to be answered, so it is an expectation, and never a guarantee.
    `epsilon` is by the tight conversion, `epsilon_integer_orders` as the paper converts.
    """
    counts = votes.counts
    terms = data_dependent_terms(mechanism)
    if terms is None:
        raise InvalidParameter(f"mechanism has no data-dependent analysis, got {type(mechanism).__name__}")
    share = terms.answered(counts).reveal()

    def curve(orders: Any) -> Any:
        total = share @ terms.answers_rdp(counts, orders).reveal()
        tests = terms.tests_rdp(counts, orders)
        return total if tests is None else total + tests.reveal().sum(axis=0)

    tight, order = epsilon_of_curve(curve, delta)
    whole = np.arange(2.0, 40.0)
    plain = float(np.min(curve(whole) - np.log(delta) / (whole - 1)))
    return Secret({"epsilon": tight, "order": order, "epsilon_integer_orders": plain})


def write_analysis(root: Path, figures: Secret[dict[str, float]]) -> Path:
    """Write the secret figures to the private side, readable by its owner alone."""
    folder = RunFolder(root)
    folder.make()
    path = folder.private / "analysis.json"
    content = {"note": "not for release: these figures depend on the votes", **figures.reveal()}
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode(), mode=0o600)
    return path


def _sanitised(
    votes: VotesFile,
    mechanism: Mechanism,
    sanitiser: DataDependentRelease,
    reservation: Reservation,
    released: Released,
    noise: NoiseSource,
) -> SanitisedTotal | None:
    """The released total; read from the ledger, at no cost, where it was drawn before; None where it was lost then."""
    for block in reservation.blocks("evaluation"):
        if block.answers is None:
            return None
        cost = release_rdp(sanitiser.order, sanitiser.beta, sanitiser.multiplier)
        return SanitisedTotal(order=sanitiser.order, value=block.answers[0], release_cost=cost)
    return release_data_dependent_total(
        votes.counts,
        mechanism,
        sanitiser,
        reservation=reservation,
        noise=noise,
        answered=released.answered if mechanism.may_decline else None,
    )


def _labels(votes: VotesFile, released: Released, *, seeded: bool) -> str:
    more = ["guarantee"] if seeded else []
    told_ = ["none: seeded noise, not private"] if seeded else []
    states = zip(released.codes.tolist(), released.statuses, strict=True)
    return csv_text(
        ["row", "label", "status", *more],
        ([row, votes.classes[code] if code >= 0 else "", status, *told_] for row, (code, status) in enumerate(states)),
    )

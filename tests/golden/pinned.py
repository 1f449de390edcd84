"""What may be pinned so that a fit writes the same bytes again: secrets that are drawn, and the ledger's clock."""

import inspect
import json
import secrets
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from unittest.mock import patch

import numpy as np

from quorate.ledger import Budget, Ledger

SEED = 20_260_101
DELTA = 1e-5


def last_bits():
    """Return a digest of what linear algebra makes of fixed numbers: it differs between kinds of processors."""
    rows = np.random.default_rng(0).normal(size=(300, 24))
    return sha256(rows.T @ rows + np.linalg.eigh(rows.T @ rows)[1] + np.linalg.qr(rows)[1]).hexdigest()[:16]


#: Stage and charge keys are made from the versions of these and from coordinates, so keys are compared where these are
#: the same.
VERSIONS = {**{name: version(name) for name in ("scikit-learn", "numpy")}, "last bits": last_bits()}


@contextmanager
def pinned():
    """Every secret that is drawn inside is made of one byte; none of them ever protected anything."""
    with (
        patch.object(secrets, "token_bytes", lambda n=32: b"\x2a" * n),
        patch.object(secrets, "token_hex", lambda n=32: "2a" * n),
    ):
        yield


def ledger(epsilon, delta=DELTA, **how):
    """Open a ledger in memory whose clock stands still."""
    return Ledger(budget=Budget(epsilon, delta, **how), clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))


def lines(of):
    """Return the canonical text of each entry, without what no two runs share and without sentences.

    Times, and the hashes that follow from them, differ from run to run. The caveats are sentences, and stand in the
    guarantee; how the chain is hashed is seen by the stored runs of version 0.1.
    """
    return [_without_chain(entry) for entry in of.export()]


def _without_chain(entry):
    kept = {name: value for name, value in entry.items() if name not in {"hash", "previous", "time"}}
    if isinstance(kept.get("store"), dict):
        kept["store"] = kept["store"]["store"]
    if isinstance(kept.get("claim"), dict):
        kept["claim"] = {name: value for name, value in kept["claim"].items() if name != "caveats"}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def guarantee(of):
    """Return a guarantee as JSON values, without the numbers of the version and of the form that wrote it."""
    document = json.loads(of.to_json())
    document.pop("schema_version", None)  # version 0.1 wrote none
    document["accounting"] = document["accounting"].replace(f"quorate {version('quorate')}", "quorate")
    return document


def processes(of, n):
    """Say how many processes, and of an estimator that may refuse them that tables may be too small."""
    return {"n_jobs": n} | ({"allow_hopeless": True} if "allow_hopeless" in inspect.signature(of).parameters else {})

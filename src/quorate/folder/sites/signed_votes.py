"""The file in which one site hands over its votes: what it states, the votes, and its signature over both.

The signature is Ed25519 (RFC 8032) over the canonical JSON of everything else in the file, so a site's public key may
be known to everybody. The file is not encrypted: whoever reads it sees votes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from quorate.data import public_digest, read_data
from quorate.data.labels import Label
from quorate.data.rows import Rows, n_rows
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.folder.votes_file import VotesFile
from quorate.stored_names import stored_as
from quorate.types import Secret

FORMAT = "quorate votes of a site 2"
KEY_PREFIX = "ed25519:"
MOST_TEACHERS = 2**20  #: of a site
MOST_SITES = 2**10  #: of a release; so that no sum of votes, 2^30 at most, is ever out of a mechanism's range
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_WORD = re.compile(r"[^\W_][\w .:-]{0,63}")
_STATED = ("site", "round", "unit", "neighbours", "classes", "queries", "n_teachers", "time")


#: Which changes a site can state that one teacher alone follows, the stronger one first.
SiteChange: TypeAlias = Literal["add-remove-replace", "replace"]
SITE_CHANGES: Final[tuple[SiteChange, ...]] = get_args(SiteChange)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a site says of its votes. All of it is public. `round`: for which release the votes are, in a word that all
    have agreed on. `neighbours`: which change of one unit changes one teacher alone: "replace" where one that comes or
    goes would move others, as in a partition into shards of equal size, or where K was read from the number of units.
    `classes`: in the order of the counts. `queries`: digest of the public rows, in their order. `time`: when it was
    signed.
    """

    site: str
    round: str
    unit: str
    neighbours: SiteChange
    classes: tuple[Label, ...]
    queries: str
    n_teachers: int
    time: str

    def __post_init__(self) -> None:
        for name in ("site", "round", "unit"):
            word(name, getattr(self, name))
        if self.neighbours not in SITE_CHANGES:
            raise InvalidParameter('neighbours must be "add-remove-replace" or "replace"')
        if not (isinstance(self.time, str) and _TIME.fullmatch(self.time)):
            raise InvalidParameter("time must be written as 2026-11-23T08:00:00Z")


@dataclass(frozen=True, slots=True)
class SignedVotes:
    """Votes of a site whose signature was verified; the `digest` of the file has no key, and stays private."""

    statement: Statement
    votes: VotesFile
    digest: str


@dataclass(frozen=True, slots=True)
class Queries:
    """Public rows, in their order: features alone, and a digest by which all know that they mean the same rows."""

    rows: Rows = field(repr=False)
    digest: str

    @property
    def n(self) -> int:
        """Number of rows."""
        return n_rows(self.rows)


def read_queries(path: Path, *, label: str | None = None) -> Queries:
    """Read public rows; `label`: a column that is no feature, left out where it is there."""
    rows = read_data(path, drop=[] if label is None else [label]).X
    return Queries(rows, public_digest(rows))


def word(name: str, value: Any) -> str:
    """Check a name of a site, a round or a unit: 1 to 64 letters, digits, blanks and ``_ . : -``."""
    if isinstance(value, str) and _WORD.fullmatch(value) and value == value.strip():
        return value
    raise InvalidParameter(
        f"{name} must be 1 to 64 letters, digits, blanks or _ . : -, and begin with a letter or digit"
    )


def new_key() -> tuple[bytes, str]:
    """Make a pair of keys: PEM, not encrypted, for its owner alone; and ``ed25519:`` and 44 characters, for all."""
    ed25519, serialization = _cryptography()
    key = ed25519.Ed25519PrivateKey.generate()
    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem, KEY_PREFIX + base64.b64encode(key.public_key().public_bytes_raw()).decode("ascii")


def sign(votes: VotesFile, statement: Statement, pem: bytes) -> bytes:
    """Return the content of a site's file; the statement has to be about these votes, and `pem` a private key."""
    if (statement.classes, statement.n_teachers) != (votes.classes, votes.n_teachers):
        raise InvalidParameter("the statement has other classes, or another number of teachers, than the votes")
    _check_teachers(votes.n_teachers)
    content = {
        "format": FORMAT,
        **{name: getattr(statement, name) for name in _STATED},
        "classes": list(statement.classes),
        "counts": votes.counts.reveal().tolist(),
    }
    signature = _private(pem).sign(_signed_bytes(content))
    content["signature"] = base64.b64encode(signature).decode("ascii")
    return (json.dumps(content, ensure_ascii=True) + "\n").encode("ascii")


@stored_as("quorate.run.sites.signed_votes.verified")
def verified(content: bytes, key: str, *, name: str) -> SignedVotes:
    """Return the votes of a file once its signature by the public `key` is verified; a message holds no vote."""
    try:
        read = json.loads(content.decode("ascii"))
        signature = base64.b64decode(read.pop("signature"), validate=True)
        if read["format"] != FORMAT:
            raise ValueError  # noqa: TRY301
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error):
        raise DataRefused(f"{name} is no file of signed votes; make one with: quorate votes sign") from None
    _verify(public_key(key), signature, _signed_bytes(read), name)
    # From here on it is what the site wrote.
    if set(read) != {"format", "counts", *_STATED}:
        raise DataRefused(f"{name} is signed, and of a form that this version does not know")
    counts, classes = read["counts"], read["classes"]
    try:
        statement = Statement(**{**{name_: read[name_] for name_ in _STATED}, "classes": tuple(classes)})
        _check_teachers(statement.n_teachers)
        array = np.array(counts, dtype=object)
        if array.ndim != 2 or array.shape[1] != len(classes) or not all(type(cell) is int for cell in array.flat):
            raise ValueError  # noqa: TRY301
        whole = array.astype(np.int64)
        # Every cell before their sum, which could wrap. What comes after adding sites up must refuse no sum: two sites
        # that collude could learn from it what a third one's votes are.
        if np.any(whole < 0) or np.any(whole > statement.n_teachers):
            raise ValueError  # noqa: TRY301
        if np.any(whole.sum(axis=1) > statement.n_teachers):
            raise ValueError  # noqa: TRY301
    except (ValueError, TypeError, OverflowError):
        raise DataRefused(
            f"{name} is signed, and holds no votes of its teachers: one row a query, a count a class"
        ) from None
    digest = blake2b(content, digest_size=32).hexdigest()
    return SignedVotes(statement, VotesFile(Secret(whole), statement.classes, statement.n_teachers), digest)


def public_key(text: Any) -> bytes:
    """Return the 32 bytes of a public key; InvalidParameter where it is none."""
    try:
        if isinstance(text, str) and text.startswith(KEY_PREFIX):
            raw = base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True)
            if len(raw) == 32:
                return raw
    except (ValueError, binascii.Error):
        pass
    raise InvalidParameter(
        f'a site\'s key must be its public key, "{KEY_PREFIX}" and 44 characters; quorate votes keys makes a pair'
    )


def same_classes(one: Sequence[Label], other: Sequence[Label]) -> bool:
    """Tell whether two lists of classes are written alike, in the same order. A site types its classes, and the
    aggregator writes them into ``quorate.toml``: there 0 and "0" are two types, and mean one class.
    """
    return [_written(label) for label in one] == [_written(label) for label in other]


def _written(label: Label) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _check_teachers(n_teachers: Any) -> None:
    if not (type(n_teachers) is int and 1 <= n_teachers <= MOST_TEACHERS):
        raise InvalidParameter(f"a site has 1 to {MOST_TEACHERS:,} teachers")


def _signed_bytes(content: Any) -> bytes:
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
    except ValueError:
        return b""  # of which no site makes a signature


def _private(pem: bytes) -> Any:
    ed25519, serialization = _cryptography()
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise PreconditionFailed("the file of the key holds no Ed25519 private key; quorate votes keys makes a pair")
    return key


def _verify(raw: bytes, signature: bytes, signed: bytes, name: str) -> None:
    from cryptography.exceptions import InvalidSignature  # after _cryptography

    ed25519, _ = _cryptography()
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(raw).verify(signature, signed)
    except InvalidSignature:
        raise DataRefused(
            f"{name} is not signed by the key that is named for it: it was altered, or comes from somebody else. Ask "
            "the site for the file, and for its public key by another way"
        ) from None


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise PreconditionFailed('votes of sites are signed with cryptography: pip install "quorate[sites]"') from None
    return ed25519, serialization

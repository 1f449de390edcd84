"""A run as a folder: what lies where, and who may read it.

::

    quorate.toml      what was asked
    ledger.db         what was spent, with its anchor and its key beside it
    ledger.url        in place of ledger.db, where the ledger is on a server: its URL, in one line
    private/  (0700)  run key, votes, teachers, newest ledger entry (ledger.head); never leaves
    public/           labels, student, guarantee.json, report.html; may leave
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from quorate.errors import InvalidParameter, LedgerIntegrityError, PreconditionFailed
from quorate.ledger import Budget, Ledger, Receipt
from quorate.ledger.budget import Composition
from quorate.ledger.ledger import is_url, store_at
from quorate.ledger.ledger_files import AnchorFile, beside, both_missing, had_ledger, keep_owner
from quorate.ledger.state import Epoch, Head
from quorate.ledger.store import reason_of
from quorate.release import RollbackGuard, session
from quorate.release.keys import fingerprint_key
from quorate.release.session import LedgerTerms, terms_in
from quorate.types import Secret


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The places of one run."""

    root: Path

    @property
    def settings(self) -> Path:
        """``quorate.toml``."""
        return self.root / "quorate.toml"

    @property
    def ledger(self) -> Path:
        """The durable record of what was spent; where that is on a server, what its key lies beside."""
        return self.root / "ledger.db"

    @property
    def ledger_url(self) -> str | None:
        """Where the ledger is, if on a server: what ``ledger.url`` holds; there is none in a file then."""
        try:
            text = (self.root / "ledger.url").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            raise PreconditionFailed(f"{self.root / 'ledger.url'} cannot be read; ask its owner") from None
        url = text.strip()
        if not is_url(url) or len(url.splitlines()) != 1:
            raise InvalidParameter("ledger.url must hold the URL of a ledger in one line, such as postgresql://host/db")
        if self._ledger_stands:
            raise PreconditionFailed(
                "the folder has a ledger in a file, ledger.db, and names one in ledger.url; a run has one ledger "
                "for life: take away what was added last"
            )
        return url

    def fingerprint_key(self, *, begin: bool) -> Secret[bytes]:
        """Return the key that binds private data to the ledger; `begin`: whether one that is not there yet is made."""
        kept = begin or self.has_ledger or self.ledger.with_name(f"{self.ledger.name}.key").exists()
        return fingerprint_key(self.ledger if kept else None)

    def refuse_wrong_ledger(self) -> None:
        """Refuse a folder with two ledgers, or whose ``ledger.url`` names none, before a row is read."""
        bool(self.ledger_url)

    @property
    def may_have_begun(self) -> bool:
        """Whether there is a ledger to look into."""
        url = self.ledger_url
        return self.ledger.exists() if url is None else had_ledger(self.ledger)

    def look_into_ledger(self) -> Ledger:
        """Open the ledger to read in it, with nothing noted; the caller closes it."""
        url = self.ledger_url
        place = None if url is None else self._with_key(url)
        return Ledger(self.ledger) if place is None else Ledger(store=store_at(place, create=False))

    def terms(self, composition: Composition) -> LedgerTerms:
        """Return what the ledger says of its next charge; what a new one would, where there is none to look into."""
        new = LedgerTerms(composition=composition)
        return terms_in(self.look_into_ledger, new) if self.may_have_begun else new

    def _with_key(self, url: str) -> str:
        """Add the place of the key: the run's own, of which every server has a copy."""
        key = quote(str(beside(self.ledger.absolute(), ".key")))
        return f"{url}{'&' if '?' in url else '?'}key_file={key}"

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger, or a trace of one that was deleted: then it is refused, never opened anew."""
        return self._ledger_stands or had_ledger(self.ledger) or self._has_results

    @property
    def _ledger_stands(self) -> bool:
        return self.ledger.exists() or self.ledger.with_name(f"{self.ledger.name}.anchor").exists()

    @property
    def _has_results(self) -> bool:
        """Whether there is anything that is only made while a ledger with an entry is open."""
        return self.head.exists() or any(self.private.glob("*.stage")) or self.has_published

    @property
    def has_published(self) -> bool:
        """Whether there is anything that is only written once the ledger's newest entry was noted."""
        return any((self.public / name).exists() for name in ("labels.csv", "guarantee.json", "facts.json"))

    @property
    def head(self) -> Path:
        """The newest entry of the ledger, kept away from the ledger and its anchor."""
        return self.private / "ledger.head"

    def open_ledger(
        self, budget: Budget | None = None, *, fingerprint: str | None = None
    ) -> AbstractContextManager[Ledger]:
        """Open the run's ledger for one act, which keeps every other process out until it is over. Its newest entry is
        noted on the private side, with each commit, so that an older ledger is missed even where its anchor was put
        back together with it, and even where this process was killed. `budget`: needed where there is no ledger yet,
        and never was. `fingerprint`: keyed hash of the private data, of which the ledger has to be.
        """
        url = self.ledger_url
        if url is not None:
            return self._open_shared(url, budget, fingerprint)
        if self.has_ledger and not self._ledger_stands:
            raise LedgerIntegrityError(both_missing(self.ledger))
        guard = NotedHead(self)
        return session(self.ledger, budget=budget, same_budget=True, guard=guard, fingerprint=fingerprint)

    @contextmanager
    def _open_shared(self, url: str, budget: Budget | None, fingerprint: str | None) -> Iterator[Ledger]:
        """Open a ledger on a server; where anything was made with it, a missing one is not made anew."""
        create = budget is not None and not self._has_results
        store = store_at(self._with_key(url), create=create)
        guard = NotedHead(self)
        with (
            Ledger(store=store, budget=budget) as ledger,
            session(ledger, budget=budget, guard=guard, fingerprint=fingerprint) as held,
        ):
            yield held

    @property
    def private(self) -> Path:
        """What never leaves; created readable by its owner alone."""
        return self.root / "private"

    @property
    def published(self) -> Path:
        """Names and sums of what was written to the public side; see :mod:`quorate.folder.published`."""
        return self.private / "published.json"

    @property
    def public(self) -> Path:
        """What may leave the building, and nothing else."""
        return self.root / "public"

    def make(self) -> None:
        """Create the two sides of the boundary."""
        for side in (self.private, self.public):
            if not side.is_dir():
                side.mkdir(mode=0o700 if side == self.private else 0o777, parents=True, exist_ok=True)
                descriptor = os.open(side, os.O_RDONLY | os.O_DIRECTORY)
                keep_owner(descriptor, side.parent)
                os.close(descriptor)
        self.private.chmod(0o700)  # mkdir's mode is subject to the umask, and to nothing where it existed already

    def place_for_rows(self, *, begin: bool) -> Path:
        """Return where rows may lie that memory does not hold: the private side, or here while there is none yet."""
        if begin:
            self.make()
        return self.private if self.private.is_dir() else self.root


class NotedHead(RollbackGuard):
    """The newest entry of a run's ledger, noted on the private side; where there is none, nothing is."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__()
        self._folder = folder
        self._file = AnchorFile(folder.head, at=lambda _: None)
        self._epoch: Epoch | None = None

    def check(self, ledger: Ledger) -> None:
        """Hold the ledger against the entry noted last, and note its newest one, and each from now on."""
        if self._folder.private.is_dir():
            self._hold_against_the_note(ledger)
            ledger.follow(self._follow)

    def _hold_against_the_note(self, ledger: Ledger) -> None:
        self._epoch = ledger.epoch
        folder, slots = self._folder, self._file.slots()
        noted = None if slots is None else slots.newest
        self._refuse_replaced_primary(noted)
        if folder.ledger_url is not None:  # what other servers wrote, up to what was noted at least
            ledger.refresh()
        if slots is not None and slots.torn and noted is not None and noted.sequence >= ledger.head.sequence:
            # A power cut tears a note whose entry is on the disk already: the ledger goes on beyond the other slot.
            raise LedgerIntegrityError(
                f"a part of private/{folder.head.name} is damaged, and what it named may be newer than the rest: "
                "whether the ledger is the newest is unknown; restore the newest ones together"
            )
        if noted is None and folder.has_published:
            copied = f", or copy {folder.ledger.name}.anchor there if you know that it is"
            raise LedgerIntegrityError(
                f"private/{folder.head.name} is missing beside what was published: whether {self._named} is the newest "
                f"is unknown; restore it{copied if folder.ledger_url is None else ' from a copy of the folder'}"
            )
        if noted is not None:
            try:
                ledger.check_receipt(Receipt(noted.sequence, noted.hash))
            except LedgerIntegrityError:
                raise LedgerIntegrityError(
                    f"{self._named} is older than private/{folder.head.name}, or of another run; restore the newest "
                    "ones, nothing is released until then"
                ) from None
        if noted is None or (noted, noted.epoch) != (ledger.head, self._epoch) or (slots is not None and slots.torn):
            self._file.replace(replace(ledger.head, epoch=self._epoch))

    def _refuse_replaced_primary(self, noted: Head | None) -> None:
        """Refuse a database whose standby took its place, however it came back: both would spend what was left."""
        before = None if noted is None or self._folder.ledger_url is None else noted.epoch
        if before is None:
            return
        if self._epoch is None:
            raise LedgerIntegrityError(
                "the database of ledger.url does not tell its timeline any more, so that it may be a primary whose "
                "standby took its place; grant EXECUTE ON FUNCTION pg_control_system() and pg_walfile_name(pg_lsn)"
            )
        if self._epoch.ended_by(before):
            raise LedgerIntegrityError(
                f"the database of ledger.url is on timeline {self._epoch.timeline}, and this run's ledger went on to "
                f"timeline {before.timeline}: it is a primary whose standby took its place. Stop it, and let "
                "ledger.url lead to the new primary"
            )

    def _follow(self, head: Head) -> None:
        """Note an entry that is on stable storage, without a wait for the disk of its own."""
        try:
            self._file.write(replace(head, epoch=self._epoch), wait=False)
        except OSError as error:
            raise LedgerIntegrityError(
                f"private/{self._folder.head.name} could not be written ({reason_of(error)}); nothing is released "
                "until the ledger is opened and verified again",
                charged="the last charge was recorded",
            ) from error

    @property
    def _named(self) -> str:
        folder = self._folder
        return f"{folder.ledger.name}, with its anchor," if folder.ledger_url is None else "the ledger of ledger.url"

    def note(self, ledger: Ledger) -> None:
        """Do the same when the ledger is let go of, for the last time."""
        ledger.follow(None)
        self._file.close()
        if self._folder.private.is_dir():
            self._hold_against_the_note(ledger)

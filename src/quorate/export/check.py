"""What a reviewer checks of a package, without the private side and without the ledger.

Each check has an outcome: *passed* and *failed* where a function looked, *not run* where what it needs is not there.
None trusts what the package says of itself: sums, prices and sentences are made again, and models opened without trust.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from quorate.errors import PreconditionFailed
from quorate.export import file_checks, paper_checks
from quorate.export.container import MOST_BYTES, UnsafePackageError, read_package
from quorate.export.contents import MANIFEST, ONNX, SKOPS, sum_of
from quorate.export.file_checks import failed, not_run, passed
from quorate.findings import Finding, Outcome
from quorate.report.facts import name_of

_QUESTIONS: Final[tuple[tuple[str, str, Callable[[Mapping[str, bytes]], Finding]], ...]] = (
    ("manifest", "Does the package say what it holds, in a form that this version reads?", file_checks.manifest),
    ("sums", "Is every file, byte for byte, the one that the manifest names?", file_checks.sums),
    ("files", "Does it hold every file of its kind, and no other?", file_checks.files),
    ("pickle", "Is it free of pickles, which run code when they are opened?", file_checks.pickles),
    ("schema", "Is guarantee.json a guarantee, in a form that this version reads?", paper_checks.schema),
    ("seed", "Was the noise secret, with no seed given?", paper_checks.seed),
    ("values", "Do guarantee, report, card, metadata and cover sheet say what the values say?", paper_checks.values),
    ("prices", "Do ε, δ and whom the guarantee protects follow from what was charged?", paper_checks.prices),
    ("receipt", "Is the receipt of this very run, and of the files that it published?", paper_checks.receipt),
    ("versions", "Are the versions stated, and are they those of the run?", paper_checks.versions),
    ("skops", "Does the model open without any type that would have to be trusted?", file_checks.skops_model),
    (
        "onnx",
        "Is the ONNX model made of standard operators alone, with the inputs that the package states?",
        file_checks.onnx_model,
    ),
)
_CONTAINER: Final = (
    "Can the package be read without harm: no link, no name that leads elsewhere, no file that unpacks to far more "
    "than its size?"
)


@dataclass(frozen=True, slots=True)
class ExportCheck:
    """What was found of one package: `checks` in their order, and the SHA-256 of the manifest, if there is one.
    `not_asked`: codes of checks whose option was not given, or whose file need not be there; the verdict does without.
    """

    checks: tuple[Finding, ...]
    digest: str | None = None
    not_asked: frozenset[str] = frozenset()

    @property
    def failed(self) -> bool:
        """Whether any check failed."""
        return any(check.outcome is Outcome.FAILED for check in self.checks)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """The checks that the verdict needs and that did not run."""
        return tuple(
            check for check in self.checks if check.outcome is Outcome.NOT_RUN and check.code not in self.not_asked
        )

    @property
    def passed(self) -> bool | None:
        """Whether the package passed; None where nothing failed, but a check that is needed did not run."""
        if self.failed:
            return False
        return None if self.undecided else True

    @property
    def counted(self) -> str:
        """How the checks ended, counted."""
        ended = [check.outcome for check in self.checks]
        return ", ".join(
            f"{ended.count(outcome):,} {outcome}" for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.NOT_RUN)
        )

    def tree(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "passed": self.passed,
            "manifest_sha256": self.digest,
            "checks": [
                {key: value for key, value in check.answer_tree().items() if key != "ran"} for check in self.checks
            ],
        }


def check_export(
    path: Path, *, ledger: Path | None = None, digest: str | None = None, most_bytes: int = MOST_BYTES
) -> ExportCheck:
    """Check a package, zip file or folder, that somebody else made.

    `ledger`: from ``quorate ledger export``; the receipt is held against the whole chain then. `digest`: the sum of the
    manifest, as its owner sent it by another way. `most_bytes`: that it may unpack to. Raises PreconditionFailed.
    """
    if not path.exists():
        raise PreconditionFailed(f"there is no package at {path}")
    try:
        files = read_package(path, most_bytes=most_bytes)
    except UnsafePackageError as error:
        evidence = failed(
            f"{error}. Nothing of it was unpacked.", "Do not open it with other programs; ask for a new package."
        )
        return ExportCheck((_check("container", _CONTAINER, evidence, read_package),))
    opened = _check("container", _CONTAINER, passed(f"{len(files):,} files were read into memory."), read_package)
    return check_files(files, opened=opened, ledger=ledger, digest=digest)


def check_files(
    files: Mapping[str, bytes],
    *,
    opened: Finding | None = None,
    ledger: Path | None = None,
    digest: str | None = None,
) -> ExportCheck:
    """Check the files of a package, by name; see :func:`check_export`."""
    stated = sum_of(files[MANIFEST]) if MANIFEST in files else None
    entries = None if ledger is None else paper_checks.entries_of(ledger)
    checks = [] if opened is None else [opened]
    for code, question, look in _QUESTIONS:
        checks.append(_check(code, question, _looked(look, files), look))
    checks.append(
        _check(
            "chain",
            "Does the whole ledger hold the receipt, with these charges, prices and scopes?",
            _looked(partial(paper_checks.chain, entries=entries), files),
            paper_checks.chain,
        )
    )
    checks.append(
        _check(
            "digest",
            "Is the manifest the one whose sum its owner sent by another way?",
            _digest(stated, digest),
            _digest,
        )
    )
    absent = {"digest": digest is None, "chain": ledger is None, "skops": SKOPS not in files, "onnx": ONNX not in files}
    return ExportCheck(tuple(checks), stated, frozenset(code for code, out in absent.items() if out))


def _looked(look: Callable[[Mapping[str, bytes]], Finding], files: Mapping[str, bytes]) -> Finding:
    """Look, and take whatever a strange file breaks for a no: nobody has seen then that it is in order."""
    try:
        return look(files)
    except file_checks.UnreadableError as error:
        return failed(str(error))
    except Exception as error:  # noqa: BLE001 - a file from elsewhere may hold anything
        return failed(f"The check broke off at what it read ({type(error).__name__}).")


def _digest(digest: str | None, expected: str | None) -> Finding:
    if expected is None:
        return not_run(
            "Somebody who changes the package and its manifest together is seen by this sum alone.",
            "Ask the owner for the sum that quorate export printed, and give it with --digest.",
        )
    if digest == expected.strip().lower():
        return passed("It is the same sum, which stands for every byte of the package.")
    return failed("It is another sum.", "Do not accept the package; ask its owner for the one that was meant.")


def _check(code: str, question: str, answer: Finding, look: Callable[..., Any]) -> Finding:
    ran = name_of(look) if answer.outcome in (Outcome.PASSED, Outcome.FAILED) else None
    return replace(answer, code=code, words=question, ran=ran)

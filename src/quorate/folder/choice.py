"""Which method a run has where ``quorate.toml`` leaves it open: chosen once, and kept beside that file.

The choice follows from ``quorate.toml`` and the public files alone: ``choose_method`` of ``run/public_facts.py``, or
the first row of a plan. It is kept when a run begins, so that every later command and a resumed run go the same way,
whatever a later version would choose. Until something is charged, an edit of ``quorate.toml`` asks for a new one. It
holds public facts, as ``quorate.toml`` does.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from quorate.arguments import for_shell
from quorate.errors import QuorateError
from quorate.folder.folder import RunFolder
from quorate.plugins import METHODS
from quorate.release.charge import TUNING
from quorate.run.public_facts import ChosenMethod, MethodName

CHOICE = "chosen-method.json"
_BEGUN = "the run was begun so"
_BY_THE_PLAN = "it is the first row of quorate plan"


@dataclass(frozen=True, slots=True)
class Choice:
    """A method that was chosen, and why, with the `settings` that the planner chose beside it, by section."""

    method: ChosenMethod
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def in_words(self) -> str:
        """What a command says of it."""
        words = f"method: {self.method.in_words}"
        count, mechanism = self.settings.get("teachers", {}).get("count"), self.settings.get("mechanism")
        if count is None or mechanism is None:
            return words
        model = self.settings["teachers"].get("model")
        of_model = "" if model is None else f' (model = "{model}")'
        return f"{words}: {count:,} teachers{of_model} by {mechanism['name']} on {mechanism['queries']:,} queries"


def nothing_chosen(root: Path) -> str:
    """Say that a run has no method yet, and which command chooses one."""
    leaves = 'this run has no method yet: [method] by = "auto" leaves the choice to quorate run'
    return f"{leaves}. Type: quorate run {for_shell(root)}"


def is_open(document: Mapping[str, Any]) -> bool:
    """Whether ``quorate.toml`` leaves the method to the rule."""
    method = document.get("method", {})
    return isinstance(method, Mapping) and method.get("by", "auto") == "auto"


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the content hash of what ``quorate.toml`` says."""
    return blake2b(json.dumps(document, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def with_choice(document: Mapping[str, Any], choice: Choice) -> dict[str, Any]:
    """Return the document with a choice filled in."""
    filled = {name: dict(section) if isinstance(section, Mapping) else section for name, section in document.items()}
    if choice.method == "votes" and "schema" not in document:  # one price for adding, removing and replacing
        filled.get("method", {}).pop("neighbours", None)
    for name, section in {"method": {"by": choice.method.by}, **choice.settings}.items():
        filled[name] = {**filled.get(name, {}), **section}
    return filled


def choice_of_begun(document: Mapping[str, Any], folder: Path, *, asks_for_votes: bool) -> Choice | None:
    """Return the choice that a run has kept, or was begun with; None where it begins, or the document has a method.
    `asks_for_votes`: whether the document has keys of votes alone: after an edit they go before a direct run. A run
    that was begun before choices were kept is one of votes.
    """
    if not is_open(document):
        return None
    kept, digest = _kept(folder)
    if kept is not None and digest == digest_of(document):
        return kept
    begun = _begun_by(RunFolder(folder))
    if begun is None:
        return None
    choice = kept if kept is not None else Choice(ChosenMethod(begun, _BEGUN))
    return None if asks_for_votes and choice.method == "direct" else choice


def _kept(folder: Path) -> tuple[Choice | None, str]:
    """Return what is kept, and for which document; None where there is nothing that can be read."""
    try:
        kept = json.loads((folder / CHOICE).read_text(encoding="utf-8"))
        settings = {name: dict(section) for name, section in kept["choice"].items()}
        method = ChosenMethod(settings.pop("method")["by"], kept.get("why", _BY_THE_PLAN))
        return Choice(method, settings), kept["for"]
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""


def _begun_by(folder: RunFolder) -> MethodName | None:
    """Return the method of a run that has teachers or a charge, and that says of no method by itself."""
    try:
        if folder.may_have_begun and folder.ledger_url is None:
            with folder.look_into_ledger() as ledger:
                purposes = [set(charge.purposes) for charge in ledger.reservations()]
            runs = [run for run in purposes if run != {TUNING}]  # an estimate for a plan begins no run
            if runs:
                return next((name for name, method in METHODS.items() if method.purpose in runs[-1]), "votes")
    except QuorateError:  # held by a run, or damaged: the command itself says so
        return "votes"
    teachers = any(folder.private.glob("teachers-*.stage"))
    return "votes" if teachers or (folder.ledger_url is not None and folder.has_published) else None


def keep_choice(choice: Choice, folder: Path) -> None:
    """Keep a choice beside ``quorate.toml``, durably, for what that says."""
    from quorate.release.keys import write_atomically

    document = tomllib.loads((folder / "quorate.toml").read_text(encoding="utf-8-sig"))
    settings = {"method": {"by": choice.method.by}, **choice.settings}
    kept = {"for": digest_of(document), "why": choice.method.why, "choice": settings}
    write_atomically(folder / CHOICE, (json.dumps(kept, indent=2, ensure_ascii=False) + "\n").encode())

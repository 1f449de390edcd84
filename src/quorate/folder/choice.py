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
from quorate.errors import InvalidParameter, QuorateError
from quorate.folder.data_settings import unit_word
from quorate.folder.folder import RunFolder
from quorate.folder.section import settings_of_section
from quorate.folder.sections import MechanismSettings, MethodSettings, StudentSettings, TeacherSettings
from quorate.plugins import METHODS
from quorate.release.charge import TUNING
from quorate.run.public_facts import ChosenMethod, MethodName, choose_method, refuse_of_other_method
from quorate.voting.models import EARLIER_TEACHER

CHOICE = "chosen-method.json"
_WRITTEN_BEFORE = {("teachers", "model"): EARLIER_TEACHER}  # by an earlier `init`
_OF_DRAWN_POOLS = ("marginals", "neighbours")  # keys that votes have, too, where [schema] stands for public rows
_OF_DIRECT = tuple(  # keys of [method] that votes never have
    key for key in settings_of_section(MethodSettings) if key not in ("by", *_OF_DRAWN_POOLS)
)
_OF_BOTH = {"decision_threshold"}  # keys of sections of teachers that hold for both methods
_OF_TEACHERS = {"teachers": TeacherSettings, "mechanism": MechanismSettings, "student": StudentSettings}
_RUN_OF_TEACHERS = ("n_jobs", "allow_hopeless")
_OF_NUMBERS = {("teachers", "model"), ("teachers", "count"), ("mechanism", "queries")}  # keys that their votes have
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


def with_method(document: Mapping[str, Any], choice: Choice | None) -> tuple[Mapping[str, Any], Choice | None]:
    """Return the document with its method filled in, where it leaves it open, and the choice: the one that was made
    already, else the rule's; None where public rows are rehearsed on first.
    """
    if not is_open(document):
        return document, choice
    if choice is None:
        by_rule = method_by_rule(document)
        choice = None if by_rule is None else Choice(by_rule)
    return (document if choice is None else with_choice(document, choice)), choice


def method_by_rule(document: Mapping[str, Any], *, n_labelled: int | None = None) -> ChosenMethod | None:
    """Return the method that public facts choose; None where labelled public rows are rehearsed on first."""
    data = document.get("data", {})
    keys = _keys_of_votes(document)
    if "target" in data and not keys:
        return ChosenMethod("direct", "[data] target is a number, and nothing of teachers is given")
    of_direct = [f"[method] {key}" for key in _OF_DIRECT if not _left_open(key, document)]
    declared = {key: value for key in ("n_records", "n_rows") if isinstance(value := data.get(key), int)}
    unit, unit_name = data.get("unit"), data.get("unit_name")
    text = [word for word in (unit_name, unit_word(unit) if isinstance(unit, str) else None) if isinstance(word, str)]
    if not all(key in data for key in ("public", "evaluation", "n_records")):  # the planner needs all three
        n_labelled = 0
    return choose_method(
        of_votes=keys,
        of_direct=of_direct,
        n_labelled=n_labelled,
        grouped=unit is not None,
        drawn="public" not in data and "schema" in document,
        unit=text[0] if text else "record",
        **declared,
    )


def choice_of_begun(document: Mapping[str, Any], folder: Path) -> Choice | None:
    """Return the choice that a run has kept, or was begun with; None where it begins, or the document has a method.
    Keys of votes alone, which an edit may have added, go before a direct run. A run that was begun before choices were
    kept is one of votes.
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
    return None if choice.method == "direct" and _keys_of_votes(document) else choice


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


def check_method(method: MethodSettings, document: Mapping[str, Any], *, by_choice: bool) -> None:
    """Refuse what belongs to the other method: it would be obeyed by nothing. `by_choice`: whether the method was
    chosen, by rules that look at what belongs to teachers.
    """
    by, section = method.by, document.get("method", {})
    is_number = "target" in document.get("data", {})
    if by == "votes" and is_number and "public" not in document.get("data", {}):
        raise InvalidParameter(
            "[data] public is required: votes for a number are on public rows, and a [schema] stands in their place "
            'for the direct method alone; give public, or set [method] by = "direct"'
        )
    none, direct = f'and [method] by = "{by}" has none', '[method] by = "direct"'
    lacking = _lacking_for_numbers(document) if by == "votes" and is_number else []
    changed = [] if method.may_have_teachers or by_choice else _changed_for_teachers(document)
    of_direct = [f"[method] {key}" for key in section if by == "votes" and not _of_votes(key, document)]
    others = [f"[method] {key}" for key in section if not (_has(by, key) or _left_open(key, document))]
    for names, *words in (
        (lacking, "votes for classes", "and [data] target is a number", "label and classes"),
        (changed, "votes of teachers", none, 'by = "votes"'),
        (of_direct, "the direct method", "and this run has teachers", direct),
        (others, "other methods", none, direct),
    ):
        if names:
            refuse_of_other_method(names, *words)
    if method.neighbours == "add-or-remove" and "n_records" not in document.get("data", {}):
        raise InvalidParameter(
            '[method] neighbours = "add-or-remove" needs the number of private units declared: where it is read off '
            "the data, only replacing a unit is covered. Write it into [data] n_records, or leave neighbours out"
        )


def _lacking_for_numbers(document: Mapping[str, Any]) -> list[str]:
    """Name what votes for a number have no use for."""
    others = [f"[{section}] {key}" for section, key in _not_as_written(document) if (section, key) not in _OF_NUMBERS]
    return [*others, *(f"[run] {key}" for key in ("memory", "allow_hopeless") if key in document.get("run", {}))]


def _changed_for_teachers(document: Mapping[str, Any]) -> list[str]:
    """Name what the owner wrote for teachers; what stands there as `init` writes it says nothing, nor does n_rows."""
    changed = [
        key for key, value in _not_as_written(document).items() if value != _WRITTEN_BEFORE.get(key, _as_written(*key))
    ]
    others = [f"[{section}] {key}" for section, key in changed]
    return [*others, *(f"[run] {key}" for key in _RUN_OF_TEACHERS if key in document.get("run", {}))]


def _keys_of_votes(document: Mapping[str, Any]) -> list[str]:
    """Name what asks for votes of teachers by being given; how many processes or how much memory does not."""
    return [f"[{section}] {key}" for section, key in _not_as_written(document)]


def _not_as_written(document: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Return the keys of teachers' sections, with values that are neither the default nor what `init` writes."""
    return {
        (section, key): value
        for section in _OF_TEACHERS
        for key, value in document.get(section, {}).items()
        if key not in _OF_BOTH and value != _as_written(section, key)
    }


def _as_written(section: str, key: str) -> Any:
    """Return what `init` writes for a key; its default where it writes none."""
    known = settings_of_section(_OF_TEACHERS[section]).get(key)
    return None if known is None else known.example if known.written else known.default


def _has(by: str, key: str) -> bool:
    """Whether a method that has no teachers, or none yet, has a key of ``[method]``."""
    keys = METHODS[by].keys if by in METHODS else None
    return keys is None or key in ("by", *keys)


def _of_votes(key: str, document: Mapping[str, Any]) -> bool:
    """Whether votes have a key of ``[method]``; on public rows they have one price for every change of a unit."""
    return key == "by" or _left_open(key, document) or (key in _OF_DRAWN_POOLS and bool(document.get("schema")))


def _left_open(key: str, document: Mapping[str, Any]) -> bool:
    """Whether nothing is said by a key of ``[method]``: it stands there with its default, or not at all."""
    default = settings_of_section(MethodSettings)[key].default
    value = document.get("method", {}).get(key, default)
    return bool((tuple(value) if isinstance(value, list) else value) == default)

"""``quorate.toml``: what a run is asked to do, read strictly.

An unknown key is an error that names the nearest one; a value of the wrong kind says which key, what it got and
what was expected. Paths are relative to the file. The file holds public facts alone, so it may be printed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from quorate.arguments import for_shell
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.choice import Choice, check_method, choice_of_begun, with_method
from quorate.folder.data_settings import DataSettings, data_settings
from quorate.folder.folder import RunFolder
from quorate.folder.section import no_section, read_section, settings_of_section
from quorate.folder.sections import (
    BudgetSettings,
    MechanismSettings,
    MethodSettings,
    RunSettings,
    StudentSettings,
    TeacherSettings,
    check_strategy,
    check_teachers,
)
from quorate.folder.table_source import (
    refuse_missing_files,
    refuse_names_without_columns,
    refuse_private_again,
    same_source,
)
from quorate.run.public_facts import ChosenMethod, named_method
from quorate.students.decision_threshold import DecisionThreshold, check_decision_threshold, require_pool

DECISION_THRESHOLD = "[student] decision_threshold"
SECTIONS: Final[Mapping[str, type]] = MappingProxyType(  # in the order of a new file
    {
        "data": DataSettings,
        "method": MethodSettings,
        "budget": BudgetSettings,
        "teachers": TeacherSettings,
        "mechanism": MechanismSettings,
        "student": StudentSettings,
        "run": RunSettings,
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The whole of ``quorate.toml``, checked."""

    data: DataSettings
    budget: BudgetSettings
    method: MethodSettings = field(default_factory=MethodSettings)
    schema: Mapping[str, Any] | None = None
    teachers: TeacherSettings = field(default_factory=TeacherSettings)
    mechanism: MechanismSettings = field(default_factory=MechanismSettings)
    student: StudentSettings = field(default_factory=StudentSettings)
    run: RunSettings = field(default_factory=RunSettings)
    choice: Choice | None = None  # of the method, where the file leaves it open and it was chosen
    folder: Path = field(default=Path(), repr=False, compare=False)
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)  # the file as it is written

    @property
    def chosen(self) -> ChosenMethod | None:
        """The method, with its reason; None where a rehearsal on labelled public rows is to choose it."""
        if self.choice is not None:
            return self.choice.method
        return None if self.method.by == "auto" else named_method(self.method.by)

    def with_choice(self, choice: Choice) -> Settings:
        """Return what the file says where this method is chosen."""
        return settings_from(self.document, folder=self.folder, choice=choice)

    @property
    def share(self) -> tuple[float, float]:
        """ε and δ of this run: what ``[run]`` says, and else the whole budget."""
        return self.run.epsilon or self.budget.epsilon, self.run.delta or self.budget.delta


def keys_of(settings: Settings) -> dict[str, str]:
    """Return the keys of ``quorate.toml`` by what they are called in Python, a share of the budget by its own."""
    shares = {name: f"[run] {name}" for name in ("epsilon", "delta") if getattr(settings.run, name) is not None}
    own = {name: f"[mechanism] {name}" for name in settings.mechanism.fields}
    of_votes = {"text": "[teachers] text", "sigma": "[mechanism] sigma"}
    return {**KEYS_BY_ARGUMENT, **(of_votes if settings.method.may_have_teachers else {}), **shares, **own}


def _keys_by_argument() -> dict[str, str]:
    """Return the keys by what they are called in Python; where two are called so, the one whose section comes first."""
    names = {argument: f"[{section}] {key}" for argument, (section, key) in _places_of_arguments().items()}
    return {**names, "n_queries": names["queries"], "schema": "[schema]"}


def _places_of_arguments() -> dict[str, tuple[str, str]]:
    places: dict[str, tuple[str, str]] = {}
    for section in ("method", "budget", "teachers", "mechanism", "student", "data", "run"):
        for key, known in settings_of_section(SECTIONS[section]).items():
            places.setdefault(known.argument, (section, key))
    return places


def arguments_of(settings: Settings, config: type) -> dict[str, Any]:
    """Return what the keys say by the fields of a method's configuration that are called as they are in Python."""
    places, (epsilon, delta) = _places_of_arguments(), settings.share
    derived = {
        "epsilon": epsilon,
        "delta": delta,
        "unit": settings.data.whose,
        "memory": settings.run.bytes_allowed,
        "dialect": settings.data.dialect,
    }
    names = [part.name for part in fields(config)]
    said = {name: getattr(getattr(settings, section), key) for name, (section, key) in places.items() if name in names}
    return {**said, **{name: value for name, value in derived.items() if name in names}}


KEYS_BY_ARGUMENT: Final = MappingProxyType(_keys_by_argument())


def read_settings(path: Path) -> Settings:
    """Read and check ``quorate.toml``; QuorateError says in one line what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # Notepad of Windows begins with a mark
    except FileNotFoundError:
        raise PreconditionFailed(
            f"there is no quorate.toml in {path.parent}; write one: quorate init {for_shell(path.parent)}"
        ) from None
    except PermissionError:
        raise PreconditionFailed(f"no permission to read {path}; ask its owner for it") from None
    except (OSError, UnicodeDecodeError):
        raise PreconditionFailed(
            f"{path} cannot be read as UTF-8 text; save it as UTF-8, or write another with: quorate init"
        ) from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PreconditionFailed(f"{path} is not valid TOML: {error}{_what_to_write(text, error)}") from None
    _check_sections(document, path.parent)
    begun = choice_of_begun(document, path.parent)
    settings = settings_from(document, folder=path.parent, choice=begun)
    refuse_private_again(settings.data)
    return settings


def _what_to_write(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Return what a line that is no TOML was probably meant to be."""
    at, said = re.search(r"at line (\d+)", str(error)), str(error)
    line = text.splitlines()[int(at[1]) - 1] if at is not None and int(at[1]) <= len(text.splitlines()) else ""
    name, equals, value = line.partition("=")
    if said.startswith("Cannot overwrite") or "twice" in said:
        return f"; {name.strip() or 'a key'} stands there twice: keep one of the lines"
    if "\\" in line and '"' in line:
        return "; a path is written with forward slashes, or in single quotes: 'C:\\data\\rows.csv'"
    if (said.startswith("Illegal character") and "\\n" in said) or said.startswith("Unterminated string"):
        return "; a quotation mark of this line is not closed"
    bare = re.fullmatch(r"[A-Za-z0-9_.\s-]*|\s*([\"']).*\1\s*", name) and not re.match(r"\s*[\w-]+[ \t]+\w", name)
    if equals and not bare:
        return f'; a name with blanks, umlauts or other signs stands in quotation marks: "{name.strip()}" ='
    if re.search(r"[\[=,\s]\d{1,2}\.\d{1,2}\.\d{4}", value):
        return "; dates are written as 2023-01-31"
    if re.match(r"\s*(n_\w+|count|queries|rounds)\s*=\s*\d{1,3}([., ']\d{3})+\s*(#|$)", line):
        return "; whole numbers are written without marks: 3000"
    if re.search(r"=\s*\d+,\d", line):
        return "; decimals are written with a point: 1.0"
    if re.match(r"\s*(epsilon|delta|n_records|n_rows|sigma|memory)\b", line):
        return "; a number is expected"
    return '; texts need quotes: "no"' if said.startswith("Invalid value") else ""


def settings_of(root: Path) -> Settings:
    """Read the settings of a run that is to be made, and refuse files that are not there, before any file is read."""
    settings = read_settings(root / "quorate.toml")
    if not RunFolder(root).has_published:  # of a finished run they may be those of the next release
        refuse_more_than_the_cap(settings)
    data = settings.data
    refuse_missing_files({"[method] feature_map": settings.method.feature_map}, data, root)
    for key in ("public", "evaluation"):
        other = getattr(data, key)
        if data.calibration is not None and other is not None and same_source(data.calibration, other):
            how = "give a share of them, calibration_of_evaluation = 0.5, in place of calibration"
            how = how if key == "evaluation" else "split them in two, or leave calibration out"
            raise InvalidParameter(
                f"[data] calibration is the file of [data] {key}, and "
                f"{'intervals are read off' if data.range is not None else 'a temperature is fitted on'} rows that are "
                f"in neither: {how}"
            )
    refuse_names_without_columns(data)
    return settings


def settings_from(document: Mapping[str, Any], *, folder: Path, choice: Choice | None = None) -> Settings:
    """Check a parsed document; paths become relative to `folder`. `choice`: of the method, where the document leaves it
    open and it was chosen already; by default by the rule.
    """
    _check_sections(document, folder)
    written = document
    document, choice = with_method(document, choice)

    read = _read_sections(document, folder)
    check_method(read["method"], document, by_choice=choice is not None)
    check_strategy(read["mechanism"])
    check_teachers(read["teachers"], document)
    data, student = data_settings(document, folder, others=SECTIONS), read["student"]
    threshold = _decision_threshold(student.decision_threshold, data)
    read["student"] = replace(student, decision_threshold=threshold)
    schema = document.get("schema")
    return Settings(data=data, schema=schema, choice=choice, folder=folder, document=written, **read)


def _read_sections(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Read every section but ``[data]``, each by itself."""
    own, known = _mechanism_fields(document), settings_of_section(MechanismSettings)
    read: dict[str, Any] = {}
    for name, section in SECTIONS.items():
        given, how = document.get(name, {}), dict[str, Any]()
        if name == "mechanism":
            how = {"more": own, "fields": {key: value for key, value in given.items() if key not in known}}
        if name != "data":
            read[name] = read_section(name, given, section, folder, others=SECTIONS, **how)
    return read


def _check_sections(document: Mapping[str, Any], folder: Path) -> None:
    """Refuse what is no section of a run."""
    sections = {*SECTIONS, "schema"}
    if "sites" in document:
        raise InvalidParameter(
            f"{folder / 'quorate.toml'} lists [[sites]], whose votes are added up, and there is no run to check, start "
            f"or look at; the command is: quorate votes combine {for_shell(folder)}"
        )
    for name, section in document.items():
        if name not in sections:
            raise InvalidParameter(no_section(name, sections))
        if not isinstance(section, Mapping):
            raise InvalidParameter(f"quorate.toml: [{name}] must be a section, got {section!r}")


def _decision_threshold(given: Any, data: DataSettings) -> DecisionThreshold:
    """Read from which probability on the rarer class is predicted, and refuse a rule that nothing can be made of."""
    rule = check_decision_threshold(given, data.classes, data.class_shares, name=DECISION_THRESHOLD)
    require_pool(rule, data.public is not None, data.class_shares, name=DECISION_THRESHOLD)
    return rule


def _mechanism_fields(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of the mechanism that [mechanism] names; those of noisy counts where the recipe is to choose. A class
    of the user's own is not imported to read a file: what else stands there is its fields, or is refused where it is
    made.
    """
    section = document.get("mechanism", {})
    name = section.get("name", "auto")
    if isinstance(name, str) and ":" in name:
        return tuple(section)
    if name == "auto" and section.keys() <= settings_of_section(MechanismSettings).keys():
        return ()  # so that a command that only looks at a run need not load what would make one
    from quorate.mechanisms import for_runs, user_fields
    from quorate.mechanisms.schedule import DEFAULT

    kind = DEFAULT if name == "auto" else for_runs().get(str(name))
    return () if kind is None else user_fields(kind)


def refuse_more_than_the_cap(settings: Settings) -> None:
    """Refuse a share of one run that is above the cap for all runs together; nothing but the settings is read. A ledger
    is opened with what ``[budget]`` says, and raised to it, so that the file knows a raised cap as well.
    """
    run, cap = settings.run, settings.budget
    pairs = (("epsilon", run.epsilon, cap.epsilon), ("delta", run.delta, cap.delta))
    above = [(name, share, most) for name, share, most in pairs if share is not None and share > most]
    if above:
        text = " and ".join(
            f"[run] {name} = {share!r} is above [budget] {name} = {most!r}" for name, share, most in above
        )
        keys = " and ".join(name for name, _, _ in above)
        raise InvalidParameter(
            f"{text}: [budget] is the cap for all runs together, and [run] the part of this one. Lower [run] {keys} to "
            f"the cap or below, or raise [budget] {keys}; a ledger that is there already then asks for a reason: "
            f"quorate ledger open {for_shell(settings.folder)} --raise-budget REASON"
        )

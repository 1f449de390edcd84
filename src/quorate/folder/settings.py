"""``quorate.toml``: what a run is asked to do, read strictly.

An unknown key is an error that names the nearest one; a value of the wrong kind says which key, what it got and
what was expected. Paths are relative to the file. The file holds public facts alone, so it may be printed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from quorate.arguments import for_shell
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.choice import Choice, choice_of_begun, is_open, with_choice
from quorate.folder.data_settings import DataSettings, data_settings, unit_word, without_dropped
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
    Source,
    is_there,
    refuse_names_without_columns,
    refuse_private_again,
    same_source,
    source,
)
from quorate.plugins import METHODS
from quorate.run.public_facts import ChosenMethod, choose_method, named_method, refuse_of_other_method
from quorate.students.decision_threshold import DecisionThreshold, check_decision_threshold, require_pool
from quorate.voting.models import EARLIER_TEACHER

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
_WRITTEN_BEFORE = {("teachers", "model"): EARLIER_TEACHER}  # by an earlier `init`
_OF_DRAWN_POOLS = ("marginals", "neighbours")  # keys that votes have, too, where [schema] stands for public rows
_OF_DIRECT = tuple(  # keys of [method] that votes never have
    key for key in settings_of_section(MethodSettings) if key not in ("by", *_OF_DRAWN_POOLS)
)
_OF_BOTH = {"decision_threshold"}  # keys of sections of teachers that hold for both methods
_SECTIONS_OF_TEACHERS = ("teachers", "mechanism", "student")
_JOBS = ("n_jobs", "jobs")
_RUN_OF_TEACHERS = (*_JOBS, "allow_hopeless")
_OF_NUMBERS = {("teachers", "model"), ("teachers", "count"), ("mechanism", "queries")}  # keys that their votes have


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

    @property
    def chosen(self) -> ChosenMethod | None:
        """The method, with its reason; None where a rehearsal on labelled public rows is to choose it."""
        if self.choice is not None:
            return self.choice.method
        return None if self.method.by == "auto" else named_method(self.method.by)

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
    begun = choice_of_begun(document, path.parent, asks_for_votes=bool(_keys_of_votes(document)))
    settings = settings_from(document, folder=path.parent, choice=begun)
    refuse_private_again(settings.data)
    return settings


def _what_to_write(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Return what a line that is no TOML was probably meant to be."""
    at = re.search(r"at line (\d+)", str(error))
    line = text.splitlines()[int(at[1]) - 1] if at is not None and int(at[1]) <= len(text.splitlines()) else ""
    if re.search(r"=\s*\d+,\d", line):
        return "; decimals are written with a point: 1.0"
    if re.match(r"\s*(epsilon|delta|n_records|n_rows|sigma|memory)\b", line):
        return "; a number is expected"
    return '; texts need quotes: "no"' if str(error).startswith("Invalid value") else ""


def no_file(key: str, path: Path, root: Path) -> str:
    """Say that a file of ``quorate.toml`` in `root` is missing, by its path as typed, and which one may be meant."""
    typed = path.relative_to(root) if path.is_relative_to(root) else path
    where = "" if typed.is_absolute() else " beside quorate.toml"
    try:
        near = get_close_matches(path.name, sorted(file.name for file in path.parent.iterdir()), n=1, cutoff=0.7)
    except OSError:
        near = []
    meant = f'did you mean "{typed.with_name(near[0])}"?' if near else "write its path relative to quorate.toml"
    return f'{key}: there is no file "{typed}"{where}; {meant}'


def settings_of(root: Path) -> Settings:
    """Read the settings of a run that is to be made, and refuse files that are not there, before any file is read."""
    settings = read_settings(root / "quorate.toml")
    if not RunFolder(root).has_published:  # of a finished run they may be those of the next release
        refuse_more_than_the_cap(settings.run, root, epsilon=settings.budget.epsilon, delta=settings.budget.delta)
    data = settings.data
    files = {f"[data] {key}": table for key, table in data.tables.items()}
    for name, path in {**files, "[method] feature_map": settings.method.feature_map}.items():
        if path is not None and not isinstance(path, str) and not is_there(path):
            raise PreconditionFailed(no_file(name, path if isinstance(path, Path) else path.file, root))
    refuse_names_without_columns(data)
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
    return settings


def settings_from(document: Mapping[str, Any], *, folder: Path, choice: Choice | None = None) -> Settings:
    """Check a parsed document; paths become relative to `folder`. `choice`: of the method, where the document leaves it
    open and it was chosen already; by default by the rule.
    """
    _check_sections(document, folder)
    if is_open(document):
        if choice is None:
            by_rule = method_by_rule(document)
            choice = None if by_rule is None else Choice(by_rule)
        document = document if choice is None else with_choice(document, choice)

    sections = {name: document.get(name, {}) for name in SECTIONS}
    method = _method_settings(document, folder, by_choice=choice is not None)
    teachers = read_section("teachers", sections["teachers"], TeacherSettings, folder, others=SECTIONS)
    check_teachers(teachers, document)
    own = _mechanism_fields(document)
    known = settings_of_section(MechanismSettings)
    mechanism = read_section(
        "mechanism", sections["mechanism"], MechanismSettings, folder, more=own, others=SECTIONS,
        fields={key: value for key, value in sections["mechanism"].items() if key not in known},
    )  # fmt: skip
    check_strategy(mechanism)
    student = read_section("student", sections["student"], StudentSettings, folder, others=SECTIONS)
    public = _public(sections["data"], document, folder)
    data = without_dropped(data_settings(sections["data"], folder, public=public, others=SECTIONS), document)
    return Settings(
        data=data,
        budget=read_section("budget", sections["budget"], BudgetSettings, folder, others=SECTIONS),
        method=method,
        schema=document.get("schema"),
        teachers=teachers,
        mechanism=mechanism,
        student=replace(student, decision_threshold=_decision_threshold(student.decision_threshold, data)),
        run=read_section("run", _with_new_names(sections["run"]), RunSettings, folder, others=SECTIONS),
        choice=choice,
    )


def _check_sections(document: Mapping[str, Any], folder: Path) -> None:
    """Refuse what is no section of a run."""
    sections = {part.name for part in fields(Settings)} - {"choice"}
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


def method_by_rule(document: Mapping[str, Any], *, n_labelled: int | None = None) -> ChosenMethod | None:
    """Return the method that public facts choose; None where labelled public rows are rehearsed on first."""
    data = document.get("data", {})
    keys = _keys_of_votes(document)
    if "target" in data and not keys:
        return ChosenMethod("direct", "[data] target is a number, and nothing of teachers is given")
    declared = {key: value for key in ("n_records", "n_rows") if isinstance(value := data.get(key), int)}
    unit, unit_name = data.get("unit"), data.get("unit_name")
    text = [word for word in (unit_name, unit_word(unit) if isinstance(unit, str) else None) if isinstance(word, str)]
    if not all(key in data for key in ("public", "evaluation", "n_records")):  # the planner needs all three
        n_labelled = 0
    return choose_method(
        of_votes=keys,
        of_direct=[f"[method] {key}" for key in _OF_DIRECT if not _left_open(key, document)],
        n_labelled=n_labelled,
        grouped=unit is not None,
        drawn="public" not in data and "schema" in document,
        unit=text[0] if text else "record",
        **declared,
    )


def _decision_threshold(given: Any, data: DataSettings) -> DecisionThreshold:
    """Read from which probability on the rarer class is predicted, and refuse a rule that nothing can be made of."""
    rule = check_decision_threshold(given, data.classes, data.class_shares, name=DECISION_THRESHOLD)
    require_pool(rule, data.public is not None, data.class_shares, name=DECISION_THRESHOLD)
    return rule


def _public(data: Mapping[str, Any], document: Mapping[str, Any], folder: Path) -> Source | None:
    """Read where the public rows are; a declared schema may stand in their place."""
    if "public" in data:
        if "schema" in document:
            raise InvalidParameter(
                "[schema] takes the place of public rows, and [data] public names some; leave out one of them"
            )
        return source(data, "public", folder)
    if not document.get("schema"):
        raise InvalidParameter(
            "[data] public is required, or a [schema] that tells what the columns hold. Examples: "
            'public = "survey.csv"; age = [0, 120] and sex = ["F", "M"] under [schema]'
        )
    return None


def _method_settings(document: Mapping[str, Any], folder: Path, *, by_choice: bool) -> MethodSettings:
    """Read ``[method]``, and refuse what belongs to the other method: it would be obeyed by nothing. `by_choice`:
    whether the method was chosen, by rules that look at what belongs to teachers.
    """
    section = document.get("method", {})
    method = read_section("method", section, MethodSettings, folder, others=SECTIONS)
    is_number = "target" in document.get("data", {})
    if method.by == "votes" and is_number:
        _refuse_what_numbers_lack(document)
    by = method.by
    if not method.may_have_teachers and not by_choice and (others := _changed_for_teachers(document)):
        refuse_of_other_method(others, "votes of teachers", f'and [method] by = "{by}" has none', 'by = "votes"')
    elif by == "votes" and (more := [f"[method] {key}" for key in section if not _of_votes(key, document)]):
        refuse_of_other_method(more, "the direct method", "and this run has teachers", '[method] by = "direct"')
    elif others := [f"[method] {key}" for key in section if not (_has(by, key) or _left_open(key, document))]:
        refuse_of_other_method(others, "other methods", f'and [method] by = "{by}" has none', '[method] by = "direct"')
    if method.neighbours == "add-or-remove" and "n_records" not in document.get("data", {}):
        raise InvalidParameter(
            '[method] neighbours = "add-or-remove" needs the number of private units declared: where it is read off '
            "the data, only replacing a unit is covered. Write it into [data] n_records, or leave neighbours out"
        )
    return method


def _refuse_what_numbers_lack(document: Mapping[str, Any]) -> None:
    """Refuse what votes for a number have no use for, or cannot do without."""
    if "public" not in document.get("data", {}):
        raise InvalidParameter(
            "[data] public is required: votes for a number are on public rows, and a [schema] stands in their place "
            'for the direct method alone; give public, or set [method] by = "direct"'
        )
    others = [f"[{section}] {key}" for section, key in _not_as_written(document) if (section, key) not in _OF_NUMBERS]
    others += [f"[run] {key}" for key in ("memory", "allow_hopeless") if key in document.get("run", {})]
    if others:
        refuse_of_other_method(others, "votes for classes", "and [data] target is a number", "label and classes")


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
        for section in _SECTIONS_OF_TEACHERS
        for key, value in document.get(section, {}).items()
        if key not in _OF_BOTH and value != _as_written(section, key)
    }


def _as_written(section: str, key: str) -> Any:
    """Return what `init` writes for a key; its default where it writes none."""
    known = settings_of_section(SECTIONS[section]).get(key)
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


def refuse_more_than_the_cap(run: RunSettings, root: Path, *, epsilon: float, delta: float) -> None:
    """Refuse a share of one run that is above the cap for all runs together; nothing but the settings is read. A ledger
    is opened with what ``[budget]`` says, and raised to it, so that the file knows a raised cap as well.
    """
    pairs = (("epsilon", run.epsilon, epsilon), ("delta", run.delta, delta))
    above = [(name, share, cap) for name, share, cap in pairs if share is not None and share > cap]
    if above:
        text = " and ".join(
            f"[run] {name} = {share!r} is above [budget] {name} = {cap!r}" for name, share, cap in above
        )
        keys = " and ".join(name for name, _, _ in above)
        raise InvalidParameter(
            f"{text}: [budget] is the cap for all runs together, and [run] the part of this one. Lower [run] {keys} to "
            f"the cap or below, or raise [budget] {keys}; a ledger that is there already then asks for a reason: "
            f"quorate ledger open {for_shell(root)} --raise-budget REASON"
        )


def _with_new_names(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read ``[run] jobs``, as version 0.1 wrote it, as ``n_jobs``."""
    run = dict(section)
    if "jobs" in run:
        if "n_jobs" in run:
            raise InvalidParameter("[run] has n_jobs and jobs, which is its name of version 0.1; leave out jobs")
        run["n_jobs"] = run.pop("jobs")
    return run

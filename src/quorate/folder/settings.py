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
from typing import Any, Final, Literal, NoReturn

from quorate.arguments import for_shell, nearest, one_of, real
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.folder.choice import with_kept_choice
from quorate.folder.command_section import COMMAND_KEYS, command_fields
from quorate.folder.data_settings import (
    DataSettings,
    Source,
    data_settings,
    refuse_names_without_columns,
    same_source,
    source,
)
from quorate.folder.folder import RunFolder
from quorate.folder.prompt_section import KEYS, prompt_fields
from quorate.folder.run_settings import RunSettings, refuse_more_than_the_cap, run_settings
from quorate.folder.section import ARGUMENT, Section
from quorate.folder.template import as_init_writes
from quorate.labelling.active import NAMES
from quorate.students.decision_threshold import DecisionThreshold, check_decision_threshold, require_pool
from quorate.voting.models import DEFAULT_TEACHER, EARLIER_TEACHER, METHODS, SHARES, TEACHER_MODELS

Auto = Literal["auto"]

STUDENT_MODELS = ("auto", "logistic", "forest", "boosting", "shares")
DECISION_THRESHOLD = "[student] decision_threshold"
OWN_CLASS = 'A class of your own is written "package.module:Class"'
WAYS = ("votes", "direct", "auto")
_VOTES_BEFORE = "teachers"  # what `init` wrote of 0.2.0.dev0 for "votes"; folders that have it mean the same
_WRITTEN_BEFORE = {("teachers", "model"): EARLIER_TEACHER}  # by an earlier `init`
_OF_EITHER = {"votes": ("by",), "auto": ("by", "neighbours")}  # keys of [method] that need not be the direct one's
_OF_THE_PLANNER = {"teachers": ("count",), "mechanism": ("name", "queries", "strategy")}
_OF_BOTH = {"decision_threshold"}  # keys of sections of teachers that hold for both methods
_SECTIONS_OF_TEACHERS = ("teachers", "mechanism", "student")
_RUN_OF_TEACHERS = ("n_jobs", "jobs", "memory", "scheduler", "plain_tcp", "shared_folder", "allow_hopeless")


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodSettings:
    """``[method]``: what learns from the private rows, and for the direct method how."""

    by: Literal["votes", "direct", "auto"] = "votes"  # auto until the planner has chosen
    feature_map: str | Path = "auto"  # a path names a fitted transformer, written by skops
    text: tuple[str, ...] = ()
    rounds: int | None = None
    clip: float | None = None
    marginals: float | None = None
    neighbours: Literal["auto", "add-or-remove", "replace"] = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetSettings:
    """``[budget]``: what the ledger is opened with."""

    epsilon: float
    delta: float
    composition: Literal["sum", "zcdp"] = "sum"


@dataclass(frozen=True, kw_only=True, slots=True)
class TeacherSettings:
    """``[teachers]``: who votes."""

    model: str = field(default=DEFAULT_TEACHER, metadata={ARGUMENT: "teacher"})
    count: int | Auto = field(default="auto", metadata={ARGUMENT: "n_teachers"})
    partition: Literal["auto", "hash", "balanced", "unit"] = "auto"
    prior_matching: bool = False
    batched: bool = True
    fields: Mapping[str, Any] = field(default_factory=dict)  # of teachers that are prompts or a command


@dataclass(frozen=True, kw_only=True, slots=True)
class MechanismSettings:
    """``[mechanism]``: what crosses the boundary, and how often."""

    name: str = field(default="auto", metadata={ARGUMENT: "mechanism"})
    queries: int | Literal["auto", "all"] = "auto"
    strategy: str = "random"
    online_answers: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class StudentSettings:
    """``[student]``: what may be published."""

    model: str = field(default="auto", metadata={ARGUMENT: "student"})
    method: str = "auto"
    shares: Literal["linear", "kernel", "gaussian-process", "trees", "smooth", "auto"] = "linear"
    declined: Literal["drop", "random"] = "drop"
    decision_threshold: DecisionThreshold = "accuracy"


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


def keys_of(settings: Settings) -> dict[str, str]:
    """Return the keys of ``quorate.toml`` by what they are called in Python.

    A share of the budget is ``[run]`` where it stands there, and a mechanism's fields are those that were given.
    """
    shares = {name: f"[run] {name}" for name in ("epsilon", "delta") if getattr(settings.run, name) is not None}
    return {**KEYS_BY_ARGUMENT, **shares, **{name: f"[mechanism] {name}" for name in settings.mechanism.fields}}


def _keys_by_argument() -> dict[str, str]:
    """Return the keys by what they are called in Python; those of a budget go before those of a run's share."""
    sections = {
        "run": RunSettings, "data": DataSettings, "budget": BudgetSettings, "method": MethodSettings,
        "teachers": TeacherSettings, "mechanism": MechanismSettings, "student": StudentSettings,
    }  # fmt: skip
    keys = ((name, part) for name, section in sections.items() for part in fields(section))
    names = {part.metadata.get(ARGUMENT, part.name): f"[{name}] {part.name}" for name, part in keys}
    return {**names, "n_queries": names["queries"]}


KEYS_BY_ARGUMENT: Final = MappingProxyType(_keys_by_argument())


def read_settings(path: Path) -> Settings:
    """Read and check ``quorate.toml``.

    Raises PreconditionFailed if the file is missing or is not TOML; InvalidParameter if a key is unknown or missing, or
    a value is of the wrong kind.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # Notepad of Windows begins with a mark
    except FileNotFoundError:
        raise PreconditionFailed(f"no quorate.toml in {path.parent}; write one with: quorate init") from None
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
    return settings_from(with_kept_choice(document, path.parent), folder=path.parent)


def _what_to_write(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Return what a line that is no TOML was probably meant to be."""
    at = re.search(r"at line (\d+)", str(error))
    line = text.splitlines()[int(at[1]) - 1] if at is not None and int(at[1]) <= len(text.splitlines()) else ""
    if re.search(r"=\s*\d+,\d", line):
        return "; decimals are written with a point: 1.0"
    if re.match(r"\s*(epsilon|delta|n_records|n_rows|sigma|memory)\b", line):
        return "; a number is expected"
    return '; texts need quotes: "no"' if str(error).startswith("Invalid value") else ""


def settings_of(root: Path) -> Settings:
    """Read the settings of a run that is to be made, and refuse files that are not there, before any file is read.

    `root`: the run's folder. Raises PreconditionFailed, InvalidParameter as :func:`read_settings` does, and if a file
    of ``[data]`` is missing; DataRefused if the public rows are the private file again.
    """
    settings = read_settings(root / "quorate.toml")
    if not RunFolder(root).has_published:  # of a finished run they may be those of the next release
        refuse_more_than_the_cap(settings.run, epsilon=settings.budget.epsilon, delta=settings.budget.delta)
    data = settings.data
    files = {"[data] private": data.private, "[data] public": data.public, "[data] evaluation": data.evaluation}
    for name, path in {**files, "[method] feature_map": settings.method.feature_map}.items():
        if path is not None and not isinstance(path, str) and not path.exists():
            raise PreconditionFailed(f"{name} names {getattr(path, 'file', path)}, and there is no such file")
    refuse_names_without_columns(data)
    if data.public is not None and same_source(data.private, data.public):
        raise DataRefused(
            "[data] public is the private file again; every row of the pool is published, in effect. Give rows that "
            "may be shown and are about nobody in the private table"
        )
    return settings


def settings_from(document: Mapping[str, Any], *, folder: Path) -> Settings:
    """Check a parsed document; paths become relative to `folder`."""
    sections = {part.name for part in fields(Settings)}
    if "sites" in document:
        raise InvalidParameter(
            f"{folder / 'quorate.toml'} lists [[sites]], whose votes are added up, and there is no run to check, start "
            f"or look at; the command is: quorate votes combine {for_shell(folder)}"
        )
    for name, section in document.items():
        if name not in sections:
            raise InvalidParameter(f"quorate.toml: unknown section [{name}]{nearest(name, sections)}")
        if not isinstance(section, Mapping):
            raise InvalidParameter(f"quorate.toml: [{name}] must be a section, got {section!r}")

    method = _method_settings(document, folder)
    data = Section("data", document, DataSettings)
    budget = Section("budget", document, BudgetSettings)
    teachers = Section("teachers", document, TeacherSettings, more=(*KEYS, *COMMAND_KEYS))
    command = command_fields(document, teachers)
    prompts = {} if command else prompt_fields(document, teachers, folder)
    mechanism = Section("mechanism", document, MechanismSettings, more=_mechanism_fields(document))
    _check_strategy(mechanism.given)
    student = Section("student", document, StudentSettings)
    described = _without_dropped(data_settings(data, folder, public=_public(data, method, document, folder)), document)
    return Settings(
        data=described,
        budget=BudgetSettings(
            epsilon=real("[budget] epsilon", budget.required("epsilon"), above=0),
            delta=real("[budget] delta", budget.required("delta"), above=0, below=1),
            composition=budget.choice("composition", ("sum", "zcdp")),  # type: ignore[arg-type]
        ),
        method=method,
        schema=document.get("schema"),
        teachers=TeacherSettings(
            model=teachers.text("model") if prompts else teachers.model("model", TEACHER_MODELS),
            count=teachers.count_or("count", ("auto",), at_least=1),  # type: ignore[arg-type]
            partition=teachers.choice("partition", ("auto", "hash", "balanced", "unit")),  # type: ignore[arg-type]
            prior_matching=teachers.flag("prior_matching"),
            batched=teachers.flag("batched"),
            fields=command or prompts,
        ),
        mechanism=MechanismSettings(
            name=mechanism.named("name", _mechanism_names(document), hint=OWN_CLASS),
            queries=mechanism.count_or("queries", ("auto", "all"), at_least=1),  # type: ignore[arg-type]
            strategy=mechanism.choice("strategy", tuple(NAMES)),
            online_answers=mechanism.count("online_answers"),
            fields={key: mechanism.given[key] for key in mechanism.given if key not in mechanism.defaults},
        ),
        student=StudentSettings(
            model=student.model("model", STUDENT_MODELS),
            method=student.choice("method", METHODS),
            shares=student.choice("shares", SHARES),  # type: ignore[arg-type]
            declined=student.choice("declined", ("drop", "random")),  # type: ignore[arg-type]
            decision_threshold=_decision_threshold(student, described),
        ),
        run=run_settings(document, folder),
    )


def _decision_threshold(student: Section, data: DataSettings) -> DecisionThreshold:
    """Read from which probability on the rarer class is predicted, and refuse a rule that nothing can be made of."""
    given = student.given.get("decision_threshold", "accuracy")
    rule = check_decision_threshold(given, data.classes, data.class_shares, name=DECISION_THRESHOLD)
    require_pool(rule, data.public is not None, name=DECISION_THRESHOLD)
    return rule


def _public(data: Section, method: MethodSettings, document: Mapping[str, Any], folder: Path) -> Source | None:
    """Read where the public rows are; the direct method may have a declared schema in their place."""
    if method.by != "direct":
        if "schema" in document:
            raise InvalidParameter(
                '[schema] is for the direct method without public rows; leave it out, or set [method] by = "direct"'
            )
        return source(data, "public", folder)
    if "public" in data.given:
        if "schema" in document:
            raise InvalidParameter(
                "[schema] is for where there are no public rows to tell what columns hold; leave out [schema] or "
                "[data] public"
            )
        return source(data, "public", folder)
    if not document.get("schema"):
        raise InvalidParameter(
            "[data] public is required, or a [schema] that tells what the columns hold. Examples: "
            'public = "survey.csv"; age = [0, 120] and sex = ["F", "M"] under [schema]'
        )
    return None


def _without_dropped(data: DataSettings, document: Mapping[str, Any]) -> DataSettings:
    """Leave the columns out of all tables that the schema drops."""
    if not document.get("schema"):
        return data
    from quorate.data.declared_schema import DROPPED  # here: who only looks at a run reads no table

    dropped = [name for name, held in document["schema"].items() if held == DROPPED and name not in data.drop]
    return replace(data, drop=(*data.drop, *dropped))


def _method_settings(document: Mapping[str, Any], folder: Path) -> MethodSettings:
    """Read ``[method]``, and refuse what belongs to the other method: it would be obeyed by nothing."""
    method = Section("method", document, MethodSettings)
    by = "votes" if method.given.get("by") == _VOTES_BEFORE else method.choice("by", WAYS)
    if by == "auto":
        _refuse_what_is_chosen(document)
    if by == "direct":
        if others := _changed_for_teachers(document):
            _refuse_of_other_method(others, "votes of teachers", 'and [method] by = "direct" has none', 'by = "votes"')
    elif more := [f"[method] {key}" for key in method.given if key not in _OF_EITHER[by] and not _is_open(key, method)]:
        _refuse_of_other_method(more, "the direct method", "and this run has teachers", '[method] by = "direct"')
    if method.given.get("neighbours") == "add-or-remove" and "n_records" not in document.get("data", {}):
        raise InvalidParameter(
            '[method] neighbours = "add-or-remove" needs the number of private units declared: where it is read off '
            "the data, only replacing a unit is covered. Write it into [data] n_records, or leave neighbours out"
        )
    return MethodSettings(
        by=by,  # type: ignore[arg-type]
        feature_map=_feature_map(method, folder),
        text=method.names("text"),
        rounds=method.optional("rounds", lambda key: method.count(key, at_least=1)),
        clip=method.optional("clip", lambda key: real(f"[method] {key}", method.given[key], above=0)),
        marginals=method.optional(
            "marginals", lambda key: real(f"[method] {key}", method.given[key], at_least=0, below=1)
        ),
        neighbours=method.choice("neighbours", ("auto", "add-or-remove", "replace")),  # type: ignore[arg-type]
    )


def _changed_for_teachers(document: Mapping[str, Any]) -> list[str]:
    """Name what the owner wrote for teachers; what stands there as `init` writes it says nothing, nor does n_rows."""
    written = as_init_writes()
    others = [
        f"[{section}] {key}"
        for section in _SECTIONS_OF_TEACHERS
        for key, value in document.get(section, {}).items()
        if key not in _OF_BOTH and value not in (written[section].get(key), _WRITTEN_BEFORE.get((section, key)))
    ]
    return [*others, *(f"[run] {key}" for key in _RUN_OF_TEACHERS if key in document.get("run", {}))]


def _is_open(key: str, method: Section) -> bool:
    """Whether a key leaves to a method what both know: votes have one price for every change of a unit."""
    return key == "neighbours" and method.given[key] == "auto"


def _refuse_what_is_chosen(document: Mapping[str, Any]) -> None:
    """Refuse what the planner chooses, where it is to choose; what leaves it open, as `init` writes it, may stay."""
    open_: dict[str, Any] = {"teachers": TeacherSettings(), "mechanism": MechanismSettings()}
    chosen = [
        f"[{section}] {key}"
        for section, keys in _OF_THE_PLANNER.items()
        for key in keys
        if key in (given := document.get(section, {})) and given[key] != getattr(open_[section], key)
    ]
    if chosen:
        one = len(chosen) == 1
        named = chosen[0] if one else f"{', '.join(chosen[:-1])} and {chosen[-1]}"
        raise InvalidParameter(
            f'{named} {"is" if one else "are"} what [method] by = "auto" leaves to the planner; leave '
            f'{"it" if one else "them"} out, or set by = "votes"'
        )


def _feature_map(method: Section, folder: Path) -> str | Path:
    """Read a name of a feature map, or the path of a fitted transformer."""
    given = method.given.get("feature_map", "auto")
    if given == "auto":  # so that a command that only looks at a run need not load what makes one
        return "auto"
    if isinstance(given, str) and given.endswith(".skops"):
        return folder / given
    from quorate.data.feature_maps.named import FEATURE_MAPS

    hint = "A fitted transformer of your own is the path of a .skops file"
    return one_of("[method] feature_map", given, FEATURE_MAPS, hint=hint)


def _refuse_of_other_method(others: list[str], whose: str, why: str, instead: str) -> NoReturn:
    """Name in one line all that has to go."""
    *most, last = others
    named = f"{', '.join(most)} and {last}" if most else last
    are, them = ("are", "them") if most else ("is", "it")
    raise InvalidParameter(f"{named} {are} for {whose}, {why}; leave {them} out, or set {instead}")


def _mechanism_fields(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of the mechanism that [mechanism] names; those of noisy counts where the recipe is to choose.

    A class of the user's own is not imported to read a file: what else stands there is its fields, or is refused where
    it is made.
    """
    given = document.get("mechanism", {})
    name = given.get("name", "auto")
    if _is_own(name):
        return tuple(given)
    if name == "auto" and given.keys() <= {part.name for part in fields(MechanismSettings)}:
        return ()  # so that a command that only looks at a run need not load what would make one
    from quorate.mechanisms import for_runs, user_fields
    from quorate.mechanisms.schedule import DEFAULT

    kind = DEFAULT if name == "auto" else for_runs().get(str(name))
    return () if kind is None else user_fields(kind)


def _mechanism_names(document: Mapping[str, Any]) -> tuple[str, ...]:
    name = document.get("mechanism", {}).get("name", "auto")
    if name == "auto" or _is_own(name):
        return ("auto",)
    from quorate.mechanisms import for_runs

    return ("auto", *for_runs())


def _is_own(name: object) -> bool:
    return isinstance(name, str) and ":" in name


def _check_strategy(given: Mapping[str, Any]) -> None:
    """A strategy that learns needs a cap of its own: all points, or the recipe's number, leave nothing to choose."""
    strategy, queries = given.get("strategy", "random"), given.get("queries", "auto")
    if strategy != "random" and isinstance(queries, str):
        raise InvalidParameter(
            f'[mechanism] strategy = "{strategy}" chooses which public rows to ask, so queries must say how many at '
            f"most, got {queries!r}. Example: queries = 300"
        )

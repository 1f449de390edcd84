"""The sections of ``quorate.toml`` but ``[data]``: what is spent, what learns, who votes, what crosses the boundary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from quorate.arguments import column_names, one_of, real
from quorate.errors import InvalidParameter
from quorate.folder.section import as_it_is, built_in_or_own, choice, flag, path, setting, string, whole_number
from quorate.labelling.active import NAMES
from quorate.plugins import METHODS as LEARNING
from quorate.run.public_facts import MethodName
from quorate.students.decision_threshold import DecisionThreshold
from quorate.voting.models import DEFAULT_TEACHER, METHODS, SHARES, TEACHER_MODELS

Auto: TypeAlias = Literal["auto"]

STUDENT_MODELS = ("auto", "logistic", "forest", "boosting", "shares")
OWN_CLASS = 'A class of your own is written "package.module:Class"'
_VOTES_BEFORE = "teachers"  # what `init` wrote of 0.2.0.dev0 for "votes"; folders that have it mean the same
_OF_PROMPTS = (
    "endpoint", "shots", "choose", "instruction", "text", "retries", "connections", "hosts", "api_key_env", "ca_file",
)  # fmt: skip
_OF_COMMANDS = ("command", "files", "keeps_model", "environment")
_OF_BOTH = ("timeout",)  # of prompts and of commands


def _way(name: str, value: Any) -> str:
    return "votes" if value == _VOTES_BEFORE else one_of(name, value, (*LEARNING, "auto"))


def _feature_map(name: str, value: Any) -> str | Path:
    """Read a name of a feature map, or the path of a fitted transformer."""
    if value == "auto":  # so that a command that only looks at a run need not load what makes one
        return "auto"
    if isinstance(value, str) and value.endswith(".skops"):
        return Path(value)
    from quorate.data.feature_maps.composed import FEATURE_MAPS

    return one_of(name, value, FEATURE_MAPS, hint="A fitted transformer of your own is the path of a .skops file")


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodSettings:
    """``[method]``: what learns from the private rows, and for the direct method how."""

    by: MethodName = setting(  # auto until labelled public rows have been rehearsed on
        _way,
        '`"votes"` of teachers on public rows, from which a student is published; `"direct"`, a linear model of the '
        "private rows themselves, by [noisy gradient rounds](../how-to/learn-directly.md); or `\"auto\"`, one of the "
        "two by [public facts](../how-to/which-method.md#the-rule). A key of `[teachers]`, `[mechanism]` or "
        '`[student]` that is not as `quorate init` writes it has `"auto"` take votes. `quorate run` keeps what was '
        'taken in `chosen-method.json`, and a run that was begun goes on with it. With `"direct"` keys of these '
        "sections that stand as `quorate init` writes them, and `[data] n_rows`, say nothing; changed ones (but "
        "for `decision_threshold`), `[run] n_jobs` and `allow_hopeless` are errors",
        default="auto", example="auto", written=True, argument="method",
    )  # fmt: skip
    feature_map: str | Path = setting(
        _feature_map,
        'for `"direct"`, what the model is linear in: `"linear"`, `"rbf"`, `"both"`, `"kernels"`, `"chi2"`, `"trees"`, '
        '`"patches"` ([which for what](../how-to/learn-directly.md#feature-maps)), or `"auto"`. That is `"kernels"` '
        'for numbers and categories of at most 32 values, `"both"` where numbers are one quantity, as pixels are, '
        '`"linear"` for indicators and words; or it is the path of a [transformer of your own]'
        '(../how-to/learn-directly.md#a-transformer-of-your-own), `"map.skops"`',
        default="auto",
    )
    text: tuple[str, ...] = setting(
        column_names,
        'for `"direct"`: columns of running text, whose words are weighed by how rare they are in the public pool',
        default=(),
    )
    rounds: int | None = setting(
        whole_number(at_least=1), 'for `"direct"`: T', default=None, default_words="from public facts"
    )
    clip: float | None = setting(
        partial(real, above=0), 'for `"direct"`: B, the length that the gradient of one unit is cut off at',
        default=None, default_words="from public rows",
    )  # fmt: skip
    private_temperature: bool = setting(
        flag,
        'for `"direct"`: one more round, at the price of the others, counts how often the model is right, by how sure '
        "it is, and its scores are divided by the [temperature](../how-to/calibrated-probabilities.md"
        "#where-no-public-rows-have-labels) that follows",
        default=False,
    )
    marginals: float | None = setting(
        partial(real, at_least=0, below=1),
        "with a `[schema]`: the share of μ² that pays for noisy counts of the columns, from which a pool is drawn; "
        'with `"direct"`, of columns that are mostly numbers and no class that is declared to be rare, noisy sums over '
        "pairs of columns take another .05 to .1, and 0 draws no pool: rows are taken as they are",
        default=None,
        default_words='a tenth, up to .3 for few units; with `"direct"`, of mostly lists of fewer than 2,000 units, '
        "a tenth",
    )  # fmt: skip
    neighbours: Literal["auto", "add-or-remove", "replace"] = setting(
        choice("auto", "add-or-remove", "replace"),
        'for `"direct"`: which change of one unit ε covers, `"add-or-remove"` or `"replace"`, which takes about twice '
        'the noise at the same ε ([why](../theory/neighbours.md)). `"auto"`: add or remove where `[data] n_records` is '
        "declared, replace where the number is read; where the ledger has a relation from an earlier charge, that one. "
        'One that is asked for is charged at the ledger\'s. Votes on '
        "public rows have one price for both, and with a `[schema]` their noisy counts have noise enough "
        "for each by default",
        default="auto", example="auto",
    )  # fmt: skip

    @property
    def may_have_teachers(self) -> bool:
        """Whether keys of teachers say something: votes have them, or may yet be chosen."""
        return self.by in ("votes", "auto")


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetSettings:
    """``[budget]``: what the ledger is opened with."""

    epsilon: float = setting(
        partial(real, above=0),
        "lifetime ε of these data, which is your decision; raised later only with a reason that every report shows",
        example=1.0, required="There is no default: it is your decision. Example: epsilon = 1.0",
    )  # fmt: skip
    delta: float = setting(
        partial(real, above=0, below=1), "lifetime δ, below 1 / number of units", example=1e-6,
        required="There is no default: choose it below 1 / number of records. Example: delta = 1e-6",
    )  # fmt: skip
    composition: Literal["sum", "zcdp"] = setting(
        choice("sum", "zcdp"),
        'how runs on the same data add up: `"sum"` of (ε, δ), or `"zcdp"`. It is fixed when the ledger is opened',
        default="sum", example="sum",
    )  # fmt: skip


def _a_command(name: str, value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise InvalidParameter(
        parameter=name,
        got=value,
        expected='a program and its arguments (["Rscript", "teach.R"] or "Rscript teach.R")',
    )


def _machines(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(host, str) and host for host in value):
        raise InvalidParameter(
            f'{name} must name machines (["llm.hospital.example"]), got {value!r}', parameter=name, got=value
        )
    return tuple(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class TeacherSettings:
    """``[teachers]``: who votes: models that are fitted, prompts to an endpoint, or a command."""

    model: str = setting(
        string,
        '`"auto"`: many teachers of a few rows each, in [coordinates of the public rows]'
        "(../decisions/0072-many-tiny-teachers.md), where noisy votes are released and the public rows are a table of "
        "numbers and categories, and logistic regressions elsewhere. "
        'Or `"logistic"`, `"tree"` (a decision tree grown in full), `"forest"`, `"boosting"`, `"xgboost"` and '
        '`"lightgbm"` (with the [extra](../how-to/boosting-libraries.md) of that name), or '
        '[your own](../how-to/bring-your-own-teacher.md) as `"package.module:factory"`. For a number: `"tree"`, '
        '`"forest"`, `"boosting"` or your own, each a regressor',
        default=DEFAULT_TEACHER, example=DEFAULT_TEACHER, written=True, argument="teacher",
    )  # fmt: skip
    count: int | Auto = setting(
        whole_number("auto", at_least=1), "K, the number of teachers; by default the [recipe](../theory/recipe.md)'s",
        default="auto", example="auto", written=True, argument="n_teachers",
    )  # fmt: skip
    partition: Literal["auto", "hash", "balanced", "unit"] = setting(
        choice("auto", "hash", "balanced", "unit"),
        '`"hash"` (add, remove or replace a unit), `"balanced"` (replace only) or `"unit"` (each unit has a teacher of '
        'its own; add, remove or replace). `"auto"` is `"unit"` where persons have several rows and there are as many '
        'teachers as persons, and `"hash"` elsewhere; see [units](../theory/units-and-partition.md)',
        default="auto", example="auto", written=True,
    )  # fmt: skip
    prior_matching: bool = setting(
        flag,
        "for two classes: each teacher votes for class 1 as often, on the pool, as its shard holds it",
        default=False,
    )
    batched: bool = setting(
        flag,
        "teachers that are plain logistic regression or ridge classification are [solved to their optimum by quorate]"
        "(../how-to/bring-your-own-teacher.md#linear-teachers-are-solved-to-their-optimum), each from its own shard; "
        "`false` leaves them to scikit-learn's solvers. Where nothing is said, a run that was begun goes on as it was "
        "begun",
        default=True, default_words="`true` for a new run",
    )  # fmt: skip
    endpoint: str | None = setting(
        string,
        "teachers are [prompts](../how-to/teachers-by-prompt.md) to a language model, which `model` names, "
        "at this URL, which speaks the chat-completions protocol",
        default=None, example="http://127.0.0.1:8000/v1",
    )  # fmt: skip
    shots: int | None = setting(
        whole_number(at_least=1), "with `endpoint`: rows of its shard in a prompt, at most", default=None,
        default_words="`8`",
    )  # fmt: skip
    choose: str | None = setting(
        choice("random", "similar"),
        'with `endpoint`: the same rows of the shard in each prompt of a teacher; or `"similar"`, those that share '
        "most words with the row asked about",
        default=None, default_words='`"random"`',
    )  # fmt: skip
    instruction: str | None = setting(
        string, "with `endpoint`: what the model is told first; the list of classes follows it", default=None,
        default_words="a short one",
    )  # fmt: skip
    text: str | None = setting(
        string,
        "with `endpoint`: the column whose text stands for the row; without it each column is a line `name: value`",
        default=None,
    )
    command: str | tuple[str, ...] | None = setting(
        _a_command,
        "teachers are calls of [a command](../how-to/commands-as-teachers.md), a list of words or one text, which "
        "takes the place of `model`",
        default=None, example=["Rscript", "teach.R"],
    )  # fmt: skip
    files: str | None = setting(
        choice("csv", "parquet"), 'with `command`: how rows are written for it, `"csv"` or `"parquet"`', default=None,
        default_words='`"csv"`',
    )  # fmt: skip
    keeps_model: bool | None = setting(
        flag,
        "with `command`: whether one call trains and leaves a folder, with which others vote; by default each call "
        "trains anew",
        default=None, default_words="`false`",
    )  # fmt: skip
    environment: tuple[str, ...] | None = setting(
        column_names,
        "with `command`: names of environment variables that it finds, beside `PATH` and those of the language",
        default=None, default_words="`[]`",
    )  # fmt: skip
    timeout: float | None = setting(
        partial(real, above=0),
        "with `endpoint`: seconds for one reply; a later one is an abstention. With `command`: seconds of a call's own "
        "time, after which its processes are killed and the teacher abstains",
        default=None, default_words="`60`; `600`",
    )  # fmt: skip
    retries: int | None = setting(
        whole_number(), "with `endpoint`: how often a request is repeated that broke off or met a busy server",
        default=None, default_words="`2`",
    )  # fmt: skip
    connections: int | None = setting(
        whole_number(at_least=1), "with `endpoint`: requests under way at once", default=None, default_words="`4`"
    )
    hosts: tuple[str, ...] | None = setting(
        _machines,
        "with `endpoint`: other machines that may see private rows. Without it the endpoint must be on this one; "
        "others are asked over https alone",
        default=None,
    )
    api_key_env: str | None = setting(
        string, "with `endpoint`: the environment variable that holds its key; the key itself is kept nowhere",
        default=None,
    )  # fmt: skip
    ca_file: Path | None = setting(
        path, "with `endpoint`: certificates that an https server is verified by", default=None,
        default_words="the system's",
    )  # fmt: skip

    @property
    def fields(self) -> dict[str, Any]:
        """What teachers that are prompts or a command are made with beside the model; nothing for other ones."""
        keys = (*_OF_COMMANDS, *_OF_PROMPTS, *_OF_BOTH)
        return {key: value for key in keys if (value := getattr(self, key)) is not None}


def check_teachers(teachers: TeacherSettings, document: Mapping[str, Any]) -> None:
    """Refuse keys of ``[teachers]`` that do not go with each other; `document`: the whole file."""
    typed = document.get("teachers", {})
    if "command" in typed:
        for key in typed:
            if key not in (*_OF_COMMANDS, *_OF_BOTH, "count", "partition"):
                raise InvalidParameter(
                    f"[teachers] {key} does not go with command, which is the teacher; leave out one of them"
                )
    elif key := next((key for key in _OF_COMMANDS if key in typed), ""):
        raise InvalidParameter(
            f"[teachers] {key} is for teachers that are a command, and there is none; leave it out, or name "
            'one. Example: command = ["Rscript", "teach.R"]'
        )
    elif "endpoint" in typed:
        if key := next((key for key in ("batched", "prior_matching") if key in typed), ""):
            raise InvalidParameter(f"[teachers] {key} is for models that are fitted, and prompts are not; leave it out")
        if "model" not in typed:
            raise InvalidParameter(
                "[teachers] model is required. The name of a language model at the endpoint. Example: model = "
                '"qwen2.5-7b-instruct"'
            )
    elif key := next((key for key in (*_OF_PROMPTS, *_OF_BOTH) if key in typed), ""):
        raise InvalidParameter(
            f"[teachers] {key} is for teachers that are prompts, and there is no endpoint; leave it out, or "
            'name one. Example: endpoint = "http://127.0.0.1:8000/v1"'
        )
    else:
        built_in_or_own("[teachers] model", teachers.model, built_in=TEACHER_MODELS)


def _mechanism(name: str, value: Any) -> str:
    """Read the name of a mechanism, or of the user's own class, which is not imported to read a file."""
    if isinstance(value, str) and (value == "auto" or ":" in value):
        return value
    from quorate.mechanisms import for_runs

    return one_of(name, value, ("auto", *for_runs()), hint=OWN_CLASS)


@dataclass(frozen=True, kw_only=True, slots=True)
class MechanismSettings:
    """``[mechanism]``: what crosses the boundary, and how often."""

    name: str = setting(
        _mechanism,
        'what crosses the boundary, such as `"NoisyCounts"` (noisy votes) or `"GaussianNoisyMax"` (a class) at the '
        'same price, or [your own](../how-to/bring-your-own-mechanism.md) as `"package.module:Class"`',
        default="auto", example="auto", written=True, argument="mechanism",
    )  # fmt: skip
    queries: int | Literal["auto", "all"] = setting(
        whole_number("auto", "all", at_least=1), 'ℓ, public rows to label: a number, `"all"` or `"auto"`',
        default="auto", example="auto", written=True,
    )  # fmt: skip
    strategy: str = setting(
        choice(*NAMES),
        'which rows to ask, up to the number in `queries`: `"random"`; from the answers released so far `"margin"`, '
        '`"disagreement"` or `"oracular-cal"` (two classes); from public rows alone `"k-means"` or `"core-set"`. Noise '
        "and price are those of the number; a run may stop below it",
        default="random", example="random",
    )  # fmt: skip
    online_answers: int = setting(
        whole_number(), "answers kept back for later questions, at the same noise and in the same cap",
        default=0, example=0, written=True,
    )  # fmt: skip
    fields: Mapping[str, Any] = field(default_factory=dict)  # of the mechanism that is named


def check_strategy(mechanism: MechanismSettings) -> None:
    """A strategy that learns needs a cap of its own: all points, or the recipe's number, leave nothing to choose."""
    if mechanism.strategy != "random" and isinstance(mechanism.queries, str):
        raise InvalidParameter(
            f'[mechanism] strategy = "{mechanism.strategy}" chooses which public rows to ask, so queries must say how '
            f"many at most, got {mechanism.queries!r}. Example: queries = 300"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class StudentSettings:
    """``[student]``: what may be published."""

    model: str = setting(
        partial(built_in_or_own, built_in=STUDENT_MODELS),
        'as for teachers; or `"auto"`, where noisy votes are released a vote share linear in coordinates of the public '
        "rows, or, where they have none, the model of vote shares that predicts best, linear or curved; a logistic "
        'regression elsewhere. `"shares"` is the model of vote shares itself, for `"values"` and `"noisy-labels"`',
        default="auto", example="auto", written=True, argument="student",
    )  # fmt: skip
    method: str = setting(
        choice(*METHODS),
        "[how it learns](#ways-to-learn); by default from noisy votes where they are released, else from labels",
        default="auto", example="values", argument="student",
    )  # fmt: skip
    shares: Literal["linear", "kernel", "gaussian-process", "trees", "smooth", "auto"] = setting(
        choice(*SHARES),
        'how vote shares are modelled, for `"values"`: `"linear"`, `"kernel"`, `"gaussian-process"`, `"trees"` '
        '(boosted), or `"auto"`, the one that predicts noisy votes left out best, linear unless another is better by a '
        'standard error; `"smooth"` is `"auto"` without trees; for `"noisy-labels"`: `"linear"` or `"kernel"`',
        default="linear",
    )
    declined: Literal["drop", "random"] = setting(
        choice("drop", "random"),
        'a query that was declined is dropped, or gets a `"random"` class (BTT18); one that was never asked has no '
        "label",
        default="drop", example="drop", written=True,
    )  # fmt: skip
    decision_threshold: DecisionThreshold = setting(
        as_it_is,  # which of them may be given rests on the classes
        "of two classes, from which probability on the rarer one (by `class_shares`, else the second of `classes`) is "
        'predicted: `"accuracy"` is 0.5; `"balanced"` the mean probability over the public pool, or where there is '
        'none the share that `class_shares` declares; `"share"` the one '
        "that as many rows of the pool reach as `class_shares` declares; a number in (0, 1); or what errors cost, as "
        "`{false_negative = 10, false_positive = 1}`, for [calibrated](../how-to/calibrated-probabilities.md) "
        "probabilities. It holds for both "
        "methods, is free of charge, and may be changed after a run: `quorate run` writes the public side anew",
        default="accuracy", example="balanced",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSettings:
    """``[run]``: this run's share of the budget, and where and how it is made."""

    n_jobs: int | None = setting(
        whole_number(at_least=1), "worker processes", default=None, default_words="number of cores", example=2
    )
    memory: float | None = setting(  # gigabytes
        partial(real, above=0),
        "gigabytes of memory that private rows may take; by the direct method half is for cells and half for "
        "coordinates. A CSV, TSV or Parquet file that would take more [is read in parts]"
        "(../limitations.md#where-it-runs); the run is the same, bit for bit",
        default=None,
        default_words='a quarter of the machine\'s memory; 0.54 with `by = "direct"`',
        example=4.0,
    )
    scheduler: str | None = setting(
        string,
        "address of a Dask scheduler, whose workers [train the teachers, or add up the rounds of the direct method]"
        '(../how-to/beyond-one-machine.md): `"tls://host:8786"`; the run is the same, bit for bit',
        default=None, example="tls://host:8786",
    )  # fmt: skip
    plain_tcp: bool = setting(flag, "whether that address may be `tcp://` on another machine", default=False)
    shared_folder: Path | None = setting(
        path, "where private rows and teachers lie meanwhile, on storage that the workers share; relative to the file",
        default=None, default_words="`private/`",
    )  # fmt: skip
    allow_hopeless: bool = setting(
        flag,
        "whether to pay for a run that can answer nothing: even a unanimous vote is unlikely to pass the mechanism's "
        "test, or noise drowns the mean of all answers. Such a run is refused otherwise, before anything is charged",
        default=False,
    )
    epsilon: float | None = setting(
        partial(real, above=0), "what this run may spend of the lifetime ε, where it is to last for several runs",
        default=None, default_words="all of `[budget]`", example=0.5,
    )  # fmt: skip
    delta: float | None = setting(
        partial(real, above=0, below=1), "likewise of δ", default=None, default_words="all of `[budget]`", example=5e-7
    )
    unsafe_noise_seed: int | None = setting(
        whole_number(),
        "reproducible noise, for tests: no privacy at all, every output says so, export is refused", default=None,
        example=1,
    )  # fmt: skip

    @property
    def bytes_allowed(self) -> int | None:
        """Bytes that private rows may take; None where nothing was said."""
        return None if self.memory is None else int(self.memory * 1e9)

"""The text of a new ``quorate.toml``: every key with a comment, and what is known of a run filled in."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from quorate.errors import InvalidParameter

TEMPLATE = """\
# What this run is asked to do. Every line is a public fact; paths are relative to this file.
# Then: quorate check, quorate run.

[data]
private = "private.csv"        # labelled rows to protect: csv, tsv, parquet, arrow, svmlight, npz; or a database
public = "public.csv"          # unlabelled rows that may be shown; the same feature columns
label = "outcome"              # the label's column in the private table
classes = ["no", "yes"]        # every label there may be, declared: reading them off private rows would publish them
# unit = "person_id"           # column that says whose row it is; without it the guarantee is per record
# whole_ids = true             # ids are whole numbers below 2^53, so that a column of floats may hold them
# n_records = 20000            # number of private rows (with unit: of units), if you may publish it; else it is
#                              # read, and said to be public
# n_rows = 60000               # with unit: number of private rows, likewise; teachers follow from units and rows
# evaluation = "evaluation.csv"  # public rows with labels, to score the student for free
# score = "roc_auc"            # what the model is judged by; by default by how rare the classes are: or "accuracy",
#                              # "balanced_accuracy", "average_precision", "f1", "log_loss"
# class_shares = { yes = 0.04 }  # how common classes are, as you may publish it; never read off private rows
# drop = ["name"]              # columns to leave out of all tables
# text = ["notes"]             # running text; likewise categorical, numeric and dates, where the rule on the public
#                              # table is to be overruled
# images = "scans"             # a folder of images, which the tables name in a column "file" (image_column)
# separator = ";"              # between cells of text tables; by default a comma, or a tab where a name ends in .tsv
# encoding = "cp1252"          # of text tables, where it is not UTF-8; cp1252 is that of Windows in Western Europe
# quote = "'"                  # around cells that hold a separator; by default ", and "" is none
# decimal = ","                # of all numbers; by default each public column shows it
# thousands = "."              # between groups of three digits; by default there is no such mark
# date_format = "dd.mm.yyyy"   # the order of day, month and year; ISO 8601 (2024-03-01) is read anyway
# missing = ["k.A.", "-999"]   # cells that stand for no value, beside empty ones
# private_query = "select …"   # where private is the URL of a database; likewise public_query and evaluation_query

[method]
by = "votes"                   # "votes" of teachers on public rows; "direct" fits a linear model on the private rows
#                              # themselves, and takes feature_map, text, rounds and clip here; what stands below of
#                              # teachers then says nothing; "auto" is the first row of quorate plan
# neighbours = "auto"          # "direct": epsilon is for "add-or-remove" or "replace" of a unit; "auto" is the first
#                              # where n_records is declared

[budget]
# epsilon = 1.0                # to be filled in: the cap for the life of these data. There is no default, it is your
#                              # decision; raised later only with a reason that every report shows
# delta = 1e-6                 # to be filled in: below 1 / number of units
# composition = "sum"          # how runs on the same data add up: "sum" of (epsilon, delta), or "zcdp"

[teachers]
model = "auto"                 # "auto": many small ones in coordinates of the public rows; or "logistic", "tree",
#                              # "forest", "boosting", "xgboost", "lightgbm", "package.module:factory" of your own
# command = ["Rscript", "teach.R"]  # in place of model: a command that reads rows and writes votes
count = "auto"                 # number of teachers
# endpoint = "http://127.0.0.1:8000/v1"  # teachers by prompt: model is then the name of a language model there
partition = "auto"             # "hash" or "unit" (add, remove or replace a unit), "balanced" (replace only)

[mechanism]
name = "auto"                  # "GaussianNoisyMax" releases a class, "NoisyCounts" the noisy votes at the same price
#                              # or "package.module:Class" of your own
queries = "auto"               # how many public rows to label: a number, "all" or "auto"
# strategy = "random"          # which ones, up to a number: "random", or chosen from released answers by "margin",
#                              # "disagreement" or "oracular-cal", from public rows alone by "k-means" or "core-set"
online_answers = 0             # answers kept back for later questions, at the same noise, inside the same budget
# sigma = 40.0                 # noise in votes; by default the least that the budget allows

[student]
model = "auto"                 # the model of the noisy votes itself, linear or curved; or as for teachers
# method = "values"            # how it learns, such as "values", "noisy-labels" or "self-training"
declined = "drop"              # a declined answer is dropped, or becomes a "random" class
# decision_threshold = "balanced"  # of two classes: "balanced", "share" (as many as class_shares says) or a number;
#                              # also with "direct", and free of charge after the run too

[run]
# n_jobs = 2                   # processes; by default as many as there are cores
# scheduler = "tls://host:8786"  # of Dask: its workers train the teachers, the results are the same
# memory = 4.0                 # gigabytes for private rows; by default a quarter of the machine's
# epsilon = 0.5                # this run's share, where a budget is to last for several; by default all of it
# delta = 5e-7                 # likewise
# unsafe_noise_seed = 1        # reproducible noise, for tests: no privacy at all, and everything written says so
"""
_COMMENT = 31  # where comments begin


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What is known of a run that is begun; None, or nothing, where it is to be filled in.

    `private`, `public`, `evaluation`: paths, relative to the folder. `label`, `unit`: names of columns. `classes`: in
    order. `drop`: columns to leave out. `likely_unit`: a column that may be the unit, for a line to uncomment.
    `separator` to `missing`: how tables are written. `by`: how the run learns, where that is not left as it stands.
    """

    private: str | None = None
    public: str | None = None
    evaluation: str | None = None
    label: str | None = None
    unit: str | None = None
    classes: tuple[Any, ...] = ()
    drop: tuple[str, ...] = ()
    likely_unit: str | None = None
    separator: str | None = None
    encoding: str | None = None
    quote: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    date_format: str | None = None
    missing: tuple[str, ...] = ()
    n_records: int | None = None
    n_rows: int | None = None
    by: str | None = None
    epsilon: float | None = None
    delta: float | None = None

    @property
    def lacking(self) -> list[str]:
        """Keys without which there is no run, and which nobody has given."""
        needed = {
            "[data] public": self.public, "[data] label": self.label, "[data] classes": self.classes,
            "[budget] epsilon": self.epsilon, "[budget] delta": self.delta,
        }  # fmt: skip
        return [key for key, value in needed.items() if value is None or value == ()]


def as_init_writes() -> dict[str, Any]:
    """Return the sections of a new file, by their names.

    Examples
    --------
    >>> as_init_writes()["student"]
    {'model': 'auto', 'declined': 'drop'}
    """
    return tomllib.loads(TEMPLATE)


def filled(answers: Answers) -> str:
    """Return the text of ``quorate.toml`` with what is known; what is not stands there as a comment to be filled in."""
    known = {
        key: value
        for key in (part.name for part in fields(answers))
        if (value := getattr(answers, key)) is not None and value != ()
    }
    likely = known.pop("likely_unit", None)
    lines, section = [], ""
    for line in TEMPLATE.splitlines():
        section = line.strip("[]") if line.startswith("[") else section
        key = line.removeprefix("# ").partition(" = ")[0]
        if key == "unit" and likely is not None:
            comment = line.rpartition("  # ")[2]
            line = f"# unit = {written(likely)}".ljust(_COMMENT - 1) + f" # {comment}"
        elif section in ("data", "budget") and key in ("private", "public", "label", "classes") and key not in known:
            line = f"# {line}"
        elif section in ("data", "method", "budget") and key in known:
            comment = line.partition("#" if not line.startswith("# ") else "  #")[2].lstrip("# ")
            comment = comment.removeprefix("to be filled in: ")
            line = f"{key} = {written(known.pop(key))}".ljust(_COMMENT - 1) + f" # {comment}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def written(value: Any) -> str:
    r"""Write a value as TOML does.

    Examples
    --------
    >>> written(("no", "yes")), written(True), written(1e-06), written('a "b"')
    ('["no", "yes"]', 'true', '1e-6', '"a \\"b\\""')
    """
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    return repr(value).replace("e-0", "e-")  # as everything that quorate prints has it


def place_of(name: str) -> str:
    """Return the section and the key of that name, or nothing where no line of the text has it.

    Examples
    --------
    >>> place_of("epsilon"), place_of("jobs"), place_of("colour")
    ('[budget] epsilon', '[run] n_jobs', '')
    """
    section = ""
    for line in TEMPLATE.splitlines():
        section = line if line.startswith("[") else section
        key, sign, _ = line.removeprefix("# ").partition(" = ")
        if sign and key.removeprefix("n_") == name.removeprefix("n_"):
            return f"{section} {key}"
    return ""


def suggested_delta(n_records: int | None) -> tuple[float, str]:
    """Suggest δ, and say why: a power of ten, at most a tenth of what gives one unit away.

    Examples
    --------
    >>> suggested_delta(6_000)
    (1e-05, 'at most a tenth of 1/6,000, so that no single one of them is given away')
    >>> suggested_delta(None)[0]
    1e-06
    """
    if n_records is None:
        return 1e-6, "right up to 100,000 units: below a tenth of 1 / number of units"
    delta = float(f"1e-{math.ceil(math.log10(10 * n_records))}")
    return delta, f"at most a tenth of 1/{n_records:,}, so that no single one of them is given away"


def classes_of(words: Sequence[str]) -> tuple[Any, ...]:
    """Read classes as they are typed: whole numbers or truth values where all are, else texts.

    Raises InvalidParameter if there are fewer than two, or one comes twice.

    Examples
    --------
    >>> classes_of(["0", "1"]), classes_of(["no", " yes"]), classes_of(["true", "false"])
    ((0, 1), ('no', 'yes'), (True, False))
    """
    names = [word.strip() for word in words if word.strip()]
    if len(set(names)) < max(2, len(names)):
        raise InvalidParameter(f"classes must be two different ones or more, got {', '.join(names)!r}. Example: no,yes")
    if all(name.lstrip("-").isdigit() for name in names):
        return tuple(int(name) for name in names)
    if all(name in ("true", "false") for name in names):
        return tuple(name == "true" for name in names)
    return tuple(names)

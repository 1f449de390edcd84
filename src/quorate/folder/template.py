"""The text of a new ``quorate.toml``: every key with a comment, and what is known of a run filled in."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from quorate.accounting.figures import several
from quorate.data.labels import TargetRange
from quorate.errors import InvalidParameter, named
from quorate.folder.section import settings_of_section
from quorate.folder.settings import SECTIONS
from quorate.report.notation import visible

HEAD = """\
# What this run is asked to do. Every line is a public fact; paths are relative to this file.
# Then: {commands}. The words are explained in docs/glossary.md.
"""
_COMMENT, _WIDTH = 31, 120  # where comments begin, and end
_FORMS = 'bounds [0, 120], dates [2000-01-01, 2040-01-01], list ["F", "M"], "number", "drop"'  # of a schema
_OF_THE_OWNER = ("epsilon", "delta")  # of [budget]: to be filled in
_OF_THE_TABLES = ("private", "public", "label", "classes")  # of [data], likewise
_MORE = {  # beside the keys of a section: those of the default mechanism
    "mechanism": ("# sigma = 40.0", "noise in votes; by default the least that the budget allows"),
}


def template() -> str:
    """Return the text of a new file of which nothing is known."""
    return filled({key: settings_of_section(SECTIONS["data"])[key].example for key in _OF_THE_TABLES})


def filled(given: Mapping[str, Any]) -> str:
    """Return the text of ``quorate.toml`` with what is known; what is not stands there as a comment to be filled in.
    `given`: values by keys of ``[data]`` and ``[budget]``, None or nothing where there is none; ``likely``: what public
    rows propose for a key, for a line to uncomment; ``schema``: columns that are to be declared.
    """
    known = {key: value for key, value in given.items() if value is not None and value != ()}
    likely, declared = known.pop("likely", {}), known.pop("schema", ())
    steps = ("check", "run") if declared else ("plan", "check", "run")  # a plan follows from public rows
    lines = [HEAD.format(commands=", ".join(f"quorate {step}" for step in steps)).rstrip()]
    for section, shape in SECTIONS.items():
        if section == "method" and declared:
            lines += ["", *schema_of(declared)]
        lines += ["", f"[{section}]"]
        for key, setting in settings_of_section(shape).items():
            if setting.example is None:
                continue
            comment = _without_links(setting.help).partition(". ")[0]
            if setting.default_words and not setting.written:
                words = _without_links(setting.default_words)
                comment += f"; {words}" if words.startswith("required") else f". Default: {words}"
            is_known = section in ("data", "budget") and key in known
            proposed = likely.get(key, setting.example) if section == "data" else setting.example
            value = known.pop(key) if is_known else proposed
            if section == "budget" and key in _OF_THE_OWNER and not is_known:
                comment = f"to be filled in: {comment}"
            is_line = is_known or (setting.written and not (section == "data" and key in _OF_THE_TABLES))
            lines += _commented(f"{'' if is_line else '# '}{key} = {written(value)}", comment)
        lines += _commented(*_MORE[section]) if section in _MORE else []
    return "\n".join(lines) + "\n"


def keys_lacking(given: Mapping[str, Any]) -> list[str]:
    """Return the keys without which there is no run, and which nobody has given; `given` as for :func:`filled`."""
    of_number, schema = (given.get(key) is not None for key in ("target", "range")), given.get("schema", ())
    needed = {
        "data": (*(() if schema else ("public",)), *(("target", "range") if any(of_number) else ("label", "classes"))),
        "budget": _OF_THE_OWNER,
    }
    left = [f"[{section}] {key}" for section, keys in needed.items() for key in keys if given.get(key) in (None, ())]
    return [*left, *[f"[schema] ({several(len(schema), 'column')})"] * bool(schema)]


def schema_of(names: Sequence[str]) -> list[str]:
    """Return the lines of a ``[schema]`` that is to be filled in: a question for each column."""
    questions = (f'{_key(name)} = "?"'.ljust(_COMMENT - 1) + f" # {_FORMS}" for name in names)
    return [
        "[schema]                       # there are no public rows: what each column holds, whoever is in the table.",
        "#                              # Write what is known of the column; what was read off private rows, as by",
        "#                              # df.x.unique() or df.x.min(), must not stand here. Names, ids and running",
        '#                              # text are "drop"',
        *questions,
    ]


def _without_links(text: str) -> str:
    """Return words of a page without its marks and links, as a file of settings has them."""
    text = re.sub(r"\s*\(\[[^]]*\]\([^)]*\)\)", "", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return text.replace("`", "")


def _commented(line: str, comment: str) -> list[str]:
    """Return a line with its comment beside it, and below where that is long."""
    begin, below = f"{line.ljust(_COMMENT - 2)}  # ", f"#{' ' * (_COMMENT - 1)}# "
    first, *rest = textwrap.wrap(
        comment, _WIDTH, initial_indent=" " * len(begin), subsequent_indent=below, break_on_hyphens=False
    )
    return [begin + first.lstrip(), *rest]


def written(value: Any) -> str:
    """Write a value as TOML does."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {written(part)}' for key, part in value.items())} }}"
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    return repr(value).replace("e-0", "e-")  # as everything that quorate prints has it


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else written(name)


def place_of(name: str) -> str:
    """Return the section and the key of that name, or nothing where there is none."""
    for section, shape in SECTIONS.items():
        for key in settings_of_section(shape):
            if section != "method" and key.removeprefix("n_") == name.removeprefix("n_"):
                return f"[{section}] {key}"
    return ""


def suggested_delta(n_records: int | None) -> tuple[float, str]:
    """Suggest δ, and say why: a power of ten, at most a tenth of what gives one unit away."""
    if n_records is None:
        return 1e-6, "right up to 100,000 units: below a tenth of 1 / number of units"
    delta = float(f"1e-{math.ceil(math.log10(10 * n_records))}")
    return delta, f"at most a tenth of 1/{n_records:,}, so that no single one of them is given away"


def classes_of(words: Sequence[str]) -> tuple[Any, ...]:
    """Read two or more classes as they are typed: whole numbers or truth values where all are, else texts.

    >>> classes_of(["0", "1"]), classes_of(["no", " yes"]), classes_of(["true", "false"]), classes_of(["1", "²"])
    ((0, 1), ('no', 'yes'), (True, False), ('1', '²'))
    """
    names = [word.strip() for word in words if word.strip()]
    if len(set(names)) < max(2, len(names)):
        raise InvalidParameter(
            parameter="classes", got=", ".join(names), expected="two different ones or more", advice="Example: no,yes"
        )
    if all(re.fullmatch(r"-?[0-9]+", name) for name in names):
        return tuple(int(name) for name in names)
    if all(name in ("true", "false") for name in names):
        return tuple(name == "true" for name in names)
    return tuple(names)


def range_of(typed: str) -> tuple[float, float]:
    """Read the least and the largest value that a number can have, as they are typed."""
    got = f"got {visible(typed)}" if typed.strip() else "got nothing"
    try:
        low, high = map(float, typed.split(","))
    except ValueError:
        low = high = 0.0
    if not (low < high and math.isfinite(high - low)):
        raise InvalidParameter(
            f"{named('range')} must be the least and the largest value with a comma between, such as 0,5000; {got}"
        )
    try:
        low, high = TargetRange.of((low, high)).ends
    except InvalidParameter:
        raise InvalidParameter(f"the ends of {named('range')} are too close together for their size: {got}") from None
    return (int(low), int(high)) if low.is_integer() and high.is_integer() else (low, high)


def number_of(key: str, text: str) -> float:
    """Read a number as it is typed; InvalidParameter for none."""
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(f"{named(key)}: expected a number with a point, such as 1.0, got {text!r}") from None


def whole_of(key: str, text: str) -> int:
    """Read a whole number as it is typed, also with commas between thousands; InvalidParameter for none."""
    if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", text.strip()):  # thousands; a decimal comma would be another number
        text = text.replace(",", "")
    try:
        return int(text)
    except ValueError:
        raise InvalidParameter(f"{named(key)}: expected a whole number, such as 1000, got {text!r}") from None

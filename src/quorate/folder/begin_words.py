"""What is said of a run that is begun from the columns of a table: beside a question, and once all is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quorate.data.column_kinds import FEWEST_ROWS
from quorate.data.columns import listed
from quorate.data.dialect import PLAIN
from quorate.data.encoding import without_frequent_texts
from quorate.data.formats import is_delimited
from quorate.data.images import image_columns
from quorate.errors import naming
from quorate.folder.data_settings import unit_word, word_of_column
from quorate.folder.settings import KEYS_BY_ARGUMENT
from quorate.folder.template import suggested_delta, written
from quorate.report.notation import visible
from quorate.run.pool_cautions import OF_WRITING, pool_cautions
from quorate.run.remarks import words_on_shares

if TYPE_CHECKING:
    from quorate.folder.begin import Begun


def hint(begun: Begun, key: str) -> str:
    """Return what helps to answer a question."""
    if key == "label":
        if begun.public is None:
            return "the columns are not shown: with no public table to compare it with, the first line may be a row"
        return f"columns: {', '.join(map(visible, begun.names))}"
    if key == "unit" and begun.likely_units:
        looks = "looks" if len(begun.likely_units) == 1 else "look"
        return f"{listed(begun.likely_units)} {looks} like ids of persons, who may have several rows"
    if key == "classes" and (proposal := begun.shown_classes()) is not None:
        return f"{listed(list(proposal[1]))} are the labels of {proposal[0].name}; add those that are missing there"
    if key == "classes":
        column = "the column" if begun.label is None else repr(begun.label)
        return f"if {column} is a number, press Ctrl-C and use --target in place of --label"
    if key == "unit_name" and begun.unit is not None and not begun.default(key):
        return f"without it, reports call one unit {unit_word(begun.unit)!r}, after the column {begun.unit!r}"
    if key == "range" and not begun.number:
        return (
            f"public rows have numbers in {begun.label!r}, so a number is predicted. For classes press Ctrl-C and "
            "add --classes"
        )
    if key == "delta":
        return f"suggested: {_suggested_delta(begun)}"
    return ""


def column_lines(begun: Begun) -> list[str]:
    """Return what is to be said of the columns."""
    lines = list(begun.said_of_dialect) if begun.names_seen else []
    if begun.public is not None:
        lines += _columns(begun, begun.public)
    lines += _taken(begun)
    if begun.is_number and not begun.number:
        lines.append(
            f"public rows have numbers in {begun.label!r}, so a number is predicted, and you declare its range. For "
            "classes add --classes"
        )
    texts_ = [path for path in (begun.public, begun.evaluation) if path is not None and is_delimited(path)]
    if is_delimited(begun.private) and not texts_ and (begun.public is not None or begun.to_declare):
        fill_in = (
            "encoding, decimal, thousands, date_format and missing under [data], where it is not UTF-8 with numbers "
            "such as 1234.5, dates such as 2024-03-01 and empty cells for missing ones. Excel in Western Europe writes "
            "cp1252"
        )
        if begun.dialect.encoding != PLAIN.encoding:
            fill_in = (
                "decimal, thousands, date_format and missing under [data], where its numbers are not written as "
                "1234.5, its dates not as 2024-03-01, or a missing cell is not empty"
            )
        lines.append(f"no public text table shows how {begun.private.name} is written: fill in {fill_in}")
    if begun.to_declare:
        lines.append(
            "there are no public rows: a part of the budget will pay for noisy counts of the columns, and rows "
            "drawn from these stand for public ones. [schema] has a line for each column: write there what it "
            "holds, whoever is in the table, and never what was read off private rows. Where there are public "
            "rows, leave [schema] out and name them in [data] public"
        )
    if (shares := begun.likely.get("class_shares")) is not None:
        lines.append(words_on_shares(f"class_shares = {written(shares)} under [data]"))
    if begun.unit is None and begun.likely_units:
        one = begun.likely_units[0]
        lines.append(
            f"is {listed(begun.likely_units)} whose row it is? One person may have several rows, and without [data] "
            f'unit the guarantee is for one row. If so, write unit = "{one}" under [data], and in unit_name '
            "the word for one, such as patient"
        )
    if begun.unit is not None and begun.unit_name is None:
        lines.append(word_of_column(begun.unit))
    if doubt := begun.doubt("epsilon"):
        lines.append(f"is that meant? {doubt}")
    if begun.delta is None and begun.n_records is not None:
        lines.append(f"delta: {_suggested_delta(begun)}")
    return lines


def _columns(begun: Begun, public: Path) -> list[str]:
    """Say what the public table makes of the columns."""
    pool = begun.pool(public)
    read = begun.kinds(pool)
    kinds = read.kinds
    if len(pool) >= FEWEST_ROWS:
        rare = [name for name in without_frequent_texts(pool) if kinds.get(name) == "category"]
        kinds = {**kinds, **dict.fromkeys(rare, "dropped")}  # none of its values has a share of its own
    lines = [f"{public.name} says what the columns hold:"]
    each_kind = {kind_: [name for name in kinds if kinds[name] == kind_] for kind_ in sorted(set(kinds.values()))}
    lines += [f"{kind_:9} {listed(names)}" for kind_, names in each_kind.items()]
    lines += [
        f"column {name!r} names files of images: uncomment images under [data], with their folder"
        for name in image_columns(pool)
    ]
    with naming({**KEYS_BY_ARGUMENT, **{key: f"# {key}" for key in ("numeric", "dates")}}):  # as the new file has them
        cautions = pool_cautions(pool, public.name, kinds=read)
    lines += [finding.words for finding in cautions if finding.applies and finding.code in OF_WRITING]
    if begun.left_out:
        lines.append(f"left out, since {public.name} has no such column: {listed(begun.left_out)}")
    return lines


def _taken(begun: Begun) -> list[str]:
    """Say what was taken from the labels of a public table, and stands in the file."""
    lines, proposal = [], begun.shown_classes()
    if not begun.classes and proposal is not None:
        lines.append(
            f"classes are the labels of {proposal[0].name}: {listed(list(proposal[1]))}. Write those that are missing "
            "there under [data], too"
        )
    if begun.label is not None and (shares := begun.shown_shares()) is not None:
        lines.append(
            f"class_shares = {written(shares[1])} is taken from the labels of {shares[0].name}, and is published. "
            "Correct it under [data] if you know better from public sources, and never by private rows"
        )
    return lines


def _suggested_delta(begun: Begun) -> str:
    delta, reason = suggested_delta(begun.n_records)
    return f"{written(delta)}, {reason}"

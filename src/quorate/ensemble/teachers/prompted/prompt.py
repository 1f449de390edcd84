"""The template of a prompt: how rows become texts, and texts and labels become a conversation.

A *system* message has the instruction and the list of labels; each example is a *user* message, the row, and an
*assistant* message, the name of its class; a last *user* message is the row to be labelled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.data.cell_text import is_missing
from quorate.data.fixed_types import fixed_types
from quorate.data.rows import kind
from quorate.errors import DataRefused, InvalidParameter
from quorate.stored_names import stored_as

INSTRUCTION = "Label the last row. Rows before it are examples, each with its label."
_CHOOSE = "Answer with exactly one of these labels and nothing else: {labels}"


@stored_as("quorate.ensemble.prompted.prompt.Prompt")
@dataclass(frozen=True, slots=True)
class Prompt:
    """The template, with all that is the same in every prompt.

    `classes`: the names of the classes, in their order; a reply is the class whose name it is, but for surrounding
    blanks and the case of letters, so that two names that differ by these alone, and an empty one, are an
    InvalidParameter. `instruction`: what the model is told first. `text`: the column whose text stands for the row;
    None shows every column as a line ``name: value``, and the only column of a table by its text alone.
    """

    classes: tuple[str, ...]
    instruction: str = INSTRUCTION
    text: str | None = None

    def __post_init__(self) -> None:
        folded = [_folded(name) for name in self.classes]
        if len(set(folded)) != len(folded) or "" in folded:
            raise InvalidParameter(
                "classes must have names that differ by more than blanks and the case of letters, since a reply is "
                "read without regard to them"
            )
        if not isinstance(self.instruction, str) or not self.instruction.strip():
            raise InvalidParameter("instruction must be a text, got an empty one or none")

    def messages(self, examples: Sequence[tuple[str, int]], row: str) -> list[dict[str, str]]:
        """Return the conversation in which the text `row` is to be labelled; `examples`: texts of rows and their class
        codes.
        """
        task = f"{self.instruction}\n{_CHOOSE.format(labels=', '.join(self.classes))}"
        said = [{"role": "system", "content": task}]
        for text, code in examples:
            said.append({"role": "user", "content": text})
            said.append({"role": "assistant", "content": self.classes[code]})
        return [*said, {"role": "user", "content": row}]

    def code_of(self, reply: str) -> int:
        """Return the code of the class that a reply names, and -1 where it is any other text."""
        folded = _folded(reply)
        return next((code for code, name in enumerate(self.classes) if _folded(name) == folded), -1)

    @property
    def most_tokens(self) -> int:
        """How long a reply may be: no token is shorter than a byte."""
        return 16 + max(len(name.encode("utf-8")) for name in self.classes)


def names_of(classes: Sequence[Any]) -> tuple[str, ...]:
    """Return the names under which classes stand in a prompt."""
    return tuple(_cell_text(label) for label in classes)


def row_texts(X: Any, *, text: str | None = None) -> list[str]:
    r"""Return the text that stands for each row: a function of that row and the names of the columns.

    `X`: rows ``(n_rows, n_features)``; columns of an array are called x1, x2 and so on. `text`: the column whose text
    stands for the row, or DataRefused.
    """
    names, rows = _cells(fixed_types(X))
    if text is not None:
        if text not in names:
            raise DataRefused(f"there is no column {text!r} to prompt with; text must name one of the public rows")
        place = names.index(text)
        return [_cell_text(row[place]) for row in rows]
    if len(names) == 1:
        return [_cell_text(row[0]) for row in rows]
    return [
        "\n".join(f"{name}: {' '.join(_cell_text(value).split())}" for name, value in zip(names, row, strict=True))
        for row in rows
    ]


def _cells(X: Any) -> tuple[list[str], list[Sequence[Any]]]:
    match kind(X):
        case "polars":
            return [str(name) for name in X.columns], X.rows()
        case "pandas":
            return [str(name) for name in X.columns], list(X.itertuples(index=False, name=None))
        case "sparse":
            rows = X.toarray().tolist()
        case _:
            rows = np.asarray(X).tolist()
    return [f"x{number + 1}" for number in range(X.shape[1])], rows


def _cell_text(value: Any) -> str:
    """Write one cell, the same whichever type its column has: a whole number without a fraction, nothing for a gap."""
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | float | np.integer | np.floating):
        number = float(value)
        return str(int(value)) if math.isfinite(number) and number.is_integer() else repr(number)
    return str(value)


def _folded(name: str) -> str:
    return name.strip().casefold()

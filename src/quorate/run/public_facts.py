"""What is public about a task before it begins, all that a recipe or a caution may look at; the word for its unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quorate.accounting.neighbouring import LABELS_OF, ONE_LABEL, Relation
from quorate.arguments import count, one_of, real
from quorate.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicFacts:
    """What the recipe may know, or InvalidParameter where a fact is out of range. `n_records`: private units, records,
    or people where rows are grouped; declared, or treated as public; None where neither. `n_public`: distinct public
    points, m. `n_classes`: C. `width`: columns after encoding. `online_answers`: kept back for later questions.
    `n_rows`: private rows, where a unit may have several; None where each unit counts as one row. `neighbours`: for
    which change of one unit ε is; "auto" is add or remove, since the number of units is declared in a plan;
    `why_neighbours`: another reason, as part of a sentence. `tiny`: whether teachers of votes that are released as
    values are tiny ones, of `most_tiny` rows at most; 30 in runs that were begun before. `rare`: declared share of the
    rarer of two classes.
    """

    n_records: int | None
    n_public: int
    n_classes: int
    width: int
    epsilon: float
    delta: float
    online_answers: int = 0
    n_rows: int | None = None
    unit: str = "record"
    neighbours: Literal["auto", "add-or-remove", "replace"] = "auto"
    why_neighbours: str = ""
    tiny: bool = False
    most_tiny: int = 120
    rare: float | None = None

    @property
    def relation(self) -> Relation:
        """For which change of one unit the rounds of the direct method are priced; votes have one price for both."""
        return "replace" if self.neighbours == "replace" else "add-or-remove"

    @property
    def rows(self) -> int | None:
        """Rows that all teachers share: at least one for each unit; None where neither number is known."""
        known = [number for number in (self.n_rows, self.n_records) if number is not None]
        return max(known, default=None)

    def __post_init__(self) -> None:
        for name in ("n_records", "n_rows"):
            if getattr(self, name) is not None:
                count(name, getattr(self, name), at_least=1)
        for name, least in (("n_public", 1), ("n_classes", 2), ("width", 0), ("online_answers", 0), ("most_tiny", 1)):
            count(name, getattr(self, name), at_least=least)
        one_of("neighbours", self.neighbours, ("auto", "add-or-remove", "replace"))
        real("epsilon", self.epsilon, above=0)
        real("delta", self.delta, above=0, below=1)


def unit_of(wish: str | None, *, grouped: bool, labels_only: bool = False) -> str:
    """Return the word for whose data is protected, and refuse one that the rows cannot keep.

    Examples
    --------
    >>> unit_of(None, grouped=True), unit_of(None, grouped=False), unit_of("household", grouped=True)
    ('person', 'record', 'household')
    >>> unit_of(None, grouped=False, labels_only=True), unit_of("patient", grouped=True, labels_only=True)
    ('label', "patient's labels")
    """
    if wish is not None and (not isinstance(wish, str) or not wish.strip()):
        raise InvalidParameter(parameter="unit", got=wish, expected='a word such as "person" or "record"')
    if labels_only:
        return LABELS_OF.format(unit_of(wish, grouped=True)) if grouped else ONE_LABEL
    if wish is None:
        return "person" if grouped else "record"
    if wish != "record" and not grouped:
        raise InvalidParameter(
            f'{wish}s may cross shards: unit is "{wish}" but no groups were given. Without them the guarantee would '
            'hold per record only. Pass groups=, or say unit="record"'
        )
    if wish == "record" and grouped:
        raise InvalidParameter(
            'groups were given, but unit is "record"; leave out groups=, or give the word for whose rows they are'
        )
    return wish

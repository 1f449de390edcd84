"""What a guarantee compares, as a value: two data sets that differ in one unit, and in which way.

Every sentence about neighbours is made from the value. Its text is what ledgers and guarantees hold as JSON, and is
read back here alone, by comparing it with the texts that can be written. A unit that is replaced keeps its identity:
its place in the table, or its id. Somebody with another id in its stead is one unit removed and one added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from quorate.stored_names import stored_as

#: What may happen to one unit. "stated" is a change that only its text describes.
Change: TypeAlias = Literal["add-remove-replace", "add-or-remove", "replace", "replace-labels", "stated"]

#: The two changes whose prices differ where records speak for themselves.
Relation: TypeAlias = Literal["add-or-remove", "replace"]

#: What holds for a change holds for these as well, the most first. Adding or removing and replacing imply nothing of
#: each other at the same price, and have no common weaker change.
IMPLIED: Final[Mapping[Change, tuple[Change, ...]]] = {
    "add-remove-replace": ("add-remove-replace", "add-or-remove", "replace", "replace-labels"),
    "add-or-remove": ("add-or-remove",),
    "replace": ("replace", "replace-labels"),
    "replace-labels": ("replace-labels",),
    "stated": (),
}

OTHER: Final[Mapping[Change, Relation]] = {"add-or-remove": "replace", "replace": "add-or-remove"}

ONE_RECORD: Final = "record"  #: the unit that is one row, known by its position
ONE_LABEL: Final = "label"  #: the unit where labels alone are private and no ids are given
LABELS_OF: Final = "{}'s labels"  #: the unit where labels alone are private and rows have ids

_PHRASE: Final = {
    "add-remove-replace": "add, remove or replace one {}",
    "add-or-remove": "add or remove one {}",
    "replace": "replace one {}",
    "replace-labels": "replace one {}",
}
_ROW_BY_ROW: Final = "one record, that is one row; a person who has several rows is protected for each by itself"
_OWNER: Final = ", as the owner states"

N_IS_PUBLIC: Final = "the number of private units was read off the data and is treated as public"
ROWS_ARE_PUBLIC: Final = (
    "the number of private rows was read off the data and is treated as public: the tables that are compared have as "
    "many rows"
)
#: With these nothing holds for adding or removing a unit: what was read may be another where one comes or goes.
READ_OFF: Final = frozenset({N_IS_PUBLIC, ROWS_ARE_PUBLIC})


@stored_as("quorate.accounting.neighbouring.Neighbouring")
@dataclass(frozen=True, slots=True)
class Neighbouring:
    """The neighbouring relation of a guarantee: which change of one unit it covers.

    Parameters
    ----------
    change : {"add-remove-replace", "add-or-remove", "replace", "replace-labels", "stated"}
        What may happen to one unit. "replace-labels" leaves features as they are. "stated" is a change that `stated`
        alone describes; no other sentence is made about it.
    unit : str
        Whose data may change: ``"record"``, ``"person"``, ``"label"``, ``"person's labels"``.
    stated : str
        The relation as a phrase, as it stands in ledgers and in the JSON of a guarantee.
    owner_states : bool, default False
        Whether it rests on the owner's statement that one unit went to one teacher.

    Examples
    --------
    >>> relation = Neighbouring.of("replace", "person")
    >>> relation.stated, Neighbouring.read("replace one person", "person") == relation
    ('replace one person', True)
    >>> relation.whether
    "Whether any one person's data are used, or other data in their place"
    """

    change: Change
    unit: str
    stated: str
    owner_states: bool = False

    @classmethod
    def of(cls, change: Change, unit: str, *, owner_states: bool = False) -> Neighbouring:
        """Return the relation with its phrase; `change` is any but "stated"."""
        return cls(change, unit, _PHRASE[change].format(unit) + _OWNER * owner_states, owner_states)

    @classmethod
    def read(cls, stated: str, unit: str) -> Neighbouring:
        """Return the relation that a phrase stands for; one that no version wrote is kept as it is stated.

        A unit that is called "label" is taken to be labels alone, which promises less than a record would.
        """
        labels = unit == ONE_LABEL or unit.endswith(LABELS_OF.format(""))
        changes: tuple[Change, ...] = (
            "add-remove-replace",
            "add-or-remove",
            "replace-labels" if labels else "replace",
        )
        known = (cls.of(change, unit, owner_states=owner) for change in changes for owner in (False, True))
        return next((relation for relation in known if relation.stated == stated), cls("stated", unit, stated))

    @property
    def whether(self) -> str:
        """The beginning of the sentence for the person whose data went in."""
        clause = {
            "add-remove-replace": f"whether or not any one {self.unit} is in the data",
            "add-or-remove": f"whether or not any one {self.unit} is in the data",
            "replace": f"whether any one {self._data} used, or {self._another} in {self._its} place",
            "replace-labels": "whichever class any one label names"
            if self.unit == ONE_LABEL
            else f"whichever classes any one {self.unit} name",
            "stated": f"between any two data sets that are neighbours as stated (“{self.stated}”)",
        }[self.change]
        if self.owner_states:
            return f"If each {self._owned} went to exactly one teacher, as the owner states, then {clause}"
        return clause[0].upper() + clause[1:]

    @property
    def worlds(self) -> str:
        """How the two worlds of a pair differ, between which an observer is to tell."""
        return {
            "add-remove-replace": f"one with and one without that {self._owned}",
            "add-or-remove": f"one with and one without that {self._owned}",
            "replace": f"one with that {self._owned} and one with {self._another} in {self._its} place",
            "replace-labels": f"which differ in that {self.unit} alone",
            "stated": "which are neighbours in that sense",
        }[self.change]

    @property
    def changing(self) -> str:
        """The change as a noun: "adding, removing or replacing one person"."""
        noun = {
            "add-remove-replace": f"adding, removing or replacing one {self.unit}",
            "add-or-remove": f"adding or removing one {self.unit}",
            "replace": f"replacing one {self.unit} by another"
            if self.unit == ONE_RECORD
            else f"replacing the data of one {self.unit} by others under the same id",
            "replace-labels": f"changing one {self.unit}",
            "stated": f"the change that is stated (“{self.stated}”)",
        }[self.change]
        return noun + f", where each {self._owned} went to exactly one teacher{_OWNER}" * self.owner_states

    @property
    def any_one(self) -> str:
        """Whom a guarantee in one line is for: "any one person"."""
        if self.change == "stated":
            return self.stated
        replaced = ", replaced by another" if self.unit == ONE_RECORD else " whose data are replaced"
        happens = {"add-or-remove": ", added or removed", "replace": replaced}.get(self.change, "")
        return f"any one {self.unit}{happens}{_OWNER * self.owner_states}"

    @property
    def where(self) -> str:
        """What happens to one unit, as a clause: "one is added or removed"; there is none for the other changes."""
        replaced = "one is replaced by another" if self.unit == ONE_RECORD else "the data of one are replaced"
        return {"add-or-remove": "one is added or removed", "replace": replaced}[self.change]

    @property
    def whose_rows(self) -> str:
        """What a record is, where the guarantee is for one; "" where a unit has all of its rows."""
        return _ROW_BY_ROW * (self.unit == ONE_RECORD)

    @property
    def _owned(self) -> str:
        return self.unit if self.unit == ONE_RECORD else f"{self.unit}'s data"

    @property
    def _data(self) -> str:
        return f"{self.unit} is" if self.unit == ONE_RECORD else f"{self.unit}'s data are"

    @property
    def _another(self) -> str:
        return f"another {self.unit}" if self.unit == ONE_RECORD else "other data"

    @property
    def _its(self) -> str:
        return "its" if self.unit == ONE_RECORD else "their"


def weakest(relations: Iterable[Neighbouring]) -> Neighbouring | None:
    """Return the relation for which guarantees for each of `relations`, all of one unit, hold together; None if
    unknown.
    """
    every = list(dict.fromkeys(relations))
    if len(every) == 1:
        return every[0]
    if not every or len({relation.unit for relation in every}) > 1:
        return None
    common = (change for change in IMPLIED if all(change in IMPLIED[relation.change] for relation in every))
    change = next(common, None)
    owner_states = any(relation.owner_states for relation in every)
    return None if change is None else Neighbouring.of(change, every[0].unit, owner_states=owner_states)


def holds_where_read_off(neighbouring: Neighbouring, caveats: Iterable[str]) -> bool:
    """Whether a relation can hold beside caveats: none that is about adding or removing where a number was read off."""
    return "add-or-remove" not in IMPLIED[neighbouring.change] or READ_OFF.isdisjoint(caveats)

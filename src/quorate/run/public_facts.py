"""What is public about a task before it begins, all that a recipe or a caution may look at; the word for its unit; and
what a run chooses by that where its owner leaves it open: the method, and for which change of one unit it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, TypeAlias

from quorate.accounting.figures import plural
from quorate.accounting.gaussian import mu_of_gaussian
from quorate.accounting.neighbouring import LABELS_OF, ONE_LABEL, Change, Neighbouring, Relation
from quorate.arguments import count, one_of, real
from quorate.errors import InvalidParameter, PreconditionFailed, named
from quorate.plugins import METHODS

# Measured in docs/how-to/which-method.md, "The rule"; reasons in decision 0075.
LABELLED = 100  # public rows with labels, from which a rehearsal on them decides
MANY_ROWS = 10  # rows a unit, above which votes were ahead
FEW_UNITS = 2_000  # declared units, below which votes are taken where nothing tells how many rows each has
NEIGHBOURS: Final = ("auto", "add-or-remove", "replace")  #: what ``neighbours`` may be
MethodName: TypeAlias = str  # of METHODS
WAYS: Final = ("auto", "votes", "direct")  #: what ``method=`` of an estimator may be


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

    @property
    def mu(self) -> float:
        """The μ of Gaussian differential privacy that the budget is worth."""
        return mu_of_gaussian(self.epsilon, self.delta)

    def __post_init__(self) -> None:
        for name in ("n_records", "n_rows"):
            if getattr(self, name) is not None:
                count(name, getattr(self, name), at_least=1)
        for name, least in (("n_public", 1), ("n_classes", 2), ("width", 0), ("online_answers", 0), ("most_tiny", 1)):
            count(name, getattr(self, name), at_least=least)
        one_of("neighbours", self.neighbours, NEIGHBOURS)
        real("epsilon", self.epsilon, above=0)
        real("delta", self.delta, above=0, below=1)


def word_for_unit(unit: object) -> str:
    """Return the word for one unit: one line of text."""
    if not isinstance(unit, str) or not unit.strip() or not unit.isprintable():
        raise InvalidParameter(parameter="unit", got=unit, expected='a word such as "person" or "record"')
    return unit


def unit_of(wish: str | None, *, grouped: bool, labels_only: bool = False) -> str:
    """Return the word for whose data is protected, and refuse one that the rows cannot keep.

    Examples
    --------
    >>> unit_of(None, grouped=True), unit_of(None, grouped=False), unit_of("household", grouped=True)
    ('person', 'record', 'household')
    >>> unit_of(None, grouped=False, labels_only=True), unit_of("patient", grouped=True, labels_only=True)
    ('label', "patient's labels")
    """
    if wish is not None:
        word_for_unit(wish)
    if labels_only:
        return LABELS_OF.format(unit_of(wish, grouped=True)) if grouped else ONE_LABEL
    if wish is None:
        return "person" if grouped else "record"
    if wish != "record" and not grouped:
        raise InvalidParameter(
            f'unit is "{wish}", and no groups were given that say whose each row is: without them the guarantee would '
            'hold for one record only. Give groups=, the column of ids, or say unit="record"'
        )
    if wish == "record" and grouped:
        raise InvalidParameter(
            'groups were given, but unit is "record"; leave out groups=, or give the word for whose rows they are'
        )
    return wish


@dataclass(frozen=True, slots=True)
class ChosenMethod:
    """What learns from the private rows, and `why`, as a part of a sentence; it equals its name."""

    by: MethodName
    why: str

    @property
    def in_words(self) -> str:
        """What a person reads of it."""
        return f"{METHODS[self.by].words}, since {self.why}"

    def __eq__(self, other: object) -> bool:
        return self.by == (other.by if isinstance(other, ChosenMethod) else other)

    def __hash__(self) -> int:
        return hash(self.by)

    def __repr__(self) -> str:
        return f"{self.by}: {self.why}"


def named_method(by: MethodName) -> ChosenMethod:
    """Return a method that its owner named."""
    return ChosenMethod(by, "it was asked for")


def choose_method(
    *,
    of_votes: Sequence[str] = (),
    of_direct: Sequence[str] = (),
    n_labelled: int | None = 0,
    grouped: bool = False,
    n_records: int | None = None,
    n_rows: int | None = None,
    drawn: bool = False,
    unit: str = "record",
) -> ChosenMethod | None:
    """Choose by the first rule that applies; None where a rehearsal on labelled public rows beside a real pool decides.
    `of_votes`, `of_direct`: what was given that one method alone has. `n_records`, `n_rows`: declared ones alone.
    `drawn`: whether the pool is drawn from a schema, where teachers of a few rows each are asked about made-up rows.
    """
    if of_votes:
        return ChosenMethod("votes", f"{_listed(of_votes)} for votes of teachers")
    if of_direct:
        return ChosenMethod("direct", f"{_listed(of_direct)} for the direct method")
    if n_labelled is None or n_labelled >= LABELLED:
        return None
    if not grouped:
        return ChosenMethod("direct", f"where a {unit} is one row it was ahead of votes on most tables measured")
    if n_records is not None and n_rows is None and n_records < FEW_UNITS and not drawn:
        few = f"fewer than {FEW_UNITS:,} {plural(unit)} are declared, and how many rows each has is not (n_rows)"
        return ChosenMethod("votes", few)
    if n_records is None or n_rows is None:
        return ChosenMethod("direct", f"nothing declared says that a {unit} has more than {MANY_ROWS} rows")
    if n_rows > MANY_ROWS * n_records:
        mean = f"a {unit} has {n_rows / n_records:,.0f} rows on average"
        return ChosenMethod("votes", f"{mean}, and above {MANY_ROWS} votes were ahead where it was measured")
    return ChosenMethod("direct", f"with up to {MANY_ROWS} rows a {unit} it was not behind votes where it was measured")


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last} are" if most else f"{last} is"


def refuse_of_other_method(names: Sequence[str], whose: str, why: str, instead: str) -> NoReturn:
    """Name in one line all that was given and another method has alone."""
    leave = "leave them out" if len(names) > 1 else "leave it out"
    raise InvalidParameter(f"{_listed(names)} for {whose}, {why}; {leave}, or set {instead}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenRelation:
    """Which of the two relations a run has: for which its `noise` is least, and for which its ledger is `charged`; both
    None where it was begun before one could be chosen. `both`: whether the price is known for both.
    """

    noise: Relation | None
    charged: Relation | None
    both: bool
    why: str

    def neighbouring(self, unit: str, *, n_was_read: bool) -> Neighbouring:
        """Return what the guarantee compares."""
        before: Change = "replace" if n_was_read else "add-remove-replace"
        return Neighbouring.of(self.charged or before, unit)

    @property
    def other(self) -> Relation | None:
        """The other relation, where its price is known too."""
        if not self.both or self.charged is None:
            return None
        return "replace" if self.charged == "add-or-remove" else "add-or-remove"


#: Of a run that was begun before a relation could be chosen: it goes on as it was charged.
BEGUN_BEFORE = ChosenRelation(
    noise=None, charged=None, both=False, why="the run was begun so, before the relation could be chosen"
)


def choose_relation(wish: object, *, n_was_read: bool, held: Change | None, unit: str) -> ChosenRelation:
    """Return the relation of a run that begins, or refuse it; `held`: that all on the ledger is guaranteed for."""
    chosen = one_of("neighbours", wish, NEIGHBOURS)
    held_words = "" if held is None or held == "stated" else Neighbouring.of(held, unit).changing
    if n_was_read:
        number = f"the number of {plural(unit)} is read off the data"
        if chosen == "add-or-remove":
            raise InvalidParameter(
                f'{named("neighbours")} must be "auto" or "replace" where {number}, got {chosen!r}: with one {unit} '
                f"more or less it would be another. Declare it with {named('n_records')}, or leave "
                f"{named('neighbours')} out",
                parameter="neighbours",
                got=chosen,
            )
        if held == "add-or-remove":
            raise PreconditionFailed(
                f"the ledger's earlier charges hold for {held_words}, and where {number} a run holds for replacing one "
                f"alone; no one guarantee is known for both. Declare {named('n_records')}, or open another ledger"
            )
        return ChosenRelation(noise="replace", charged="replace", both=False, why=number)
    fixed: Relation | None = "add-or-remove" if held == "add-or-remove" else "replace" if held == "replace" else None
    noise: Relation
    if chosen == "auto":
        why = f"the number of {plural(unit)} is declared"
        if fixed == "replace":
            why = f"the ledger's earlier charges hold for {held_words}"
        noise = fixed or "add-or-remove"
        return ChosenRelation(noise=noise, charged=noise, both=True, why=why)
    noise = "add-or-remove" if chosen == "add-or-remove" else "replace"
    why = "it was asked for"
    if fixed not in (None, noise):
        wished = Neighbouring.of(noise, unit).changing
        why = f"the ledger's earlier charges do; the noise is that for {wished}, which was asked for"
    return ChosenRelation(noise=noise, charged=fixed or noise, both=True, why=why)

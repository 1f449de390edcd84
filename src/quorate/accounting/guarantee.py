"""The guarantee as a value: what was promised, to whom, by which rule, and what it does not cover."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import exp, tanh
from pathlib import Path
from typing import Any, Final

from quorate.accounting.attacker import PAIRS, PUBLISHED, closeness, factor, guesses, rounded_up, worlds_told_apart
from quorate.accounting.figures import at_most
from quorate.accounting.neighbouring import OTHER, Neighbouring, holds_where_read_off
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

SEEDED: Final = "the noise was seeded: this run is reproducible, therefore not private, and no guarantee holds"
SEEDED_EARLIER: Final = (
    "an earlier run on the same ledger had seeded noise: what that run wrote is reproducible and has no guarantee"
)
NO_PROMISE: Final = (
    "No promise holds: this run is reproducible, therefore not private. Its noise was drawn from a given seed, and "
    "whoever has the seed can take it away again."
)

_TEXTS = ("unit", "neighbours", "mechanism", "accounting")
_KEYS = ("epsilon", "delta", *_TEXTS, "caveats")  # of the JSON, since version 0.1
_ALSO_KEYS = ("neighbours", "epsilon", "delta")
_SHOWN = 3  # significant digits of a second figure

#: Version of the JSON form, which guarantee.schema.json describes; version 0.1 wrote none, and is read too.
SCHEMA_VERSION: Final = 1


@stored_as("quorate.accounting.guarantee.OtherRelation")
@dataclass(frozen=True, kw_only=True, slots=True)
class OtherRelation:
    """What the same release promises for another relation, such as "replace one person": its own ε, at the same δ."""

    neighbours: str
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("also: epsilon", self.epsilon, at_least=0))
        object.__setattr__(self, "delta", real("also: delta", self.delta, at_least=0, at_most=1))


@stored_as("quorate.accounting.guarantee.Guarantee")
@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A differential-privacy guarantee with everything needed to read it.

    Parameters
    ----------
    epsilon, delta : float
        ε ≥ 0 and δ in [0, 1], data-independent.
    unit : str
        Whose data a neighbouring data set may change: ``"record"``, ``"person"``.
    neighbours : str
        What may happen to one unit, as a phrase: ``"add, remove or replace one person"``.
    mechanism : str
        What was released and with which noise, as a phrase.
    accounting : str
        The rule that priced it, as a phrase.
    caveats : tuple of str
        What voids or limits the guarantee; empty where nothing does.
    seeded : bool, default False
        Whether the noise came from a given seed. Nothing is promised then: ε and δ are what the same release would
        have with secret noise, and every sentence says so. The caveat that says it is added where it is missing, and
        is how the JSON form holds it.
    seeded_earlier : bool, default False
        Whether an earlier run on the same ledger had seeded noise. What that run released is not covered.
    also : tuple of OtherRelation
        What holds for the other of the two relations "add or remove" and "replace", where it is known.

    Attributes
    ----------
    neighbouring : Neighbouring
        `neighbours` as a value, from which sentences are made.

    Raises
    ------
    InvalidParameter
        If a number is out of range or a text is missing; or if it is about adding and removing a unit where a caveat
        says that a number was read off the data.

    Examples
    --------
    >>> guarantee = Guarantee(
    ...     epsilon=1.0, delta=1e-5, unit="person", neighbours="add, remove or replace one person",
    ...     mechanism="977 noisy votes, discrete Gaussian, sigma 116.0", accounting="exact discrete Gaussian",
    ... )
    >>> print(guarantee)
    (ε = 1, δ = 1e-5)-differential privacy per person [add, remove or replace one person]
    >>> Guarantee.from_json(guarantee.to_json()) == guarantee
    True
    >>> guarantee.right_guesses
    732
    """

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    mechanism: str
    accounting: str
    caveats: tuple[str, ...] = ()
    seeded: bool = False
    seeded_earlier: bool = False
    also: tuple[OtherRelation, ...] = ()
    neighbouring: Neighbouring = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, at_least=0))
        object.__setattr__(self, "delta", real("delta", self.delta, at_least=0, at_most=1))
        for name in _TEXTS:
            text = getattr(self, name)
            if not isinstance(text, str) or not text.strip() or "\n" in text:
                raise InvalidParameter(
                    parameter=name, got=text, expected="one line of text", advice="say it in a phrase"
                )
        caveats = self.caveats
        if not isinstance(caveats, tuple) or not all(isinstance(caveat, str) for caveat in caveats):
            raise InvalidParameter("caveats must be a tuple of texts; pass ('…',) or ()")
        for name, caveat in (("seeded_earlier", SEEDED_EARLIER), ("seeded", SEEDED)):
            if getattr(self, name) and caveat not in self.caveats:
                object.__setattr__(self, "caveats", (caveat, *self.caveats))
            object.__setattr__(self, name, caveat in self.caveats)
        object.__setattr__(self, "neighbouring", Neighbouring.read(self.neighbours, self.unit))
        self._check_relations()

    def _check_relations(self) -> None:
        """Refuse figures for adding and removing that what was read off the data rules out, and others than the two."""
        if not isinstance(self.also, tuple) or not all(isinstance(other, OtherRelation) for other in self.also):
            raise InvalidParameter("also must be a tuple of OtherRelation; pass () where no other relation is known")
        if any(not holds_where_read_off(relation, self.caveats) for relation in self._relations):
            raise InvalidParameter(
                "neighbours must be a replacement where a number was read off the data, as a caveat says: no guarantee "
                "holds for adding or removing one unit then"
            )
        if any(OTHER.get(self.neighbouring.change) != relation.change for relation in self._relations[1:]):
            raise InvalidParameter(
                'also must be about the other of the two relations "add or remove" and "replace" for the same unit; '
                "pass () elsewhere"
            )

    @property
    def _relations(self) -> tuple[Neighbouring, ...]:
        return (self.neighbouring, *(Neighbouring.read(other.neighbours, self.unit) for other in self.also))

    @property
    def figures(self) -> str:
        """ε for each relation that is known, in one line: "ε = 1 for adding or removing one record; 2.16 for …"."""
        first, *others = self._relations
        said = [f"ε = {at_most(self.epsilon)} for {first.changing}"]
        for relation, other in zip(others, self.also, strict=True):
            said.append(f"{at_most(other.epsilon, _SHOWN)} for {relation.changing}")
        return f"{'with secret noise, ' * self.seeded}{'; '.join(said)}"

    @property
    def in_short(self) -> str:
        """ε for the other relations that are known, behind that for the first: "; ε ≤ 2.16 where one is replaced …"."""
        return "".join(
            f"; ε ≤ {at_most(other.epsilon, _SHOWN)} where {relation.where}"
            for relation, other in zip(self._relations[1:], self.also, strict=True)
        )

    @property
    def _others(self) -> str:
        """A sentence for each other relation, for whoever reads the first."""
        return "".join(
            f" For {relation.changing} the same holds with ε = {at_most(other.epsilon, _SHOWN)}, a factor of "
            f"{factor(other.epsilon)}."
            for relation, other in zip(self._relations[1:], self.also, strict=True)
        )

    @property
    def advantage(self) -> float:
        r"""How much better than coin tossing the best observer tells two worlds apart, at most; in [0, 1].

        From the trade-off curve at (ε, δ): :math:`(e^\varepsilon - 1 + 2\delta)/(e^\varepsilon + 1)`; 1 where the noise
        was seeded.
        """
        if self.seeded:
            return 1.0
        return min((tanh(self.epsilon / 2) + 2 * self.delta / (1 + exp(min(self.epsilon, 700)))) * (1 + 2**-50), 1.0)

    @property
    def right_guesses(self) -> int:
        """Of 1,000 equally likely pairs of worlds, how many the best observer names rightly on average, at most.

        A coin gets 500. All of them where the noise was seeded.
        """
        return PAIRS if self.seeded else worlds_told_apart(self.epsilon, self.delta)

    def for_data_subject(self) -> str:
        """Return the sentences for the person whose data went in: :attr:`promise`, then :attr:`odds`."""
        return self.promise if self.seeded else f"{self.promise} {self.odds}"

    @property
    def promise(self) -> str:
        """How close two neighbouring data sets are in what may come out; or that nothing is promised."""
        if self.seeded:
            return NO_PROMISE
        earlier = " What an earlier run on the same ledger published with seeded noise has no such promise."
        said = closeness(self.neighbouring, self.epsilon, self.delta, published=self._published)
        return said + self._others + earlier * self.seeded_earlier

    @property
    def odds(self) -> str:
        """The same as odds: how often the best observer is right; or that nothing bounds it."""
        if self.seeded:
            return NO_PROMISE
        return guesses(self.neighbouring, self.right_guesses, published=self._published)

    @property
    def _published(self) -> str:
        return f"{PUBLISHED}{' with secret noise' * self.seeded_earlier}"

    def for_reviewer(self) -> str:
        """Return the sentences for the ethics board or the data-protection officer."""
        limits = f" Limits: {'; '.join(self.caveats)}." if self.caveats else ""
        epsilon, delta = rounded_up(self.epsilon), rounded_up(self.delta)
        noise = " with secret noise" * self.seeded_earlier
        scope = (
            f"{NO_PROMISE} With secret noise, the same release would be together"
            if self.seeded
            else f"Everything that was released{noise} is together"
        )
        return (
            f"{scope} ({epsilon}, {delta})-differentially private per {self.unit}: for two data sets that differ by "
            f"{self.neighbouring.changing}, the probability of any set of outcomes under one is at most "
            f"{factor(self.epsilon)} times (e^ε) that under the other, plus {delta} (δ).{self._others} Released: "
            f"{self.mechanism}. Accounted as: {self.accounting}.{limits}"
        )

    def for_engineer(self) -> str:
        """Return the sentence for whoever runs or checks it: the exact numbers, nothing rounded."""
        return (
            f"{'no guarantee, seeded=True: ' * self.seeded}epsilon={self.epsilon!r} delta={self.delta!r} "
            f"unit={self.unit!r} neighbours={self.neighbours!r} "
            f"{''.join(f'also={other.neighbours!r} at epsilon={other.epsilon!r} ' for other in self.also)}"
            f"mechanism={self.mechanism!r} accounting={self.accounting!r} caveats={len(self.caveats)}."
        )

    def to_json(self) -> str:
        """Return the guarantee as canonical JSON: sorted keys, no spaces. :func:`guarantee_schema` describes it."""
        tree = {"schema_version": SCHEMA_VERSION, **{name: getattr(self, name) for name in _KEYS}}
        if self.also:
            tree["also"] = [{name: getattr(other, name) for name in _ALSO_KEYS} for other in self.also]
        return json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """Return the guarantee that `text` describes; unknown or missing fields are an error.

        Raises
        ------
        InvalidParameter
            If it is not what :meth:`to_json` writes, or a later version of quorate wrote it.
        """
        try:
            tree: Any = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidParameter("guarantee JSON cannot be read; pass the output of to_json") from None
        written = tree.pop("schema_version", SCHEMA_VERSION) if isinstance(tree, dict) else SCHEMA_VERSION
        if type(written) is not int or written != SCHEMA_VERSION:
            raise InvalidParameter(
                f"guarantee JSON must have schema_version {SCHEMA_VERSION}, or none as version 0.1 wrote it; read it "
                "with the version of quorate that wrote it"
            )
        also = tree.pop("also", []) if isinstance(tree, dict) else []
        if not isinstance(tree, dict) or set(tree) != set(_KEYS) or not isinstance(tree["caveats"], list):
            raise InvalidParameter(f"guarantee JSON must hold exactly {', '.join(sorted(_KEYS))}, and perhaps also")
        if not isinstance(also, list) or not all(
            isinstance(entry, dict) and set(entry) == set(_ALSO_KEYS) for entry in also
        ):
            raise InvalidParameter(f"also in guarantee JSON must be objects of exactly {', '.join(sorted(_ALSO_KEYS))}")
        others = tuple(OtherRelation(**entry) for entry in also)
        return cls(**{**tree, "caveats": tuple(tree["caveats"]), "also": others})

    def __str__(self) -> str:
        caveats = f", {len(self.caveats)} caveat{'s' * (len(self.caveats) > 1)}" if self.caveats else ""
        others = "".join(
            f"; ε = {at_most(other.epsilon, _SHOWN)} for {relation.changing}"
            for relation, other in zip(self._relations[1:], self.also, strict=True)
        )
        void = "no guarantee, because the noise was seeded: reproducible, therefore not private. With secret noise, "
        return (
            f"{void * self.seeded}(ε = {rounded_up(self.epsilon)}, δ = {rounded_up(self.delta)})-differential privacy "
            f"per {self.unit} [{self.neighbours}{others}{caveats}]"
        )


def guarantee_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of what :meth:`Guarantee.to_json` writes, and of what version 0.1 wrote.

    The file ``guarantee.schema.json`` beside this module holds it.

    Examples
    --------
    >>> guarantee_schema()["properties"]["schema_version"]["const"]
    1
    """
    schema: dict[str, Any] = json.loads(Path(__file__).with_name("guarantee.schema.json").read_text(encoding="utf-8"))
    return schema

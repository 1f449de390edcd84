"""The guarantee as a value: what was promised, to whom, by which rule, and what it does not cover."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from decimal import ROUND_CEILING, Decimal
from math import ceil, exp, tanh
from typing import Any

from quorate.arguments import real
from quorate.errors import InvalidParameter

_TEXTS = ("unit", "neighbours", "mechanism", "accounting")


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

    Raises
    ------
    InvalidParameter
        If a number is out of range or a text is missing.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, at_least=0))
        object.__setattr__(self, "delta", real("delta", self.delta, at_least=0, at_most=1))
        for name in _TEXTS:
            text = getattr(self, name)
            if not isinstance(text, str) or not text.strip() or "\n" in text:
                raise InvalidParameter(f"{name} must be one line of text, got {text!r}; say it in a phrase")
        caveats = self.caveats
        if not isinstance(caveats, tuple) or not all(isinstance(caveat, str) for caveat in caveats):
            raise InvalidParameter("caveats must be a tuple of texts; pass ('…',) or ()")

    @property
    def advantage(self) -> float:
        r"""How much better than coin tossing the best observer tells two worlds apart, at most; in [0, 1].

        From the trade-off curve at (ε, δ): :math:`(e^\varepsilon - 1 + 2\delta)/(e^\varepsilon + 1)`.
        """
        return min((tanh(self.epsilon / 2) + 2 * self.delta / (1 + exp(min(self.epsilon, 700)))) * (1 + 2**-50), 1.0)

    @property
    def right_guesses(self) -> int:
        """Of 1,000 equally likely pairs of worlds, how many the best observer names rightly, at most (coin: 500)."""
        return ceil(500 * (1 + self.advantage) - 1e-9)

    def for_data_subject(self) -> str:
        """Return the sentence for the person whose data went in."""
        return (
            f"Whether or not any one {self.unit} is in the data, what was published is {self._how_likely} to come out "
            f"the same: shown 1,000 pairs of worlds, one with and one without that {self.unit}'s data, even the best "
            f"possible observer would name the right one at most {self.right_guesses} times, where tossing a coin "
            f"gets 500."
        )

    def for_reviewer(self) -> str:
        """Return the sentence for the ethics board or the data-protection officer."""
        limits = f"; limits: {'; '.join(self.caveats)}" if self.caveats else ""
        return (
            f"Everything that was released is together ({rounded_up(self.epsilon)}, {rounded_up(self.delta)})-"
            f"differentially private per {self.unit}, where neighbouring data sets {self.neighbours}, by "
            f"{self.mechanism}, accounted as {self.accounting}{limits}."
        )

    def for_engineer(self) -> str:
        """Return the sentence for whoever runs or checks it: the exact numbers, nothing rounded."""
        return (
            f"epsilon={self.epsilon!r} delta={self.delta!r} unit={self.unit!r} neighbours={self.neighbours!r} "
            f"mechanism={self.mechanism!r} accounting={self.accounting!r} caveats={len(self.caveats)}."
        )

    def to_json(self) -> str:
        """Return the guarantee as canonical JSON: sorted keys, no spaces."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """Return the guarantee that `text` describes; unknown or missing fields are an error."""
        try:
            tree: Any = json.loads(text)
        except ValueError:
            raise InvalidParameter("guarantee JSON cannot be read; pass the output of to_json") from None
        names = {field.name for field in fields(cls)}
        if not isinstance(tree, dict) or set(tree) != names or not isinstance(tree["caveats"], list):
            raise InvalidParameter(f"guarantee JSON must hold exactly {', '.join(sorted(names))}")
        return cls(**{**tree, "caveats": tuple(tree["caveats"])})

    def __str__(self) -> str:
        caveats = f", {len(self.caveats)} caveat{'s' * (len(self.caveats) > 1)}" if self.caveats else ""
        return (
            f"(ε = {rounded_up(self.epsilon)}, δ = {rounded_up(self.delta)})-differential privacy per {self.unit} "
            f"[{self.neighbours}{caveats}]"
        )

    @property
    def _how_likely(self) -> str:
        if self.right_guesses <= 525:
            return "almost as likely"
        if self.right_guesses <= 750:
            return "nearly as likely"
        if self.epsilon > 700 or self.delta > 0.01:  # beyond what a float holds, or what e^ε alone tells
            return "any number of times less likely"
        return f"at most {rounded_up(exp(self.epsilon) * (1 + 2**-50), 2)} times less likely"


def rounded_up(number: float, digits: int = 4) -> str:
    """Return `number` with `digits` significant digits, rounded up: a printed ε is never below the charged one.

    Examples
    --------
    >>> rounded_up(1.00001), rounded_up(3.12), rounded_up(1e-5)
    ('1.001', '3.12', '1e-5')
    """
    exact = Decimal(repr(number))  # the shortest decimal of the float: 3.12 stays 3.12
    if exact == 0:
        return "0"
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    written = f"{float((exact / step).to_integral_value(ROUND_CEILING) * step):.{digits + 2}g}"
    mantissa, e, power = written.partition("e")
    return f"{mantissa}e{int(power)}" if e else mantissa

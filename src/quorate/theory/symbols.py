"""The letters that the papers share: what each argument of a statement is, and the range that it is checked against.

A statement gives its source to :func:`statement`, and the range of an argument only where it differs from the table
here. The table and the sources end its documentation, and its arguments are checked before its formula is worked out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from quorate.arguments import count, real

P = ParamSpec("P")
R = TypeVar("R")


class Symbol(NamedTuple):
    """One argument: its letter, range and meaning in words, and the check ``(name, value) -> value`` of its range."""

    words: str
    check: Callable[[str, Any], Any]


def number(words: str, **bounds: float) -> Symbol:
    """Return the symbol of a real number; `bounds` as for :func:`quorate.arguments.real`."""
    return Symbol(words, partial(real, **bounds))  # type: ignore[arg-type]


def whole(words: str, at_least: int = 0) -> Symbol:
    """Return the symbol of a whole number that is `at_least` so large."""
    return Symbol(words, partial(count, at_least=at_least))


def unchecked(words: str) -> Symbol:
    """Return the symbol of an argument that its statement checks by itself."""
    return Symbol(words, lambda _, value: value)


#: γ where it is the error of the best hypothesis, as in BTT18; a probability elsewhere.
BEST_ERROR: Final = number("γ in [0, 1], the error of the best hypothesis", at_least=0, at_most=1)
#: T where a bound is a function of any number.
REAL_CUTOFF: Final = number("T ≥ 0, the cut-off", at_least=0)

SYMBOLS: Final[Mapping[str, Symbol]] = {
    "alpha": number("α in (0, 1), an error", above=0, below=1),
    "beta": number("β in (0, 1), the probability of failure", above=0, below=1),
    "gamma": number("γ in (0, 1), the probability of failure", above=0, below=1),
    "epsilon": number("ε > 0 of the guarantee", above=0),
    "delta": number("δ in (0, 1) of the guarantee", above=0, below=1),
    "vc_dimension": whole("VC(C), V or d ≥ 1, the VC dimension of the class", 1),
    "n_points": whole("n ≥ 0 points"),
    "n_rows": whole("n ≥ 1 private rows", 1),
    "n_public": whole("m ≥ 1 public points", 1),
    "n_queries": whole("m (or ℓ) ≥ 1 queries", 1),
    "n_answers": whole("ℓ ≥ 1 answers that are paid for", 1),
    "n_teachers": whole("K (or k) ≥ 1 teachers", 1),
    "n_labelled": whole("labelled rows in S, ≥ 0"),
    "n_base": whole("rows of the base learner, at least 1", 1),
    "n_bits": whole("d ≥ 1: the domain has 2^d points", 1),
    "n_steps": whole("T ≥ 1 steps", 1),
    "cutoff": whole("T ≥ 1, the cut-off", 1),
    "iteration": whole("i ≥ 1", 1),
    "mistakes": whole("B ≥ 0, the most mistakes that one teacher makes"),
    "error": number("e in [0, 1], an error rate", at_least=0, at_most=1),
    "best_error": number("Err(h*) in [0, 1]", at_least=0, at_most=1),
    "xi": number("ξ in (0, 1/2]", above=0, at_most=0.5),
    "nu": number("ν in [0, 1], how likely a point has a margin of at most ξ", at_least=0, at_most=1),
    "tau": number("τ in (0, 1], the exponent of the Tsybakov noise condition; 1 without noise", above=0, at_most=1),
    "eta": number("η ≥ 1 of the noise condition", at_least=1),
    "theta": number("θ(α) ≥ 1, the disagreement coefficient at α", at_least=1),
    "scale": number("λ > 0, the scale of the noise", above=0),
    "lipschitz": number("L ≥ 0: every loss is L-Lipschitz in the parameters", at_least=0),
    "smoothness": number("its gradient is that much Lipschitz: β ≥ 0", at_least=0),
}

_AUTHORS: Final[Mapping[str, str]] = {
    "BNS15": "Beimel, Nissim, Stemmer",
    "BTT18": "Bassily, Thakkar, Thakurta 2018",
    "BTT18a": "Bassily, Thakkar, Thakurta 2018, arXiv:1803.05101",
    "LWY25": "Li, Wang, Ye",
    "LZCW21": "Liu, Zhu, Chaudhuri, Wang",
}


#: What ends the words of a statement whose name ends in ``_shape``.
_UP_TO_A_CONSTANT: Final = (
    "\n\nIt holds up to a constant, which is 1 here, and logarithms where the paper says so, which are left out; what "
    "stands above is as printed."
)


def statement(source: str, **own: Symbol) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments of a statement by their names, and write what they are and its `source` under its words.

    `source`: "BNS15, Theorem B.4". `own`: arguments whose range is not that of :data:`SYMBOLS`. The function that comes
    back raises InvalidParameter for an argument out of its range, by its name.
    """

    def checked(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        symbols = {name: own.get(name) or SYMBOLS[name] for name in signature.parameters}

        @wraps(function)
        def of_checked_arguments(*args: P.args, **kwargs: P.kwargs) -> R:
            call = signature.bind(*args, **kwargs)
            call.apply_defaults()
            for name, symbol in symbols.items():
                call.arguments[name] = symbol.check(name, call.arguments[name])
            return function(*call.args, **call.kwargs)

        arguments = "\n".join(
            f"{name} : {signature.parameters[name].annotation}\n    {symbol.words}." for name, symbol in symbols.items()
        )
        key, _, place = source.partition(", ")
        named_source = f"{key} ({_AUTHORS[key]}), {place}" if key in _AUTHORS else source
        of_checked_arguments.__doc__ = (
            f"{inspect.cleandoc(function.__doc__ or '')}"
            f"{_UP_TO_A_CONSTANT if function.__name__.endswith('_shape') else ''}"
            f"\n\nParameters\n----------\n{arguments}"
            f"\n\nReferences\n----------\n{named_source}."
        )
        return of_checked_arguments

    return checked

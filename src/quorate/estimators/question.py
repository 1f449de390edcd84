"""When two questions are the same: by the name the user gave, or by the code that computes them."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from types import CodeType
from typing import Any

from quorate.ensemble.functions import portable
from quorate.errors import InvalidParameter

_LONGEST = 200  # characters of a name


def question_of(function: Callable[..., Any], args: tuple[Any, ...] = (), *, name: str | None = None) -> str:
    """Return the text that an answer is stored under.

    `function`: what is computed on each shard. `args`: its further arguments. `name`: what the user calls the question.
    The name alone then says which question it is. Returns: ``"name: …"``, or ``"code: …"`` and a digest of what worker
    processes are sent (the function, what it closes over and its arguments) and of the function's bytecode, by which an
    edited function of a module is a new one. Raises InvalidParameter if the name is no line of text, or the function
    cannot be sent. Two texts for one question cost an answer, never privacy. Bytecode and pickles differ between
    versions of Python: where a ledger is to be used again later, a name is better.
    """
    packed = portable(function, args)
    if name is not None:
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST or not name.isprintable():
            raise InvalidParameter(
                parameter="name", got=name, expected=f"1 to {_LONGEST} printable characters on one line"
            )
        return f"name: {name}"
    digest = blake2b(packed, digest_size=16)
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        _add(digest, code)
    return f"code: {digest.hexdigest()}"


def _add(digest: blake2b, code: CodeType) -> None:
    """Add bytecode, names and constants, those of inner functions included."""
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode("utf-8", "surrogatepass"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add(digest, constant)
        else:
            plain = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
            digest.update(repr(plain).encode("utf-8", "surrogatepass"))

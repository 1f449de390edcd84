"""A model as plain text: the same in every process, and another one for a model that would learn otherwise.

A stage's key is made from it. Were an address in memory part of it, a resumed run would not know its own work again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from hashlib import blake2b
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from quorate.mechanisms import Mechanism, is_own
from quorate.release.own_code import code_digest, told_code
from quorate.renamed import stored_name

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_DEPTH = 12  # of models within models; what lies deeper is told by its type alone


def described(value: Any, depth: int = _DEPTH) -> str:
    """Describe an estimator, or a parameter of one, by its class and all that it holds.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> described(GaussianNB())
    'sklearn.naive_bayes.GaussianNB(priors=None, var_smoothing=1e-09)'
    >>> described({"b", "a"})
    "set('a', 'b')"
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return repr(value)
    if depth < 0:
        return stored_name(type(value))

    def inner(each: Any) -> str:
        return described(each, depth - 1)

    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return f"array({value.dtype}, {value.shape}, {blake2b(value.tobytes(), digest_size=16).hexdigest()})"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):  # weights that a network comes with
        return inner(value.detach().cpu().numpy())
    if isinstance(value, list | tuple | np.ndarray):
        return f"{type(value).__name__}({', '.join(map(inner, value))})"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}({', '.join(sorted(map(inner, value)))})"
    if isinstance(value, Mapping):
        return f"{type(value).__name__}({', '.join(f'{inner(key)}: {inner(each)}' for key, each in value.items())})"
    if isinstance(value, partial):
        return f"partial({inner(value.func)}, {inner(value.args)}, {inner(value.keywords)})"
    if isinstance(value, MethodType):
        return f"{inner(value.__self__)}.{value.__name__}"
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{stored_name(value)}({told_code(value.__code__)}, {inner(value.__defaults__)}, {inner(held)})"
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return stored_name(value)
    if not (hasattr(value, "__dict__") or hasattr(value, "get_params")):
        return _without_dict(value, depth - 1)
    # What was learned counts too: a step may be fitted on public rows before.
    state = {**getattr(value, "__dict__", {}), **(value.get_params(deep=False) if hasattr(value, "get_params") else {})}
    for name in getattr(type(value), "left_out_where_none", ()):  # what version 0.1 did not have
        if state.get(name, name) is None:
            del state[name]
    return f"{stored_name(type(value))}({', '.join(f'{key}={inner(state[key])}' for key in sorted(state))})"


def described_mechanism(mechanism: Mechanism) -> str:
    """Describe what answers, with all its fields: several mechanisms have one event, and their answers differ.

    One of quorate's is described as version 0.1 did, so that keys of its charges are found again; one of a user's own
    with its module and a digest of its code, so that it is taken for no other of its name, and for no earlier self.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> described_mechanism(NoisyCounts(sigma=5.0))
    "NoisyCounts(sigma=5.0, form='histogram')"
    """
    if not is_own(mechanism):
        return repr(mechanism)
    # Field by field, wherever a class keeps them: one that inherits from a class with slots has them in two places.
    values = (f"{each.name}={described(getattr(mechanism, each.name))}" for each in fields(mechanism))
    return f"{stored_name(type(mechanism))}({', '.join(values)}) of code {code_digest(type(mechanism))}"


def _without_dict(value: Any, depth: int) -> str:
    """Describe what keeps its state in slots or in C: by the state it would be copied from."""
    try:
        state = value.__getstate__()
    except (AttributeError, TypeError):  # it has none, or does not let itself be copied
        state = None
    return _ADDRESS.sub("", repr(value)) if state is None else f"{stored_name(type(value))}({described(state, depth)})"

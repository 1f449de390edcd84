"""What a plan is asked for, checked: each wrong argument is one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quorate.arguments import count, nearest
from quorate.errors import InvalidParameter, named
from quorate.mechanisms import Mechanism
from quorate.planning.plan_row import KINDS, Grid
from quorate.run.public_facts import PublicFacts
from quorate.voting.models import DEFAULT_TEACHER, TEACHER_MODELS

_NAMED = {kind.__name__: kind for kind in KINDS}


def needed(name: str, value: int | None) -> int:
    """Return a size that public rows would have told, or refuse that it was not given."""
    if value is None:
        raise InvalidParameter(
            f"{name} is needed where there are no public rows to tell it; give {name}=", parameter=name
        )
    return count(name, value, at_least=1)


def number_of_classes(classes: Sequence[Any] | None, n_classes: int | None) -> int:
    """Return how many classes there are, by their list or by their number; one is needed, and both must agree."""
    if classes is None:
        return needed("n_classes", n_classes)
    if n_classes is not None and n_classes != len(classes):
        raise InvalidParameter(f"n_classes={n_classes!r}, and classes has {len(classes)}; leave out n_classes")
    return len(classes)


def number_of_rows(n_rows: int | None, n_records: int, unit: str) -> int | None:
    """Return the number of private rows: no fewer than there are units."""
    if n_rows is None or count("n_rows", n_rows, at_least=1) >= n_records:
        return n_rows
    raise InvalidParameter(
        f"{named('n_rows')} must be at least {named('n_records')}, since each {unit} has a row, got {n_rows:,} for "
        f"{named('n_records', n_records)}",
        parameter="n_rows",
        got=n_rows,
    )


def word_for_unit(unit: object) -> str:
    """Return the word for one unit: one line of text."""
    if not isinstance(unit, str) or not unit.strip() or not unit.isprintable():
        raise InvalidParameter(parameter="unit", got=unit, expected='a word such as "person"')
    return unit


def grid_of(
    facts: PublicFacts, mechanisms: object, n_teachers: object, queries: object, models: Iterable[str] = ()
) -> Grid:
    """Return what is to be compared, or refuse what is no list of what it should be, or above what there is."""
    return Grid(
        mechanisms=_mechanisms(mechanisms),
        n_teachers=_numbers("n_teachers", n_teachers, most=facts.n_records),
        queries=_numbers("queries", queries, most=facts.n_public),
        models=tuple(models),
    )


def models_of(given: object) -> tuple[str, ...] | None:
    """Return the names of teachers' models to compare with the one that was given; None for the default."""
    if given is None:
        return None
    listed = tuple(dict.fromkeys(given)) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else None
    names = [name for name in TEACHER_MODELS if name != DEFAULT_TEACHER]
    for name in (given,) if listed is None else listed:
        if listed is None or name not in names:
            hint = nearest(name, names) if isinstance(name, str) else ""
            raise InvalidParameter(
                parameter="models",
                got=name,
                expected=f"names of {', '.join(names)}",
                advice=hint.removeprefix("; "),
            )
    return listed


def _numbers(name: str, given: object, *, most: int | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    listed = _listed(name, given, "[100, 200]")
    numbers = tuple(count(name, number, at_least=1) for number in listed)
    if most is not None and max(numbers) > most:
        raise InvalidParameter(parameter=name, got=max(numbers), expected=f"at most {most:,} here")
    return numbers


def _mechanisms(given: object) -> tuple[type[Mechanism] | Mechanism, ...] | None:
    if given is None:
        return None
    return tuple(
        _mechanism(mechanism) for mechanism in _listed("mechanisms", given, '["NoisyCounts", "GaussianNoisyMax"]')
    )


def _mechanism(given: Any) -> type[Mechanism] | Mechanism:
    if isinstance(given, str) and given in _NAMED:
        return _NAMED[given]
    if isinstance(given, Mechanism) or (isinstance(given, type) and issubclass(given, Mechanism)):
        return given
    raise InvalidParameter(
        f"mechanisms must be mechanisms, their classes, or names of {', '.join(_NAMED)}, got {given!r}"
        f"{nearest(given, _NAMED) if isinstance(given, str) else ''}"
    )


def _listed(name: str, given: object, example: str) -> tuple[Any, ...]:
    listed = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else ()
    if not listed:
        raise InvalidParameter(
            parameter=name, got=given, expected="a list of at least one", advice=f"Example: {example}"
        )
    return listed

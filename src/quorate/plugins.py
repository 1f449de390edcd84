"""What other installed packages add: commands, formats of files and stores, by the entry points that they declare; and
the methods that learn from private rows, each in a row of one table.

A package that declares one in its ``pyproject.toml`` is found once it is installed beside quorate::

    [project.entry-points."quorate.commands"]
    hello = "my_package.hello:command"

Names are listed without importing anything; code is imported where its name is asked for. Mechanisms, teachers and
students need none of this: ``quorate.toml`` names them by their module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quorate.errors import InvalidParameter

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS: Final = "quorate.commands"  # a click command, by its name
FORMATS: Final = "quorate.formats"  # a quorate.data.Format, by a suffix without its dot
STORES: Final = "quorate.stores"  # a function (url, create) that opens a store, by the scheme of its URLs
#: Rows of a plan that are neither votes nor rounds: a function of (PublicFacts, n_labelled), by the name of their kind.
PLAN_ROWS: Final = "quorate.plan_rows"

#: What the research rooms of this package add, so that no other room imports them. It stands here and not in
#: ``pyproject.toml``, since reading what is installed takes longer than all else that ``quorate --help`` does.
OWN: Final = {
    COMMANDS: {"learn": "quorate.learn.command:command", "reproduce": "quorate.experiments.command:command"},
    PLAN_ROWS: {"few labels": "quorate.learn.plan_rows:learner_rows"},
}


class KnownMethod(NamedTuple):
    """What every room may know of a method. `words`: what a person reads of it. `purpose`: what its charges pay for,
    that of no other method. `read`: what reads its run from a folder; `told`: how its reports tell it, a class. `keys`:
    those of ``[method]`` that it takes, beside ``by``; None where `quorate.folder.settings` knows them.
    """

    words: str
    purpose: str
    read: str
    told: str
    keys: tuple[str, ...] | None = ()


#: The methods, by what ``[method] by`` calls them; what they name is imported by :func:`located`, when it is used.
METHODS: Final = {
    "votes": KnownMethod(
        "votes of teachers", "label", "quorate.folder.methods:read_votes", "quorate.report.method:ByVotes", None
    ),
    "direct": KnownMethod(
        "direct", "gradient round", "quorate.folder.cell_run:DirectRun.read", "quorate.report.method:ByRounds", None
    ),
}


def located(place: str) -> Any:
    """Import what stands at a place, ``"module:attribute"``."""
    module, _, attribute = place.partition(":")
    return attrgetter(attribute)(import_module(module))


def added(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return what installed packages declare in a group, by name; nothing is imported.

    A name that more than one package declares has an entry point of each, and :func:`load` refuses it.

    Examples
    --------
    >>> "run" in added(COMMANDS)
    False
    """
    if not _is_named(group):
        return {}
    from importlib.metadata import entry_points

    points: dict[str, tuple[EntryPoint, ...]] = {}
    for point in sorted(entry_points(group=group), key=package_of):
        points[point.name] = (*points.get(point.name, ()), point)
    return points


def _is_named(group: str) -> bool:
    """Whether any installed package names the group at all.

    A look into the files takes a millisecond or two, and ``quorate --help`` takes one; loading what parses them takes
    longer than everything else that it does.
    """
    for place in sys.path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 - pathlib alone takes longer to load than this
        except OSError:
            if os.path.isfile(place):  # noqa: PTH113
                return True  # an archive, which is read by what knows how
            continue
        for name in names:
            if name.endswith(("-info", "EGG-INFO")):
                try:
                    with open(os.path.join(place, name, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123
                        if group.encode() in file.read():
                            return True
                except OSError:
                    continue  # it declares none
    return False


def package_of(point: EntryPoint) -> str:
    """Return the name of the package that declares an entry point."""
    return "an unknown package" if point.dist is None else point.dist.name


def packages_of(points: tuple[EntryPoint, ...]) -> str:
    """Name the packages that declare one name: ``"toy"``, or ``"other and toy"``."""
    return " and ".join(map(package_of, points))


def load(group: str, name: str) -> Any | None:
    """Import what a package declares under a name, this one first; None where no package does.

    Raises
    ------
    InvalidParameter
        If more than one package declares it, or importing it fails.

    Examples
    --------
    >>> load(STORES, "a scheme that nobody declares") is None
    True
    """
    if own := OWN.get(group, {}).get(name):
        return located(own)
    points = added(group).get(name)
    if points is None:
        return None
    if len(points) > 1:
        raise InvalidParameter(
            f"the installed packages {packages_of(points)} each declare {name!r} in {group}, and which is meant cannot "
            "be told; remove one of them"
        )
    [point] = points
    try:
        return point.load()
    except Exception as error:  # noqa: BLE001 - another package's code
        said = " ".join(str(error).split())
        raise InvalidParameter(
            f"the installed package {package_of(point)} declares {name!r} in {group}, and it cannot be imported "
            f"({type(error).__name__}: {said}); mend it or remove it"
        ) from None


def every(group: str) -> Iterator[Any]:
    """Import all that is declared in a group, what is this package's own first; raises as :func:`load` does.

    Examples
    --------
    >>> [each.__name__ for each in every(PLAN_ROWS)]
    ['learner_rows']
    """
    for name in dict.fromkeys((*OWN.get(group, {}), *added(group))):
        yield load(group, name)

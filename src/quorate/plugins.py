"""What other installed packages add: commands, formats of files and stores, by the entry points that they declare.

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
from typing import TYPE_CHECKING, Any, Final

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
        module, _, attribute = own.partition(":")
        return getattr(import_module(module), attribute)
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

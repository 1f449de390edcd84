"""The house itself: imports go one way, nothing private of scikit-learn is used, every error has its own code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import quorate
from quorate import errors

SOURCE = Path(quorate.__file__).parent

# From the ground up: a room may import only rooms to its left.
ROOMS = (
    "errors", "arguments", "types", "renamed", "noise", "accounting", "theory", "mechanisms", "ledger", "release",
    "data", "ensemble", "labelling", "students", "direct", "planning", "audit", "report", "pipeline", "run",
    "estimators", "learners", "experiments", "service", "cli",
)  # fmt: skip
FORBIDDEN_NAMES = {"utils", "helpers", "common", "manager", "core"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_names(tree: ast.AST) -> list[str]:
    """Every dotted name that a module imports, `from a import b` as `a.b`."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def breaches(room: str, names: list[str]) -> list[str]:
    """The imports that point up the house, to a room that stands on this one."""
    return [
        name for name in names if name.startswith("quorate.") and ROOMS.index(name.split(".")[1]) > ROOMS.index(room)
    ]


FRONT_DOOR = SOURCE / "__init__.py"  # re-exports the shells, so it may import any room


@pytest.mark.parametrize(
    "path", [path for path in modules() if path != FRONT_DOOR], ids=lambda path: str(path.relative_to(SOURCE))
)
def test_a_room_imports_only_the_rooms_it_stands_on(path: Path) -> None:
    assert breaches(room_of(path), imported_names(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_an_import_that_points_up_is_caught() -> None:
    names = imported_names(ast.parse("from quorate.cli.group import main\nfrom quorate.noise import OSNoise"))
    assert breaches("ledger", names) == ["quorate.cli.group.main"]


def test_imports_are_absolute_so_that_this_file_can_read_them() -> None:
    relative = [
        path
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_no_private_scikit_learn_name_is_imported() -> None:
    private = [
        (path.name, name)
        for path in modules()
        for name in imported_names(ast.parse(path.read_text(encoding="utf-8")))
        if name.startswith("sklearn") and any(part.startswith("_") for part in name.split("."))
    ]
    assert private == []


def test_nothing_is_pickled_but_what_goes_through_a_pipe_to_our_own_worker() -> None:
    """A pickle that is read runs code. The one exception never touches a disk: a task and its result."""
    pickled = {
        path.relative_to(SOURCE).as_posix()
        for path in modules()
        for name in imported_names(ast.parse(path.read_text(encoding="utf-8")))
        if name.split(".")[0] in {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
    }
    assert pickled <= {"ensemble/functions.py", "ensemble/training.py"}


def test_no_room_is_a_lumber_room() -> None:
    assert [path for path in modules() if FORBIDDEN_NAMES & set(path.with_suffix("").parts[-3:])] == []


def all_errors(base: type[errors.QuorateError] = errors.QuorateError) -> list[type[errors.QuorateError]]:
    return [base, *(each for sub in base.__subclasses__() for each in all_errors(sub))]


def test_every_error_has_its_own_code_and_stands_in_the_drawn_tree() -> None:
    found = all_errors()
    codes = [error.code for error in found]
    assert len(set(codes)) == len(codes)
    assert [error.__name__ for error in found if error.__name__ not in (errors.__doc__ or "")] == []


TESTS = Path(__file__).parent
NO_ROOM = {"golden"}  # what version 0.1 computed, of every room together


def test_the_tests_mirror_the_rooms() -> None:
    """A folder of tests is named for the room that it tests, and each file in it is a test or what tests share."""
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    assert folders - NO_ROOM <= {room_of(path) for path in modules()}
    beside = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")}
    alone = {path.stem for path in SOURCE.glob("*.py")}
    assert beside - alone == {"house", "docs", "theory_docs", "surfaces"}  # of the package and its pages as a whole

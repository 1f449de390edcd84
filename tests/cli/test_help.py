"""The command line's first impression: quick, complete, and helpful about a slip of the finger."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from typing import Any

import pytest

from quorate.cli.group import COMMANDS, group
from quorate.errors import QuorateError

HEAVY = ("numpy", "scipy", "sklearn", "polars", "rich", "pandas", "joblib", "skops")
SLOW = (*HEAVY, "importlib.metadata", "pathlib", "json", "dataclasses")  # of all that help imports, not to be in it
HELP = "from quorate.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit: pass\n"


def test_help_imports_nothing_heavy() -> None:
    code = HELP + f"import sys; print(sorted(set({SLOW!r}) & set(sys.modules)), file=sys.stderr)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert told.stderr.strip() == "[]"
    assert "quorate demo" in told.stdout


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_imports_nothing_heavy_either(command: str) -> None:
    code = (
        f"import sys\nfrom quorate.cli import main\ntry:\n    main([{command!r}, '--help'])\nexcept SystemExit: pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert told.stderr.strip() == "[]"


LOOKING = (
    "ambient",
    "errors",
    "arguments",
    "types",
    "outcomes",
    "stored_names",
    "deferred",
    "plugins",
    "accounting",
    "ledger",
    "release",
    "report",
)
LOADED = """
import sys
from quorate.cli import main
try:
    main()
except SystemExit: pass
names = {name.split('.')[1] for name in sys.modules if name.startswith('quorate.')}
heavy = set(sys.argv[0].split(',')) & set(sys.modules)
print(*sorted(names | heavy), sep=',', file=sys.stderr)
"""


def loaded_by(*arguments: object) -> set[str]:
    """The rooms, and the libraries among :data:`HEAVY` but for numpy, that a command has loaded when it ends."""
    libraries = ",".join(name for name in HEAVY if name != "numpy")
    code = LOADED.replace("sys.argv[0]", repr(libraries))
    told = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, check=True, text=True
    )
    return set(told.stderr.splitlines()[-1].split(","))


@pytest.mark.heavy
def test_a_command_that_looks_at_a_run_loads_nothing_that_makes_one(make_run: Any) -> None:
    """Nor does one that refuses its settings. What reads the names of modules is held against a command that makes."""
    from quorate.folder.folder import RunFolder
    from quorate.ledger import Budget

    root = make_run()
    with RunFolder(root).open_ledger(Budget(4.0, 1e-5)):
        pass
    looking = {
        *LOOKING,
        "findings",
        "labelling",
        "students",
        "run",
        "voting",
        "folder",
        "cli",
    }  # names of stages, thresholds, models
    assert loaded_by("status", root) <= looking
    assert loaded_by("status", root, "--json") <= looking
    assert loaded_by("ledger", "show", root) <= looking - {"labelling", "voting", "students"}
    whole = loaded_by("check", root)
    assert {"polars", "sklearn", "scipy", "data", "mechanisms"} <= whole
    (root / "private.csv").unlink()
    for command in ("check", "run"):
        assert loaded_by(command, root) <= looking | {"data"}  # which files a name means: no table is read
    (root / "quorate.toml").write_text("[data]\nprivte = 1")
    for command in ("check", "run", "status"):
        assert loaded_by(command, root) <= looking


def cpu_of_help() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", HELP], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


@pytest.mark.heavy
def test_help_takes_at_most_80_milliseconds_of_cpu() -> None:
    """Asserted on a quiet machine alone; elsewhere the imports above stand for it."""
    seconds = statistics.median(cpu_of_help() for _ in range(5))
    if os.environ.get("QUORATE_TIMED"):
        assert seconds <= 0.080


def test_help_lists_every_command_and_every_exit_code(cli: Any) -> None:
    out = cli.ok("--help")
    assert all(name in out for name in COMMANDS)
    codes = {each.exit_code for each in _all_errors(QuorateError)} - {1}
    assert codes == {2, 3, 4, 5, 6}
    for number in (0, *codes):
        assert f"  {number}  " in out


def _all_errors(base: type[QuorateError]) -> list[type[QuorateError]]:
    return [base, *(each for sub in base.__subclasses__() for each in _all_errors(sub))]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does_in_its_own_help(cli: Any, command: str) -> None:
    assert f"Usage: quorate {command}" in cli.ok(command, "--help")
    assert (group.get_command(None, command).help or "").strip()  # type: ignore[arg-type, union-attr]


def test_an_unknown_command_names_the_nearest(cli: Any) -> None:
    for given, nearest in (("demos", "demo"), ("statsu", "status"), ("exprot", "export")):
        assert f"no command '{given}'; did you mean \"{nearest}\"?" in cli.refused(2, given)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "arguments", [("run", "--jsn"), ("export",), ("report", "--edition", "secret"), ("ledger", "reset")]
)
def test_a_wrong_argument_is_usage(cli: Any, arguments: tuple[str, ...]) -> None:
    assert "Traceback" not in cli.refused(2, *arguments)


def test_the_version_is_told(cli: Any) -> None:
    from importlib.metadata import version

    assert version("quorate") in cli.ok("--version")


def test_a_report_is_offered_in_the_languages_that_it_has() -> None:
    from quorate.cli.report import LANGUAGES
    from quorate.report import words

    assert words.LANGUAGES == LANGUAGES

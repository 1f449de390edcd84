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
HELP = "from quorate.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit: pass\n"


def test_help_imports_nothing_heavy() -> None:
    code = HELP + f"import sys; print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert told.stderr.strip() == "[]"
    assert "quorate demo" in told.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_imports_nothing_heavy_either(command: str) -> None:
    code = (
        f"import sys\nfrom quorate.cli import main\ntry:\n    main([{command!r}, '--help'])\nexcept SystemExit: pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert told.stderr.strip() == "[]"


def cpu_of_help() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", HELP], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def test_help_takes_at_most_150_milliseconds_of_cpu() -> None:
    """Asserted on a quiet machine alone; elsewhere the imports above stand for it."""
    seconds = statistics.median(cpu_of_help() for _ in range(5))
    if os.environ.get("QUORATE_TIMED"):
        assert seconds <= 0.150


def test_help_lists_every_command_and_every_exit_code(cli: Any) -> None:
    code, out, _ = cli("--help")
    assert code == 0
    assert all(name in out for name in COMMANDS)
    codes = {each.exit_code for each in _all_errors(QuorateError)} - {1}
    assert codes == {2, 3, 4, 5, 6}
    for number in (0, *codes):
        assert f"  {number}  " in out


def _all_errors(base: type[QuorateError]) -> list[type[QuorateError]]:
    return [base, *(each for sub in base.__subclasses__() for each in _all_errors(sub))]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does_in_its_own_help(cli: Any, command: str) -> None:
    code, out, _ = cli(command, "--help")
    assert code == 0
    assert f"Usage: quorate {command}" in out
    assert (group.get_command(None, command).help or "").strip()  # type: ignore[arg-type, union-attr]


def test_an_unknown_command_names_the_nearest(cli: Any) -> None:
    for given, nearest in (("demos", "demo"), ("statsu", "status"), ("exprot", "export")):
        code, _, said = cli(given)
        assert code == 2
        assert f"no command '{given}'; did you mean \"{nearest}\"?" in said


@pytest.mark.parametrize(
    "arguments", [("run", "--jsn"), ("export",), ("report", "--edition", "secret"), ("ledger", "reset")]
)
def test_a_wrong_argument_is_usage(cli: Any, arguments: tuple[str, ...]) -> None:
    code, _, said = cli(*arguments)
    assert code == 2
    assert "Traceback" not in said


def test_the_version_is_told(cli: Any) -> None:
    from importlib.metadata import version

    code, out, _ = cli("--version")
    assert code == 0
    assert version("quorate") in out

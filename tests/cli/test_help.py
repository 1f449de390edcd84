"""The command line's first impression: quick, complete, helpful about a slip of the finger, and of one voice."""

import subprocess
import sys
from importlib.metadata import version

import click
import pytest

from quorate.cli.group import COMMANDS, group, options_of
from quorate.cli.options import Number, Whole
from quorate.errors import QuorateError

HEAVY = ("numpy", "scipy", "sklearn", "polars", "rich", "pandas", "joblib", "skops")
SLOW = (*HEAVY, "importlib.metadata", "pathlib", "json", "dataclasses")  # of all that help imports, not to be in it
LOADED = """
import sys
from quorate.cli import main
try:
    main()
except SystemExit: pass
print(*sys.modules, sep=',', file=sys.stderr)
"""


def loaded_by(*arguments):
    """The modules that a command has loaded when it ends, and what it prints."""
    words = map(str, arguments)
    told = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, check=True, text=True)
    return set(told.stderr.splitlines()[-1].split(",")), told.stdout


def test_help_imports_nothing_heavy():
    modules, out = loaded_by("--help")
    assert modules & set(SLOW) == set()
    assert "quorate demo" in out


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_imports_nothing_heavy_either(command):
    assert loaded_by(command, "--help")[0] & set(HEAVY) == set()


LOOKING = (
    "ambient", "errors", "arguments", "types", "outcomes", "stored_names", "deferred", "plugins", "accounting",
    "ledger", "release", "report",
)  # fmt: skip


def rooms_of(*arguments):
    """The rooms, and the libraries among :data:`HEAVY` but for numpy, that a command has loaded when it ends."""
    modules, _ = loaded_by(*arguments)
    rooms = {name.split(".")[1] for name in modules if name.startswith("quorate.")}
    return rooms | modules & set(HEAVY) - {"numpy"}


@pytest.mark.heavy
def test_a_command_that_looks_at_a_run_loads_nothing_that_makes_one(make_run):
    """Nor does one that refuses its settings. What reads the names of modules is held against a command that makes."""
    from quorate.folder.folder import RunFolder
    from quorate.ledger import Budget

    root = make_run()
    with RunFolder(root).open_ledger(Budget(4.0, 1e-5)):
        pass
    # Those of the names of stages, of thresholds and of models are among them.
    looking = {*LOOKING, "findings", "labelling", "students", "run", "voting", "folder", "cli"}
    assert rooms_of("status", root) <= looking
    assert rooms_of("status", root, "--json") <= looking
    assert rooms_of("ledger", "show", root) <= looking - {"labelling", "voting", "students"}
    whole = rooms_of("check", root)
    assert {"polars", "sklearn", "scipy", "data", "mechanisms"} <= whole
    (root / "private.csv").unlink()
    for command in ("check", "run"):
        assert rooms_of(command, root) <= looking | {"data"}  # which files a name means: no table is read
    (root / "quorate.toml").write_text("[data]\nprivte = 1")
    for command in ("check", "run", "status"):
        assert rooms_of(command, root) <= looking


def test_help_lists_every_command_and_every_exit_code_and_the_version_is_told(cli):
    assert version("quorate") in cli.ok("--version")
    out = cli.ok("--help")
    assert all(name in out for name in COMMANDS)
    codes = {each.exit_code for each in _all_errors(QuorateError)} - {1}
    assert codes == {2, 3, 4, 5, 6}
    for number in (0, *codes):
        assert f"  {number}  " in out


def _all_errors(base):
    return [base, *(each for sub in base.__subclasses__() for each in _all_errors(sub))]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does_in_its_own_help(cli, command):
    assert f"Usage: quorate {command}" in cli.ok(command, "--help")
    assert (group.get_command(None, command).help or "").strip()


def test_an_unknown_command_names_the_nearest(cli):
    for given, nearest in (("demos", "demo"), ("statsu", "status"), ("exprot", "export")):
        assert f"no command '{given}'; did you mean \"{nearest}\"?" in cli.refused(2, given)
    assert "Traceback" not in cli.refused(2, "ledger", "reset")


def test_a_report_is_offered_in_the_languages_that_it_has():
    from quorate.cli.report import LANGUAGES
    from quorate.report import words

    assert words.LANGUAGES == LANGUAGES


REFUSED = [
    (("init", "--n-records", "a"), "expected a whole number, such as 1000, got 'a'"),
    (("init", "--n-records", "0"), "expected a whole number >= 1, got '0'"),
    (("plan", "--rows", "1,5"), "expected a whole number, such as 1000, got '1,5'"),
    (("reproduce", "mnist", "--epsilon", "0"), "expected a number > 0, got '0'"),
    (("reproduce", "mnist", "--epsilon", "nan"), "expected a number > 0, got 'nan'"),
    (("reproduce", "mnist", "--epsilon", "1,0"), "expected a number with a point, such as 1.0, got '1,0'"),
]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("typed", "told"), REFUSED)
def test_a_number_that_is_none_is_told_in_words(cli, typed, told):
    assert cli.refused(2, *typed).splitlines()[-1].endswith(told)


@pytest.mark.parametrize("name", ["mnist", "writers", "table4"])
def test_a_line_that_an_experiment_does_not_have_is_told_by_its_option(cli, name):
    assert "--method must be one of" in cli.refused(2, "reproduce", name, "--method", "bar")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("run", "--epsilon", "1"), "It is set in quorate.toml: [budget] epsilon"),
        (("plan", "--jobs", "2"), "It is set in quorate.toml: [run] n_jobs"),
        (("run", "--jsn"), "Error: No such option '--jsn'. Did you mean '--json'?"),
        (("demo", "--epsilon", "1"), "Error: No such option '--epsilon'."),
    ],
)
def test_an_option_that_is_a_key_of_the_settings_is_told_to_be_one(cli, typed, told):
    err = cli.refused(2, *typed)
    assert err.splitlines()[-1] == told
    assert "--epsilon'. Did you mean" not in err


def test_whole_numbers_are_read_as_they_are():
    assert [Whole().convert(typed, None, None) for typed in ("-3", "0", 7)] == [-3, 0, 7]


WRONG = "no-such-word"


def options(command, words):
    """The options and arguments of a command and of those below it, each with the words that lead there."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from options(below, (*words, name))
    yield from ((words, option) for option in command.params)


def command_of(name):
    command = group.get_command(click.Context(group, info_name="quorate"), name)
    assert command is not None
    return command


def may_be_wrong(option):
    free = isinstance(option.type, click.Path | click.types.StringParamType)
    return isinstance(option, click.Option) and not (option.is_flag or option.count or free)


EVERY = [(words, option) for name in COMMANDS for words, option in options(command_of(name), (name,))]
OPTIONS = [(words, option.opts[0]) for words, option in EVERY if may_be_wrong(option)]


def test_every_number_of_every_command_is_of_our_kinds():
    numbers = click.types.IntParamType | click.types.FloatParamType
    found = [(*words, each.name, each.type) for words, each in EVERY if isinstance(each.type, numbers)]
    assert [(*words, kind) for *words, kind in found if not isinstance(kind, Whole | Number)] == []
    assert found


@pytest.mark.parametrize(("words", "option"), OPTIONS, ids=[" ".join((*words, option)) for words, option in OPTIONS])
def test_a_wrong_value_is_refused_under_the_options_name(cli, words, option):
    code, out, err = cli(*words, option, WRONG)
    assert (code, out) == (2, "")
    [line] = [line for line in err.splitlines() if WRONG in line]
    assert option in line
    assert "Traceback" not in err


def test_what_python_calls_an_argument_is_its_option():
    names = options_of(command_of("plan"))
    assert (names["n_records"], names["learning_curve"]) == ("--records", "--curve")
    assert options_of(command_of("votes"))["n_teachers"] == "--n-teachers"

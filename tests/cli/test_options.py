"""Options: what is refused is told in one voice and under the option's name, and what was meant is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest

from quorate.cli.group import COMMANDS, group, options_of
from quorate.cli.options import Number, Whole

WHOLE = "expected a whole number, such as 1000, got 'a'"
REFUSED = [
    (("init", "--n-records", "a"), WHOLE),
    (("init", "--n-records", "0"), "expected a whole number >= 1, got '0'"),
    (("plan", "--records", "a"), WHOLE),
    (("plan", "--rows", "1,5"), "expected a whole number, such as 1000, got '1,5'"),
    (("serve", "--port", "a"), WHOLE),
    (("audit", "--runs", "a"), WHOLE),
    (("keys", "create", "run", "--name", "a", "--quota", "-1"), "expected a whole number >= 0, got '-1'"),
    (("reproduce", "mnist", "--repeats", "1.5"), "expected a whole number, such as 1000, got '1.5'"),
    (("reproduce", "mnist", "--epsilon", "0"), "expected a number > 0, got '0'"),
    (("reproduce", "mnist", "--epsilon", "nan"), "expected a number > 0, got 'nan'"),
    (("reproduce", "mnist", "--epsilon", "1,0"), "expected a number with a point, such as 1.0, got '1,0'"),
]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("typed", "told"), REFUSED)
def test_a_number_that_is_none_is_told_in_words(cli: Any, typed: tuple[str, ...], told: str) -> None:
    assert cli.refused(2, *typed).splitlines()[-1].endswith(told)


def _options(command: click.Command) -> list[click.Parameter]:
    if isinstance(command, click.Group):
        return [each for name in command.commands for each in _options(command.commands[name])]
    return command.params


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_number_of_every_command_is_of_these_kinds(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    strays = [
        each.name
        for each in _options(command)
        if isinstance(each.type, click.types.IntParamType | click.types.FloatParamType)
        and not isinstance(each.type, Whole | Number)
    ]
    assert not strays


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("run", "--epsilon", "1"), "It is set in quorate.toml: [budget] epsilon"),
        (("plan", "--jobs", "2"), "It is set in quorate.toml: [run] n_jobs"),
        (("run", "--jsn"), "Error: No such option '--jsn'. Did you mean '--json'?"),
        (("demo", "--epsilon", "1"), "Error: No such option '--epsilon'."),
    ],
)
def test_an_option_that_is_a_key_of_the_settings_is_told_to_be_one(cli: Any, typed: tuple[str, ...], told: str) -> None:
    err = cli.refused(2, *typed)
    assert err.splitlines()[-1] == told
    assert "--epsilon'. Did you mean" not in err


def test_whole_numbers_are_read_as_they_are() -> None:
    assert [Whole().convert(typed, None, None) for typed in ("-3", "0", 7)] == [-3, 0, 7]


WRONG = "no-such-word"


def options(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The options of a command and of those below it, each with the words that lead there."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from options(below, (*words, name))
    for option in command.params:
        free = isinstance(option.type, click.Path | click.types.StringParamType)
        if isinstance(option, click.Option) and not (option.is_flag or option.count or free):
            yield words, option.opts[0]


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name="quorate")
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        yield name, command


OPTIONS = [case for name, command in commands() for case in options(command, (name,))]


@pytest.mark.parametrize(("words", "option"), OPTIONS, ids=[" ".join((*words, option)) for words, option in OPTIONS])
def test_a_wrong_value_is_refused_under_the_options_name(cli: Any, words: tuple[str, ...], option: str) -> None:
    code, out, err = cli(*words, option, WRONG)
    assert (code, out) == (2, "")
    [line] = [line for line in err.splitlines() if WRONG in line]
    assert option in line
    assert "Traceback" not in err


def test_what_python_calls_an_argument_is_its_option() -> None:
    names = options_of(dict(commands())["plan"])
    assert (names["n_records"], names["learning_curve"]) == ("--records", "--curve")
    assert options_of(dict(commands())["votes"])["n_teachers"] == "--n-teachers"

"""Every option of every command that takes more than a text: a wrong value is refused under the option's own name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest

from quorate.cli.group import COMMANDS, group, options_of

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

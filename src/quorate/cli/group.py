"""The group of commands, and the one place where an error becomes a line and an exit code.

``quorate --help`` must be quick, so a command's module is imported when that command is called and not before;
the line that describes it stands here.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING, Any, NoReturn

import click

from quorate.ambient import own_switches, unwarned
from quorate.cli.stopping import interruption, stopping
from quorate.cli.unforeseen import forgiving_streams, may_hold_charges, refusal_of, run_in_question
from quorate.errors import (
    NOTHING_CHARGED,
    NOTHING_MORE,
    REMEDIES,
    InvalidParameter,
    PreconditionFailed,
    QuorateError,
    act,
    know_charge,
    naming,
)
from quorate.plugins import COMMANDS as DECLARED
from quorate.plugins import OWN, added, load, packages_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = {
    "demo": "Show the whole journey on real data (Adult), in about ten seconds.",
    "init": "Write a commented quorate.toml to fill in.",
    "check": "Read the files and say what a run would do and cost; nothing is fitted or charged.",
    "plan": "Compare what a budget would buy, from public facts and public rows alone; nothing is spent.",
    "run": "Train the teachers, release private labels, fit the student, write the report. A stopped run goes on.",
    "status": "Say how far a run is and what is left.",
    "ask": "Ask the teachers about new rows, from the answers kept back.",
    "predict": "Classify a table of any size by the published model, for free.",
    "audit": "Attack a finished run's mechanism; compare what that proves with what was claimed.",
    "report": "Write the report again: public or internal edition.",
    "votes": "Release or analyse votes made elsewhere; no vote is ever printed.",
    "ledger": "Show, verify, export, open or close the record of what was spent.",
    "serve": "Let a finished run answer over HTTP, until its answers are spent and then by its student.",
    "keys": "Create, list and revoke the keys of a service.",
    "export": "Copy what may leave the building: into a folder, or as a package for an airlock or a registry.",
    "check-export": "Check a package that somebody exported, without the private side and without the ledger.",
    "learn": "Learn a readable rule from a table of which few rows are labelled.",
    "reproduce": "Run the papers' experiments on public data, their figures beside ours.",
}

EXIT_CODES = """\b
Exit codes
  0  ok                             4  the files, the folder or the machine do not fit
  2  usage: an argument or value    5  the ledger's integrity is broken
  3  the budget refused             6  interrupted; the message says how to go on

The words are explained in docs/glossary.md."""


class LazyGroup(click.Group):
    """A click group that knows its commands' names and first lines without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of a newcomer's first day, then those of other installed packages."""
        return [*COMMANDS, *_others()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command's module, and no other."""
        if cmd_name not in COMMANDS:
            return _other(cmd_name)
        if cmd_name in OWN[DECLARED]:
            command = load(DECLARED, cmd_name)
        else:
            command = import_module(f"quorate.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)  # noqa: S101 - ours, not a user's mistake
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where there is none of that name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and args[0] not in _others():
            from quorate.arguments import nearest

            ctx.fail(f"no command {args[0]!r}{nearest(args[0], self.list_commands(ctx))}")
        name, command, left = super().resolve_command(ctx, args)
        if command is not None:
            ctx.with_resource(naming(options_of(command)))
        return name, command, left

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their first lines, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        others = [
            (
                name,
                f"Of the package {packages_of(points)}." if len(points) == 1 else f"Of {packages_of(points)}: refused.",
            )
            for name, points in _others().items()
        ]
        if others:
            with formatter.section("Commands of other packages"):
                formatter.write_dl(others)


def options_of(command: click.Command) -> dict[str, str]:
    """Return the options of a command, and of those below it, by what they are called in Python."""
    if isinstance(command, click.Group):
        return {name: option for below in command.commands.values() for name, option in options_of(below).items()}
    options = (param for param in command.params if isinstance(param, click.Option))
    return {option.name: option.opts[0] for option in options if option.name}


def _others() -> dict[str, tuple[EntryPoint, ...]]:
    """Return the commands that other packages declare; none of them takes the place of one of quorate's."""
    return {name: points for name, points in sorted(added(DECLARED).items()) if name not in COMMANDS}


def _other(name: str) -> click.Command | None:
    command = load(DECLARED, name)
    if command is None or isinstance(command, click.Command):
        return command
    raise InvalidParameter(
        f"the command {name!r} of the package {packages_of(_others()[name])} is no click command, got "
        f"{type(command).__name__}; mend it or remove it"
    )


@click.group(cls=LazyGroup, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="quorate")
def group() -> None:
    """Private learning with any model: teachers vote, a privacy mechanism answers, a student may be published.

    Start with: quorate demo. For your own data: quorate init, edit quorate.toml, then quorate plan
    (where there are public rows), quorate check and quorate run.
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line; every refusal is one line, a code and what was charged. What a user of the process has
    switched before changes no command, and what libraries warn of is not shown: it may quote a private cell.
    """
    with forgiving_streams(), own_switches(), unwarned(), act():
        _run(sys.argv[1:] if args is None else args)


def _run(arguments: list[str]) -> NoReturn:
    stopped = Event()
    run_in_question.set(None)
    try:
        with stopping(partial(_give_up, arguments, stopped)):
            group(arguments, prog_name="quorate", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.UsageError as error:
        if isinstance(error, click.NoSuchOption):
            _keep_near(error)
        error.show()
        for hint in _hints(error):
            click.echo(hint, err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        stopped.set()
        fail(interruption(), arguments)
    except QuorateError as error:
        fail(error, arguments)
    except OSError as error:
        fail(_of_the_machine(error), arguments)
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - of numpy, polars, memory; a panic of Rust is no Exception
        fail(refusal_of(error), arguments)
    sys.exit(0)


def _hints(error: click.UsageError) -> list[str]:
    """Say what to type instead, where click says only what was wrong."""
    if error.ctx is None:
        return []
    command, path = error.ctx.command, error.ctx.command_path
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        return [f"Write for example: {path} … {error.param.opts[0]} {error.param.make_metavar(error.ctx)}"]
    if isinstance(error, click.NoSuchOption) and "run" in {param.name for param in command.params}:
        from quorate.folder.template import place_of

        place = place_of(error.option_name.lstrip("-").replace("-", "_"))
        return [f"It is set in quorate.toml: {place}"] if place else []
    if not error.message.startswith("Got unexpected extra argument"):
        return []
    extra = error.message.partition("(")[2].rstrip(")")
    places = [param.opts[0] for param in command.params if {"--out", "--to"} & set(param.opts)]
    if places:
        return [f"If that is where to write: {path} {places[0]} {extra}"]
    arguments = [param.make_metavar(error.ctx) for param in command.params if isinstance(param, click.Argument)]
    if not arguments:
        return [f"{path} takes no argument."]
    return [f"{path} takes {' and '.join(arguments)} alone; a name with spaces needs quotes."]


def _keep_near(error: click.NoSuchOption) -> None:
    """Keep the suggestions whose names are near: the dashes, which all options have, make no two of them alike."""
    if error.possibilities:
        from difflib import get_close_matches

        names = {option.lstrip("-"): option for option in error.possibilities}
        error.possibilities[:] = [names[option] for option in get_close_matches(error.option_name.lstrip("-"), names)]


def _give_up(arguments: list[str], stopped: Event) -> NoReturn:
    """Say it and end at once, from another thread: the main one was told to stop, and is still at something."""
    error = interruption()
    # The process's own stream, whatever the main thread has made of it.
    if not stopped.is_set() and sys.__stderr__ is not None:
        sys.__stderr__.write("\n".join(["", *lines(error, arguments), ""]))
        sys.__stderr__.flush()
    os._exit(error.exit_code)


def _of_the_machine(error: OSError) -> PreconditionFailed:
    """A full disk or a missing permission, in one line; what is stored stays, and so does what was charged."""
    where = "" if error.filename is None else f" at {error.filename}"
    said = error.strerror or type(error).__name__
    remedy = REMEDIES.get(error.errno or 0, "mend that")
    words = f"the machine refused{where}: {said[:1].lower()}{said[1:]}"
    if not may_hold_charges(run_in_question.get()):
        return PreconditionFailed(f"{words}; {remedy}, then type the same command again")
    return PreconditionFailed(f"{words}. What is stored stays; {remedy}, then the same command goes on")


def fail(error: QuorateError, arguments: list[str]) -> NoReturn:
    """Print `error` and exit with its code."""
    know_charge(error)
    if error.charged == NOTHING_CHARGED and may_hold_charges(run_in_question.get()):
        error.charged = NOTHING_MORE
    for line in lines(error, arguments):
        click.echo(line, err=True)
    sys.exit(error.exit_code)


def lines(error: QuorateError, arguments: list[str]) -> list[str]:
    """Word `error` as one line, with what was charged below; as JSON where ``--json`` was asked for."""
    if "--json" in arguments:
        import json

        facts: dict[str, Any] = {
            "error": str(error),
            "code": error.code,
            "exit_code": error.exit_code,
            "charged": error.charged,
        }
        return [json.dumps(facts, ensure_ascii=False)]
    said = str(error).removesuffix(". Nothing was charged") if error.charged else str(error)  # which stands below
    return [f"quorate: {said}", f"({error.code}; {error.charged})" if error.charged else f"({error.code})"]

"""What a command prints ends no command, what nobody foresaw is one line, and what was charged the ledger says."""

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from quorate.cli import main, unforeseen
from quorate.cli.group import group
from quorate.cli.unforeseen import forgiving_streams
from quorate.folder import methods

PRIVATE = "born in 9999"


METHODS = {"votes": {}, "direct": {"method.by": "direct"}}


class PanicException(BaseException):
    """As a panic of Rust arrives: no Exception."""


ERRORS = {
    "numpy": (np.linalg.LinAlgError(PRIVATE), 1, "QUO-E015"),
    "panic": (PanicException(PRIVATE), 1, "QUO-E015"),
    "memory": (MemoryError(PRIVATE), 4, "QUO-E004"),
    "array": (np._core._exceptions._ArrayMemoryError((10**6, 10**6), np.dtype(float)), 4, "QUO-E004"),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_an_error_of_a_library_is_one_line_and_a_private_file(kind, options, make_run, cli, monkeypatch):
    error, exit_code, code = ERRORS[kind]
    folder = make_run()
    (folder / "private").mkdir(mode=0o700)

    def fails(*_, **__):
        raise error

    monkeypatch.setattr(methods, "load_run", fails)
    found, out, err = cli("check", folder, *options)
    kept = folder / "private" / "last-error.txt"
    assert (found, out) == (exit_code, "")
    assert PRIVATE not in err
    assert "Traceback" not in err.replace("Its traceback is in", "")
    assert str(kept) in err
    if options:
        assert json.loads(err)["code"] == code
    else:
        assert err.splitlines()[-1] == f"({code}; nothing was charged)"
        assert len(err.splitlines()) == 2
    assert kept.stat().st_mode & 0o777 == 0o600
    first, *rest = kept.read_text().splitlines()
    assert first == unforeseen.WARNING
    assert str(error) in "\n".join(rest)


def test_without_a_folder_the_traceback_is_in_a_file_of_the_user_alone(cli, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(group, "invoke", lambda _: 1 // 0)
    code, _, err = cli("ledger", "show", "nowhere")
    (kept,) = tmp_path.glob("quorate-last-error-*.txt")
    assert code == 1
    assert str(kept) in err
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["votes", "direct"])
def test_an_error_after_the_charge_says_what_the_ledger_holds(method, make_run, cli, monkeypatch):
    folder = make_run(**METHODS[method])

    def fails(*_, **__):
        raise ValueError(PRIVATE)

    with monkeypatch.context() as broken:
        broken.setattr(methods, "publish_run", fails)
        code, _, err = cli("run", folder)
    assert code == 1
    assert PRIVATE not in err
    assert "the ledger holds the charge of this run" in err.splitlines()[-1]
    with monkeypatch.context() as broken:  # and so for ever, also where the error comes early
        broken.setattr(methods, "readers_of", fails)
        assert "the ledger holds the charge of this run" in cli("run", folder)[2].splitlines()[-1]
    cli.ok("run", folder)


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["votes", "direct"])
def test_a_folder_whose_name_is_no_text_simply_works(method, make_run, cli, tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 1"))
    shutil.move(make_run(**METHODS[method]), folder)
    cli.ok("run", folder)
    assert "caf\ufffd 1" in (folder / "public" / "report.html").read_text(encoding="utf-8")
    for command in ("check", "status", "report"):
        cli.ok(command, folder)
    cli.ok("predict", folder, folder / "evaluation.csv", "--out", folder / "predicted.csv")


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["votes", "direct"])
def test_what_cannot_be_written_is_refused_before_the_charge(method, make_run, cli, monkeypatch):
    folder = make_run(**METHODS[method])
    monkeypatch.setattr(methods, "readers_of", lambda _: (("a reader \udce9", "1.0"),))
    code, _, err = cli("run", folder)
    assert code != 0
    assert "nothing was charged" in err
    shown = cli.json("ledger", "show", folder)
    assert shown["spent"]["epsilon"] == 0


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["my runs", "it's", "-run", "a;b", "$HOME"])
def test_commands_that_are_printed_can_be_pasted(name, make_run, cli, monkeypatch, tmp_path):
    named = make_run().rename(tmp_path / name)
    monkeypatch.chdir(named.parent)
    typed = f"./{name}" if name.startswith("-") else name
    said = [line for command in ("check", "status") for line in cli(command, typed)[1].splitlines()]
    commands = [line[line.index("quorate ") :] for line in said if "quorate run " in line or "quorate check " in line]
    assert commands
    for command in commands:
        assert Path(shlex.split(command)[2]).resolve() == named


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_stream_of_any_encoding_takes_what_is_printed(encoding, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    with forgiving_streams():
        print(json.dumps("ε \U0001f600", ensure_ascii=False))
    said = raw.getvalue().decode("latin-1" if encoding == "latin-1" else "utf-8")
    assert json.loads(said) == "ε \U0001f600"


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("ends", ["| head -c 1 >/dev/null", ">&-", "2>&- >&-", "2>&1 | head -c 1 >/dev/null"])
def test_a_reader_that_leaves_changes_no_exit_code(ends, tmp_path):
    code = "import sys; from quorate.cli import main; main(['--help'])"
    line = f"set -o pipefail; {shlex.quote(sys.executable)} -c {shlex.quote(code)} {ends}; echo $? >code"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (tmp_path / "code").read_text().strip() == "0"
    assert done.stderr == ""


def test_no_command_of_this_process_leaves_its_streams_swapped(cli):
    before = sys.stdout, sys.stderr
    with pytest.raises(SystemExit):
        main(["--help"])
    assert (sys.stdout, sys.stderr) == before


def test_no_file_gets_the_number_of_a_stream_that_the_caller_closed(tmp_path):
    child = (
        "import os, sys\n"
        "os.close(0); os.close(2)\n"
        "from quorate.cli.unforeseen import forgiving_streams\n"
        "with forgiving_streams():\n"
        "    ledger = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "    os.write(2, b'what a library says')\n"
        "    print(ledger)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", child, str(tmp_path / "ledger")], capture_output=True, text=True, check=True
    )
    assert int(said.stdout) > 2
    assert (tmp_path / "ledger").read_bytes() == b""

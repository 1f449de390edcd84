"""What stands in deploy/ fits the service: settings and their defaults, a command line that there is, codes, ports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from configparser import RawConfigParser
from dataclasses import fields
from pathlib import Path

import pytest

from quorate.cli.serve import command
from quorate.errors import InvalidParameter, LedgerIntegrityError, PreconditionFailed
from quorate.service.settings import PREFIX, ServiceSettings, read_service_settings

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_settings_file_shows_every_setting_with_its_default() -> None:
    path = DEPLOY / "service.toml"
    assert read_service_settings(path, environment={}) == ServiceSettings()
    named = re.findall(r"^(?:# )?(\w+) = ", path.read_text(), re.MULTILINE)
    assert named == [each.name for each in fields(ServiceSettings)]


def test_the_unit_starts_the_service_and_no_broken_ledger_again() -> None:
    unit = RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((DEPLOY / "quorate@.service").read_text())
    service = unit["Service"]
    program, verb, *rest = service["ExecStart"].split()
    assert (Path(program).name, verb) == ("quorate", "serve")
    given = command.make_context("serve", rest).params
    assert given["run"] == Path("/srv/quorate/%i")
    assert service["ReadWritePaths"] == str(given["run"])
    stays_down = {int(code) for code in service["RestartPreventExitStatus"].split()}
    assert stays_down == {InvalidParameter.exit_code, PreconditionFailed.exit_code, LedgerIntegrityError.exit_code}
    assert (service["KillSignal"], service["UMask"]) == ("SIGTERM", "0077")
    assert int(service["TimeoutStopSec"]) > ServiceSettings().shutdown_seconds
    assert PREFIX in (DEPLOY / "quorate@.service").read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "quorate@.service").read_text().replace("/opt/quorate/bin/quorate", "/bin/true")
    (tmp_path / "quorate@run.service").write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "quorate@run.service")], capture_output=True, text=True
    )
    assert "quorate@run.service" not in done.stderr, done.stderr


def test_the_container_serves_behind_a_proxy_on_the_port_that_it_publishes() -> None:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    of = {word: line.partition(" ")[2] for line in lines if (word := line.partition(" ")[0]).isupper()}
    program, verb, *rest = [*json.loads(of["ENTRYPOINT"]), *json.loads(of["CMD"])]
    assert (program, verb) == ("quorate", "serve")
    given = command.make_context("serve", rest).params
    assert ServiceSettings(host=given["host"], behind_proxy=given["behind_proxy"]).port == int(of["EXPOSE"])
    *_, code = json.loads(of["HEALTHCHECK"].partition("CMD ")[2])
    compile(code, "HEALTHCHECK", "exec")
    assert f":{of['EXPOSE']}/readyz" in code
    assert of["USER"] != "root"
    assert of["STOPSIGNAL"] == "SIGTERM"

"""How a run is served: file, environment, command line; no open door without TLS, and TLS from end to end."""

import json
import re
import shutil
import ssl
import subprocess
from configparser import RawConfigParser
from dataclasses import fields
from pathlib import Path

import httpx
import pytest
from tests.service.conftest import rows
from tests.service.processes import serving

from quorate.cli.serve import command
from quorate.errors import InvalidParameter, LedgerIntegrityError, PreconditionFailed, naming
from quorate.ledger import Ledger
from quorate.service import Client, NoAnswer
from quorate.service.keys import KeyFile
from quorate.service.server import check_certificate
from quorate.service.settings import PREFIX, ServiceSettings, read_service_settings


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text(
        '[service]\nport = 1\nmax_rows = 2\nafter_budget = "refuse"\ntls_cert = "c.pem"\ntls_key = "k.pem"\n'
    )
    environment = {"QUORATE_SERVE_PORT": "3", "QUORATE_SERVE_MAX_ROWS": "4", "HOME": "/"}
    found = read_service_settings(path, environment=environment, port=5, host=None)
    assert (found.port, found.max_rows, found.after_budget) == (5, 4, "refuse")
    assert found.tls_cert == tmp_path / "c.pem"


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "service.example"])  # noqa: S104
def test_a_public_address_needs_tls_or_a_proxy(host):
    with pytest.raises(InvalidParameter, match="behind_proxy"):
        ServiceSettings(host=host)
    assert ServiceSettings(host=host, behind_proxy=True)
    assert ServiceSettings(host=host, tls_cert=Path("c"), tls_key=Path("k"))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_an_address_of_this_machine_alone_needs_neither(host):
    assert ServiceSettings(host=host).on_loopback


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(
            ({name: 99_999}, f"^{name} must be a whole number from 0 to 65535, got 99999$")
            for name in ("port", "metrics_port")
        ),
        *(
            ({part.name: 10**400}, f"^{part.name} must be a .*number")
            for part in fields(ServiceSettings)
            if type(part.default) in (int, float)
        ),
        ({"max_rows": 0}, "^max_rows"),
        ({"after_budget": "sell"}, "^after_budget"),
        ({"tls_cert": Path("c")}, "tls_key"),
        ({"body_seconds": 0.0}, "^body_seconds"),
    ],
)
def test_a_wrong_value_is_told_by_its_name(given, said):
    with pytest.raises(InvalidParameter, match=said):
        ServiceSettings(**given)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[service]\nprot = 1\n", 'did you mean "port"'),
        ('[service]\nport = "1"\n', "port must be of type int"),
        ("[service]\nport = true\n", "port must be of type int"),
        ("[other]\n", "one section"),
        (f"[service]\nport = {'9' * 5000}\n", "not valid TOML"),
    ],
)
def test_a_file_says_what_is_wrong_with_it(tmp_path, text, said):
    path = tmp_path / "service.toml"
    path.write_text(text)
    with pytest.raises((InvalidParameter, PreconditionFailed), match=said):
        read_service_settings(path, environment={})


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(PreconditionFailed):
        read_service_settings(tmp_path / "nowhere.toml", environment={})
    with pytest.raises(InvalidParameter):
        read_service_settings(None, environment={"QUORATE_SERVE_PORT": "x"})


def test_what_kubernetes_sets_for_a_service_of_that_name_is_left_alone():
    of_one = {
        "SERVICE_HOST": "10.0.0.1",
        "SERVICE_PORT": "8470",
        "SERVICE_PORT_HTTP": "8470",
        "PORT": "tcp://10.0.0.1:8470",
        "PORT_8470_TCP": "tcp://10.0.0.1:8470",
        "PORT_8470_TCP_PROTO": "tcp",
        "PORT_8470_TCP_PORT": "8470",
        "PORT_8470_TCP_ADDR": "10.0.0.1",
    }
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.9"}
    for service in ("QUORATE", "QUORATE_SERVE"):
        environment |= {f"{service}_{name}": value for name, value in of_one.items()}
    assert read_service_settings(None, environment=environment) == ServiceSettings()
    assert read_service_settings(None, environment={**environment, "QUORATE_SERVE_MAX_ROWS": "7"}).max_rows == 7


def test_a_setting_is_refused_under_the_name_by_which_it_was_given(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text("[service]\nmax_rows = 0\n")
    with pytest.raises(
        InvalidParameter, match=r"^\[service\] max_rows must be a whole number from 1 to 1000000000, got 0"
    ):
        read_service_settings(path, environment={})
    environment = {"QUORATE_SERVE_MAX_ROWS": "-4"}
    with pytest.raises(
        InvalidParameter, match=r"^QUORATE_SERVE_MAX_ROWS must be a whole number from 1 to 1000000000, got -4"
    ):
        read_service_settings(path, environment=environment)
    with naming({"max_rows": "--max-rows"}), pytest.raises(InvalidParameter, match=r"^--max-rows must be .*, got -5"):
        read_service_settings(path, environment=environment, max_rows=-5)


DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_settings_file_shows_every_setting_with_its_default():
    path = DEPLOY / "service.toml"
    assert read_service_settings(path, environment={}) == ServiceSettings()
    named = re.findall(r"^(?:# )?(\w+) = ", path.read_text(), re.MULTILINE)
    assert named == [each.name for each in fields(ServiceSettings)]


def test_the_unit_starts_the_service_and_no_broken_ledger_again():
    unit = RawConfigParser(strict=False)
    unit.optionxform = str
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
def test_systemd_takes_the_unit(tmp_path):
    text = (DEPLOY / "quorate@.service").read_text().replace("/opt/quorate/bin/quorate", "/bin/true")
    (tmp_path / "quorate@run.service").write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "quorate@run.service")], capture_output=True, text=True
    )
    assert "quorate@run.service" not in done.stderr, done.stderr


def test_the_container_serves_behind_a_proxy_on_the_port_that_it_publishes():
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    of = {word: line.partition(" ")[2] for line in lines if (word := line.partition(" ")[0]).isupper()}
    program, verb, *rest = [*json.loads(of["ENTRYPOINT"]), *json.loads(of["CMD"])]
    assert (program, verb) == ("quorate", "serve")
    given = command.make_context("serve", rest).params
    assert ServiceSettings(host=given["host"], behind_proxy=given["behind_proxy"])
    assert given["port"] == int(of["EXPOSE"])  # whatever service.toml says
    *_, code = json.loads(of["HEALTHCHECK"].partition("CMD ")[2])
    compile(code, "HEALTHCHECK", "exec")
    assert f":{of['EXPOSE']}/readyz" in code
    assert of["USER"] != "root"
    assert of["STOPSIGNAL"] == "SIGTERM"


OPENSSL = shutil.which("openssl")
with_openssl = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed, so no certificate can be made")


def openssl(folder, *arguments):
    subprocess.run([OPENSSL, *arguments], cwd=folder, check=True, capture_output=True)


def authority(folder, name):
    openssl(
        folder,
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"),
        *("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}"),
        *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"),
    )
    return folder / f"{name}.pem"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate for 127.0.0.1, its key, who signed it, and somebody who did not."""
    folder = tmp_path_factory.mktemp("certificates")
    ours, other = authority(folder, "ours"), authority(folder, "other")
    request = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=service")
    openssl(folder, *request, "-keyout", "service.key", "-out", "service.csr")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    signed = ("x509", "-req", "-in", "service.csr", "-CA", "ours.pem", "-CAkey", "ours.key", "-days", "1")
    openssl(folder, *signed, "-extfile", "names", "-out", "service.pem")
    return {"cert": folder / "service.pem", "key": folder / "service.key", "ours": ours, "other": other}


@with_openssl
@pytest.mark.heavy
def test_a_client_who_trusts_the_signer_asks_and_one_who_trusts_another_is_told_in_one_line(
    own_run, certificates, monkeypatch
):
    root = own_run()
    token, _ = KeyFile(root / "private").create("a test", ["ask", "read"])
    tls = ("--tls-cert", certificates["cert"], "--tls-key", certificates["key"])
    with serving(root, *tls) as service:
        url = f"https://127.0.0.1:{service.port}"
        with Client(url, token, ca=certificates["ours"]) as asking:
            assert asking.label(rows(1)[0]).by == "ensemble"
            assert asking.budget()["answers_left"] == 11
        with monkeypatch.context() as environment:
            environment.setenv("SSL_CERT_FILE", str(certificates["ours"]))
            with Client(url, token) as asking:
                assert asking.budget()["answers_left"] == 11
        for trusted in (certificates["other"], None):
            with Client(url, token, ca=trusted) as asking, pytest.raises(NoAnswer) as refused:
                asking.label(rows(2)[1])
            assert "the certificate of the service is not trusted" in str(refused.value)
            assert str(refused.value).endswith("nothing was charged")
            assert len(str(refused.value).splitlines()) == 1
            assert not refused.value.charged
        plain = Client(f"http://127.0.0.1:{service.port}", token, retries=1, sleep=lambda _: None)
        with plain as asking, pytest.raises(NoAnswer):  # no answer to who does not speak TLS
            asking.label(rows(2)[1])
        trusted = ssl.create_default_context(cafile=certificates["ours"])
        with pytest.raises(httpx.TransportError):
            httpx.get(f"https://localhost:{service.port}/livez", verify=trusted)  # another name
        assert service.stop() == 0
        said = service.said.read_text()
    assert f"serving    run on https://127.0.0.1:{0}" in said
    assert token not in said
    with Ledger(root / "ledger.db") as ledger:
        assert sum(each.remaining("online answer") for each in ledger.reservations()) == 11


@with_openssl
@pytest.mark.parametrize("cert", ["key", "other", "nowhere", "no PEM"])
def test_a_certificate_that_cannot_be_used_is_refused_before_anything_is_served(certificates, tmp_path, cert):
    (tmp_path / "no PEM").write_text("no PEM")
    place = certificates.get(cert, tmp_path / cert)
    check_certificate(ServiceSettings(tls_cert=certificates["cert"], tls_key=certificates["key"]))
    with pytest.raises(PreconditionFailed, match="cannot be used") as refused:
        check_certificate(ServiceSettings(tls_cert=place, tls_key=certificates["key"]))
    assert len(str(refused.value).splitlines()) == 1
    assert (f"tls_cert {place} cannot be used (ENOENT" in str(refused.value)) == (cert == "nowhere")
    with pytest.raises(PreconditionFailed, match=f"^tls_key {tmp_path / 'nowhere'} cannot be used .ENOENT"):
        check_certificate(ServiceSettings(tls_cert=certificates["cert"], tls_key=tmp_path / "nowhere"))


def test_a_client_is_told_what_is_no_file_of_certificates(tmp_path, monkeypatch):
    (tmp_path / "no PEM").write_text("no PEM")
    for place in (tmp_path / "nowhere", tmp_path / "no PEM", tmp_path):
        with pytest.raises(InvalidParameter, match="ca must be a file of certificates"):
            Client("https://127.0.0.1", "k", ca=place)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "no PEM"))
    with pytest.raises(InvalidParameter, match="SSL_CERT_FILE or SSL_CERT_DIR names no certificates"):
        Client("https://127.0.0.1", "k")

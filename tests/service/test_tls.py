"""TLS from end to end: the command with a certificate of its own, and clients who trust its signer, or another one."""

import shutil
import ssl
import subprocess

import httpx
import pytest
from tests.service.conftest import rows
from tests.service.processes import serving

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.ledger import Ledger
from quorate.service import Client, NoAnswer
from quorate.service.keys import KeyFile
from quorate.service.server import check_certificate
from quorate.service.settings import ServiceSettings

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed, so no certificate can be made")


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


@pytest.mark.heavy
def test_a_client_who_trusts_the_signer_asks_and_one_who_trusts_another_is_told_in_one_line(own_run, certificates):
    root = own_run()
    token, _ = KeyFile(root / "private").create("a test", ["ask", "read"])
    tls = ("--tls-cert", certificates["cert"], "--tls-key", certificates["key"])
    with serving(root, *tls) as service:
        url = f"https://127.0.0.1:{service.port}"
        with Client(url, token, ca=certificates["ours"]) as asking:
            assert asking.label(rows(1)[0]).by == "ensemble"
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


@pytest.mark.parametrize("cert", ["key", "other", "nowhere", "no PEM"])
def test_a_certificate_that_cannot_be_used_is_refused_before_anything_is_served(finished, certificates, tmp_path, cert):
    (tmp_path / "no PEM").write_text("no PEM")
    place = certificates.get(cert, tmp_path / cert)
    check_certificate(ServiceSettings(tls_cert=certificates["cert"], tls_key=certificates["key"]))
    with pytest.raises(PreconditionFailed, match="cannot be used") as refused:
        check_certificate(ServiceSettings(tls_cert=place, tls_key=certificates["key"]))
    assert len(str(refused.value).splitlines()) == 1


def test_a_client_is_told_what_is_no_file_of_certificates(tmp_path):
    (tmp_path / "no PEM").write_text("no PEM")
    for place in (tmp_path / "nowhere", tmp_path / "no PEM", tmp_path):
        with pytest.raises(InvalidParameter, match="ca must be a file of certificates"):
            Client("https://127.0.0.1", "k", ca=place)

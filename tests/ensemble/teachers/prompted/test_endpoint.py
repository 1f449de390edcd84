"""What an endpoint may do, and what is asked of it: nothing of prompts, replies or keys is told to anybody."""

import logging
import pickle
import shutil
import ssl
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.ensemble.teachers.prompted.stand_in import BAD, endpoint, reply, send, well

from quorate.ensemble import ABSTAINED, ChatTeacher
from quorate.ensemble.teachers.prompted import ChatEndpoint, Unanswered
from quorate.ensemble.teachers.prompted import endpoint as endpoint_module
from quorate.errors import InvalidParameter, PreconditionFailed

OPENSSL = shutil.which("openssl")
ROWS = pl.DataFrame({"review": ["a bad film", "a good film", "dull and bad", "good fun"]})
CODES = np.array([0, 1, 0, 1])
ASKED = pl.DataFrame({"review": ["good film", "bad film"]})


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(endpoint_module, "_PAUSE", 0.0)


def votes(url: str, **more: Any) -> list[int]:
    teacher = ChatTeacher(url, "toy", classes=["no", "yes"], **{"timeout": 5.0, **more})
    return np.asarray(teacher.train(ROWS, CODES, 1).vote(ASKED)).tolist()


def test_an_endpoint_that_behaves_labels_rows():
    with endpoint() as there:
        assert votes(there.url) == [1, 0]
        asked = there.asked[0]
        assert (asked["temperature"], asked["model"], asked["stream"]) == (0, "toy", False)
        assert isinstance(asked["seed"], int)
        assert {each["seed"] for each in there.asked} == {asked["seed"]}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("manner", BAD, ids=str)
def test_a_reply_that_does_not_count_is_an_abstention(manner):
    with endpoint(manner=BAD[manner]) as there:
        assert votes(there.url, timeout=0.3 if manner in ("late", "a byte at a time") else 30.0) == [ABSTAINED] * 2


def test_a_dead_endpoint_makes_everyone_abstain():
    with endpoint() as there:
        pass
    assert votes(there.url) == [ABSTAINED] * 2


def test_blanks_and_case_do_not_matter():
    with endpoint(manner=lambda handler, said: send(handler, reply(f"  {said.upper()}\n"))) as there:
        assert votes(there.url) == [1, 0]


def test_a_server_that_closes_each_connection_is_read_to_the_end():
    def closes(handler: Any, said: str) -> None:
        body = reply(said)
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n")
        handler.wfile.flush()
        time.sleep(0.05)
        handler.wfile.write(body)

    with endpoint(manner=closes) as there:
        assert votes(there.url) == [1, 0]


def test_a_busy_server_is_asked_again_and_not_for_ever():
    tries: list[str] = []

    def busy_twice(handler: Any, said: str) -> None:
        tries.append(said)
        (send(handler, b"", 503) if len(tries) < 3 else well(handler, said))

    with endpoint(manner=busy_twice) as there:
        assert votes(there.url, retries=2, connections=1) == [1, 0]
        assert len(tries) == 4
    with endpoint(manner=BAD["always busy"]) as there:
        votes(there.url, retries=3, connections=1)
        assert len(there.asked) == 2 * 4


def test_no_more_requests_are_under_way_than_allowed():
    lock, now, most = threading.Lock(), [0], [0]

    def counted(handler: Any, said: str) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:  # before the reply, at which the next request may come
            now[0] -= 1
        well(handler, said)

    with endpoint(manner=counted) as there:
        teacher = ChatTeacher(there.url, "toy", classes=["no", "yes"], connections=2)
        teacher.train(ROWS, CODES, 1).vote(pl.concat([ASKED] * 6))
    assert most == [2]


def test_a_redirect_is_not_followed_also_not_to_this_machine():
    with endpoint() as elsewhere:
        place = f"{elsewhere.url}/chat/completions"
        with endpoint(manner=lambda handler, said: send(handler, b"", 308, Location=place)) as there:
            assert votes(there.url) == [ABSTAINED] * 2
        assert elsewhere.asked == []


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    with endpoint() as proxy, endpoint() as there:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        assert votes(there.url) == [1, 0]
        assert proxy.asked == []


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("url", "hosts", "said"),
    [
        ("http://10.0.0.7/v1", (), "another machine"),
        ("https://llm.example.org/v1", ("other.example.org",), "another machine"),
        ("http://llm.example.org/v1", ("llm.example.org",), "https"),
        ("http://127.0.0.1.example.org/v1", (), "another machine"),
        ("http://user:secret@127.0.0.1/v1", (), "without a name"),
        ("http://127.0.0.1/v1?key=secret", (), "without a name"),
        ("ftp://127.0.0.1/v1", (), "must be a URL"),
        ("http://127.0.0.1:99999/v1", (), "must be a URL"),
        ("http://127.0.0.1/v1\r\nX: 1", (), "must be a URL"),
        (7, (), "must be a URL"),
    ],
)
def test_an_endpoint_elsewhere_is_refused_unless_it_is_named(url, hosts, said):
    with pytest.raises(InvalidParameter, match=said) as refused:
        ChatEndpoint(url, "toy", hosts=hosts)
    assert "secret" not in str(refused.value)


def test_a_named_host_is_taken_over_https():
    assert ChatEndpoint("https://llm.example.org/v1", "toy", hosts=("LLM.example.org",)).hosts == ("llm.example.org",)


def test_localhost_must_be_this_machine_when_it_is_connected_to(monkeypatch):
    """A name can be made to stand for another address; nothing is sent there."""
    with endpoint() as there:
        port = there.server.server_address[1]
        assert votes(f"http://localhost:{port}/v1") == [1, 0]
        before = len(there.asked)
        monkeypatch.setattr(
            endpoint_module.ipaddress, "ip_address", lambda shown: type("Far", (), {"is_loopback": False})
        )
        assert votes(f"http://localhost:{port}/v1") == [ABSTAINED] * 2
        assert votes(f"http://localhost:{port}/v1", hosts=["localhost"]) == [ABSTAINED] * 2  # also where it is named
        assert len(there.asked) == before


def test_a_server_without_a_trusted_certificate_is_not_spoken_to():
    with endpoint() as there:
        assert votes(there.url.replace("http://", "https://")) == [ABSTAINED] * 2
        assert there.asked == []


def rehearsed(url: str, **how: Any) -> str:
    """What is said of an endpoint that gives no class."""
    with pytest.raises(PreconditionFailed) as refused:
        ChatTeacher(url, "toy", classes=["no", "yes"], **how).try_prompt(ROWS, CODES)
    said = str(refused.value)
    assert "\n" not in said
    return said


@pytest.mark.heavy
def test_https_to_a_server_of_http_names_the_likely_cause():
    with endpoint() as there:
        said = rehearsed(there.url.replace("http://", "https://"))
    assert "does not speak https as it was asked to" in said
    assert "If the server speaks http, as one on this machine may, write http:// in its address" in said


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key, signed = folder / "key.pem", folder / "signed.pem"
    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1")
    called = ("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")
    made = (str(OPENSSL), *new, *called, "-keyout", str(key), "-out", str(signed))
    subprocess.run(made, check=True, capture_output=True)
    return key, signed


@pytest.mark.heavy
@pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed, so no certificate can be made")
def test_a_certificate_that_is_not_trusted_is_told_apart(tmp_path):
    key, signed = certificate(tmp_path, "nobody")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(signed, key)
    with endpoint(tls=tls) as there:
        said = rehearsed(there.url)
        assert there.asked == []
    assert "its certificate is not trusted here" in said
    assert "ca_file" in said


@pytest.mark.heavy
@pytest.mark.parametrize("reason", ["TLSV13_ALERT_CERTIFICATE_REQUIRED", "TLSV1_ALERT_PROTOCOL_VERSION"])
def test_a_server_that_speaks_another_tls_is_not_said_to_speak_http(reason, monkeypatch):
    """Told as OpenSSL tells it: a server that refuses may also hang up first, which is a broken connection."""

    def refused(_: Any) -> None:
        error = ssl.SSLError(1, "refused")
        error.reason = reason
        raise error

    monkeypatch.setattr(endpoint_module._Timed, "connect", refused)
    said = rehearsed("https://localhost:9/v1")
    assert "write http://" not in said
    assert "It may ask for a certificate of the client" in said


@pytest.mark.heavy
def test_where_nothing_answers_over_https_http_is_not_proposed():
    with endpoint() as there:
        url = there.url.replace("http://", "https://")
    assert "nothing answers there" in (said := rehearsed(url))
    assert "write http://" not in said


KEY = "sk-a-very-secret-key"


def test_the_key_is_sent_and_kept_nowhere(monkeypatch, caplog):
    monkeypatch.setenv("TOY_KEY", KEY)
    with endpoint() as there, caplog.at_level(logging.DEBUG):
        assert votes(there.url, api_key_env="TOY_KEY") == [1, 0]
        assert there.headers[0]["Authorization"] == f"Bearer {KEY}"
        teacher = ChatTeacher(there.url, "toy", classes=["no", "yes"], api_key_env="TOY_KEY")
        voter = teacher.train(ROWS, CODES, 1)
        there.manner = lambda handler, said: send(handler, reply(KEY), 200)
        with pytest.raises(PreconditionFailed) as refused:
            teacher.try_prompt(ROWS, CODES)
    said = [repr(teacher), repr(voter), repr(vars(teacher)), str(refused.value), caplog.text]
    assert not any(KEY in each for each in said)
    assert KEY.encode() not in pickle.dumps(voter)


def test_a_key_in_place_of_the_name_of_a_variable_is_refused_and_not_shown():
    with pytest.raises(InvalidParameter, match="name of an environment variable") as refused:
        ChatEndpoint("http://127.0.0.1/v1", "toy", api_key_env=KEY)
    assert KEY not in str(refused.value)


def test_without_the_key_nothing_is_asked(monkeypatch):
    monkeypatch.delenv("TOY_KEY", raising=False)
    with endpoint() as there:
        with pytest.raises(Unanswered, match="TOY_KEY"):
            ChatEndpoint(there.url, "toy", api_key_env="TOY_KEY").complete([], seed=0, most_tokens=1)
        assert there.asked == []


def test_nothing_is_logged_or_printed_of_prompts_and_replies(caplog, capfd):
    with caplog.at_level(logging.DEBUG), endpoint(manner=BAD["a sentence"]) as there:
        votes(there.url)
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("manner", "remedy"),
    [
        ("late", "Raise timeout"),
        ("not JSON", "up to and without /chat/completions"),
        ("an unknown class", "Say in instruction that a label alone is wanted"),
        ("refused", "See that api_key_env names the environment variable"),
        ("a redirect", "Give the address that it sends to as url"),
        ("too long", "up to and without /chat/completions"),
    ],
)
def test_the_rehearsal_says_why_in_one_line_and_what_to_do(manner, remedy):
    with endpoint(manner=BAD[manner]) as there:
        # What is not late must not be late on a busy machine.
        said = rehearsed(there.url, timeout=0.3 if manner == "late" else 30.0)
    assert "perhaps" not in said
    assert "gave no class for 4 of 4 public rows" in said
    assert remedy in said

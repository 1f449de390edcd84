"""Keys: the secret is shown once, its hash is kept, and a key that ended is a key no more."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.service.conftest import Serve, rows

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.service import keys as module
from quorate.service.keys import FILE, KeyFile


def test_a_secret_has_256_bits_and_is_kept_nowhere(tmp_path: Path) -> None:
    token, key = KeyFile(tmp_path).create("ward 7", ["ask"])
    secret = token.split("_", 2)[2]
    kept = (tmp_path / FILE).read_text()

    assert len(secret) == 43  # 32 bytes in base64
    assert secret not in kept
    assert key.hash in kept
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_secrets_are_compared_in_constant_time_known_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = KeyFile(tmp_path)
    token, _ = keys.create("ward 7", ["ask"])
    seen: list[tuple[int, int]] = []

    def compare(one: str, other: str) -> bool:
        seen.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(module.hmac, "compare_digest", compare)
    for each in (token, token[:-1] + "?", f"quorate_{'0' * 12}_{'A' * 43}", "no key", ""):
        keys.find(each)
    assert seen == [(64, 64)] * 5


def test_a_key_that_expired_or_was_revoked_is_refused(tmp_path: Path) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    keys = KeyFile(tmp_path, clock=lambda: now[0])
    (brief, _), (long, key) = (keys.create("a", ["ask"], days=days) for days in (1, None))
    assert keys.find(brief)
    now[0] += timedelta(days=1)
    assert keys.find(brief) is None
    assert keys.find(long)
    KeyFile(tmp_path).revoke(key.id)  # by another process
    assert keys.find(long) is None


@pytest.mark.heavy
def test_a_revoked_key_is_refused_by_a_service_that_runs(serve: Serve) -> None:
    run = serve()
    assert run.post({"row": rows(1)[0]}).status_code == 200
    KeyFile(run.root / "private").revoke(run.token.split("_")[1])
    assert run.post({"row": rows(1)[0]}).json()["code"] == "key-refused"


@pytest.mark.heavy
def test_damaged_keys_let_nobody_in(serve: Serve) -> None:
    run = serve()
    (run.root / "private" / FILE).write_text('{"format": "quorate service keys 1"}')
    assert run.post({"row": rows(1)[0]}).status_code == 503
    with pytest.raises(PreconditionFailed, match="damaged"):
        KeyFile(run.root / "private").keys()


@pytest.mark.parametrize("what", ["nothing", "pipe", "device", "deep", "endless"])
def test_keys_that_a_service_read_and_that_are_gone_or_no_file_are_an_error_and_wait_for_nobody(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, file = KeyFile(tmp_path), tmp_path / FILE
    assert keys.find("quorate_none") is None  # there may be no key at first
    token, _ = keys.create("a", ["ask"])
    assert keys.find(token)
    kept = file.rename(tmp_path / "kept")
    if what == "pipe":
        os.mkfifo(file)
    elif what == "device":
        file.symlink_to("/dev/zero")
    elif what == "deep":
        file.write_text("[" * 100_000)
    elif what == "endless":
        monkeypatch.setattr("quorate.service.keys._LONGEST", 100)
        shutil.copy(kept, file)
    with pytest.raises(PreconditionFailed, match="removed" if what == "nothing" else "damaged"):
        keys.find(token)
    monkeypatch.undo()
    kept.rename(file)
    assert keys.find(token)


def test_what_makes_no_key(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    for name, scopes in (("a", ["write"]), ("a", []), ("", ["ask"]), ("a\nb", ["ask"])):
        with pytest.raises(InvalidParameter):
            keys.create(name, scopes)
    with pytest.raises(PreconditionFailed):
        keys.revoke("nobody")
    with pytest.raises(PreconditionFailed):
        KeyFile(tmp_path / "nowhere").create("a", ["ask"])


def test_the_command_line_makes_lists_and_ends_keys(
    own_run: Callable[..., Path], cli: Callable[..., tuple[int, str, str]]
) -> None:
    root = own_run()
    code, token, told = cli("keys", "create", root, "--name", "ward 7", "--scope", "ask", "--days", 30, "--quota", 5)
    assert (code, token.startswith("quorate_"), "at most 5 answers" in told) == (0, True, True)
    assert KeyFile(root / "private").find(token.strip())
    code, listed, _ = cli("keys", "list", root)
    assert (code, token.strip() in listed, "ward 7" in listed) == (0, False, True)
    assert cli("keys", "revoke", root, token.split("_")[1])[0] == 0
    assert KeyFile(root / "private").find(token.strip()) is None
    assert "revoked" in cli("keys", "list", root)[1]

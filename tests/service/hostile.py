"""Hostile requests, made up at random: what is sent, and what may come back."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

MARK = "zqxmark"
NUMBERS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    '"half"',
    "true",
    "null",
    "[]",
    "{}",
    "9" * 400,
    "1e300",
    "-0",
    "01",
    ".5",
]
GOOD = {"age": 41, "bmi": 24.5, "ward": "north"}


@dataclass(frozen=True)
class Request:
    """One request as bytes of its body, and its headers."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    path: str = "/v1/label"


def requests(seed: int, n: int, tokens: dict[str, str]) -> list[Request]:
    """Make up `n` requests none of which may be answered.

    Parameters
    ----------
    tokens : dict of str to str
        "good", "expired", "revoked" and "read" (a key that may not ask).
    """
    rng = random.Random(seed)
    return [_one(rng, tokens) for _ in range(n)]


def _one(rng: random.Random, tokens: dict[str, str]) -> Request:
    headers = {"authorization": f"Bearer {tokens['good']}", "content-type": "application/json"}
    kind = rng.choice(
        ["value", "value", "bytes", "shape", "shape", "deep", "twice", "key", "type", "size", "elsewhere"]
    )
    if kind == "value":
        column, bad = rng.choice(list(GOOD)), rng.choice(NUMBERS)
        if column == "ward":
            bad = rng.choice(["5", "true", "[1]", '"\\ud800"', "NaN"])
        elif bad in ("null", "-0"):
            bad = f'"{MARK}"'
        cells = ", ".join(f'"{name}": {bad if name == column else json.dumps(value)}' for name, value in GOOD.items())
        text = f'{{"row": {{{cells}}}}}' if rng.random() < 0.5 else f'{{"rows": [{json.dumps(GOOD)}, {{{cells}}}]}}'
        return Request(text.encode("utf-8", "surrogatepass"), headers)
    if kind == "bytes":
        whole = json.dumps({"row": {**GOOD, "ward": MARK}}).encode()
        broken = bytearray(whole[: rng.randrange(len(whole))])
        for _ in range(rng.randrange(1, 4)):
            broken.insert(rng.randrange(len(broken) + 1), rng.randrange(128, 256))
        return Request(bytes(broken), headers)
    if kind == "shape":
        tree: Any = rng.choice(
            [
                {"row": {**GOOD, MARK: 1}}, {"row": {"age": 1}}, {"row": [1, 2, 3]}, {"row": MARK}, {"rows": {}},
                {"rows": []}, {"rows": [GOOD] * 1_001}, {"rows": [GOOD, None]}, {}, [], MARK, 5, None, {MARK: GOOD},
                {"row": GOOD, "rows": [GOOD]}, {"row": None}, {"rows": [[GOOD]]},
            ]
        )  # fmt: skip
        return Request(json.dumps(tree).encode(), headers)
    if kind == "deep":
        return Request(rng.choice([b"[", b'{"a":', b'[{"row":', b'{"row":[']) * rng.randrange(5, 20_000), headers)
    if kind == "twice":
        return Request(
            f'{{"row": {{"age": 1, "age": {rng.randrange(99)}, "bmi": 1, "ward": "{MARK}"}}}}'.encode(), headers
        )
    good = json.dumps({"row": {**GOOD, "bmi": rng.random()}}).encode()
    if kind == "key":
        bad = rng.choice(
            ["", "Bearer", f"Bearer {MARK}", f"Bearer {tokens['expired']}", f"Bearer {tokens['revoked']}", "Basic Og==",
             f"Bearer {tokens['read']}", f"Bearer {tokens['good'][:-1]}", f"Bearer {tokens['good']}x", "Negotiate x"]
        )  # fmt: skip
        return Request(good, {**headers, "authorization": bad})
    if kind == "type":
        more = rng.choice(
            [{"content-type": "text/plain"}, {"content-type": ""},
             {"content-type": "application/json; charset=latin-1"}, {"content-encoding": "gzip"},
             {"content-type": "multipart/form-data; boundary=x"},
             {"idempotency-key": "a b"}]
        )  # fmt: skip
        return Request(good, {**headers, **more})
    if kind == "size":
        return Request(b'{"row": "' + b"x" * ((1 << 20) + rng.randrange(9)) + b'"}', headers)
    method, path = rng.choice(
        [("GET", "/v1/label"), ("DELETE", "/v1/label"), ("POST", "/v1/budget"), ("GET", f"/{MARK}"),
         ("GET", "/../keys"),
         ("POST", "/v1/label/"), ("GET", "/private/run.key"), ("PUT", "/"), ("GET", "/%00"), ("OPTIONS", "/v1/label")]
    )  # fmt: skip
    return Request(b"", headers, method, path)

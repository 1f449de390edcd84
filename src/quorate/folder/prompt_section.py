"""The keys of ``[teachers]`` that make teachers out of prompts to an endpoint, where ``endpoint`` is one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from quorate.arguments import one_of, real
from quorate.errors import InvalidParameter
from quorate.folder.section import Section

KEYS = (
    "endpoint", "shots", "choose", "instruction", "text", "timeout", "retries", "connections", "hosts", "api_key_env",
    "ca_file",
)  # fmt: skip
_OF_OTHERS = ("batched", "prior_matching")


def prompt_fields(document: Mapping[str, Any], teachers: Section, folder: Path) -> dict[str, Any]:
    """Read what :class:`~quorate.ensemble.ChatTeacher` is made with beside its model's name; nothing without endpoint.

    `document`: the whole file. `teachers`: its ``[teachers]``. `folder`: what paths are relative to. Raises
    InvalidParameter if a value is of the wrong kind, or a key does not go with the others.
    """
    given = [key for key in KEYS if key in teachers.given]
    if "endpoint" not in given:
        if given:
            raise InvalidParameter(
                f"[teachers] {given[0]} is for teachers that are prompts, and there is no endpoint; leave it out, or "
                'name one. Example: endpoint = "http://127.0.0.1:8000/v1"'
            )
        return {}
    for key in _OF_OTHERS:
        if key in teachers.given:
            raise InvalidParameter(f"[teachers] {key} is for models that are fitted, and prompts are not; leave it out")
    if document.get("method", {}).get("by") == "auto":
        raise InvalidParameter(
            '[method] by = "auto" fits models to public rows to compare them, which prompts are not made for; set '
            'by = "votes"'
        )
    read: dict[str, Callable[[str], Any]] = {
        "shots": lambda key: teachers.number(key, at_least=1),
        "choose": lambda key: one_of("[teachers] choose", teachers.given[key], ("random", "similar")),
        "timeout": lambda key: real("[teachers] timeout", teachers.given[key], above=0),
        "retries": teachers.number,
        "connections": lambda key: teachers.number(key, at_least=1),
        "hosts": lambda key: _hosts(teachers.given[key]),
        "ca_file": lambda key: str(folder / teachers.text(key)),
    }
    return {key: read.get(key, teachers.text)(key) for key in given}


def _hosts(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(host, str) and host for host in given):
        raise InvalidParameter(f'[teachers] hosts must name machines (["llm.hospital.example"]), got {given!r}')
    return tuple(given)

"""The keys of ``[teachers]`` that make teachers out of an external command, where ``command`` is one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate.arguments import one_of, real
from quorate.errors import InvalidParameter
from quorate.folder.section import Section

COMMAND_KEYS = ("command", "timeout", "files", "keeps_model", "environment")
_OF_MODELS = ("model", "batched", "prior_matching")


def command_fields(document: Mapping[str, Any], teachers: Section) -> dict[str, Any]:
    """Read what :class:`~quorate.ensemble.CommandTeacher` is made with; nothing where there is no command.

    `document`: the whole file. `teachers`: its ``[teachers]``. Raises InvalidParameter if a value is of the wrong kind,
    or a key does not go with the others.
    """
    given = teachers.given
    if "command" not in given:
        for key in ("files", "keeps_model", "environment"):
            if key in given:
                raise InvalidParameter(
                    f"[teachers] {key} is for teachers that are a command, and there is none; leave it out, or name "
                    'one. Example: command = ["Rscript", "teach.R"]'
                )
        return {}
    for key in given:
        if key in _OF_MODELS or key not in (*COMMAND_KEYS, "count", "partition"):
            raise InvalidParameter(
                f"[teachers] {key} does not go with command, which is the teacher; leave out one of them"
            )
    if document.get("method", {}).get("by") == "auto":
        raise InvalidParameter(
            '[method] by = "auto" fits models to public rows to compare them, and a command is not tried out so often; '
            'set by = "votes"'
        )
    fields: dict[str, Any] = {"command": _command(given["command"])}
    if "timeout" in given:
        fields["timeout"] = real("[teachers] timeout", given["timeout"], above=0)
    if "files" in given:
        fields["files"] = one_of("[teachers] files", given["files"], ("csv", "parquet"))
    if "keeps_model" in given:
        fields["keeps_model"] = given["keeps_model"]
        if not isinstance(given["keeps_model"], bool):
            raise InvalidParameter(f"[teachers] keeps_model must be true or false, got {given['keeps_model']!r}")
    if "environment" in given:
        fields["environment"] = teachers.names("environment")
    return fields


def _command(given: Any) -> str | tuple[str, ...]:
    if isinstance(given, str) and given.strip():
        return given
    if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
        return tuple(given)
    raise InvalidParameter(
        '[teachers] command must be a program and its arguments (["Rscript", "teach.R"] or "Rscript teach.R"), got '
        f"{given!r}"
    )

"""What the planner chose for ``[method] by = "auto"``: a few settings, kept beside ``quorate.toml``.

The choice follows from ``quorate.toml`` and the public files alone. It is kept when a run begins, so that every later
command and a resumed run go the same way, whatever a later version would choose; an edit of ``quorate.toml`` asks for a
new one. It holds public facts, as ``quorate.toml`` does.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

CHOICE = "chosen-method.json"
NOTHING_CHOSEN = '[method] by = "auto" has chosen nothing yet: quorate run does, and keeps it'
_OF_TEACHERS = ("teachers", "mechanism", "student")


def is_open(document: Mapping[str, Any]) -> bool:
    """Whether ``quorate.toml`` leaves the method to the planner."""
    method = document.get("method")
    return isinstance(method, Mapping) and method.get("by") == "auto"


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the content hash of what ``quorate.toml`` says: a choice is for this very content.

    Examples
    --------
    >>> digest_of({"budget": {"epsilon": 1.0}}) == digest_of({"budget": {"epsilon": 2.0}})
    False
    """
    return blake2b(json.dumps(document, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def chosen(document: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with a choice filled in.

    Examples
    --------
    >>> asked = {"method": {"by": "auto"}, "teachers": {"model": "forest"}, "run": {"n_jobs": 2}}
    >>> chosen(asked, {"method": {"by": "votes"}, "teachers": {"count": 20}})["teachers"]
    {'model': 'forest', 'count': 20}
    >>> chosen({**asked, "student": {"decision_threshold": 0.2}}, {"method": {"by": "direct"}})
    {'method': {'by': 'direct'}, 'run': {}, 'student': {'decision_threshold': 0.2}}
    """
    made = {name: dict(section) if isinstance(section, Mapping) else section for name, section in document.items()}
    if choice["method"]["by"] == "direct":  # which refuses what belongs to teachers
        kept = {key: value for key, value in made.get("student", {}).items() if key == "decision_threshold"}
        made = {name: section for name, section in made.items() if name not in _OF_TEACHERS}
        made |= {"student": kept} if kept else {}
        for key in ("n_jobs", "jobs", "allow_hopeless", "scheduler", "plain_tcp", "shared_folder"):
            made.get("run", {}).pop(key, None)
        made.get("data", {}).pop("n_rows", None)
    else:  # votes have one price for adding, removing and replacing
        made.get("method", {}).pop("neighbours", None)
    for name, section in choice.items():
        made[name] = {**made.get(name, {}), **section}
    return made


def with_kept_choice(document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the document with the choice that a run of it has kept; as it is where there is none."""
    if not is_open(document):
        return document
    try:
        kept = json.loads((folder / CHOICE).read_text(encoding="utf-8"))
        return chosen(document, kept["choice"]) if kept["for"] == digest_of(document) else document
    except (OSError, ValueError, KeyError, TypeError):
        return document


def choice_in_words(folder: Path) -> str | None:
    """Say which method a run goes by that leaves it to the planner; None where it does not, or nothing is chosen yet.

    `folder`: the run's.
    """
    try:
        document = tomllib.loads((folder / "quorate.toml").read_text(encoding="utf-8-sig"))
        kept = json.loads((folder / CHOICE).read_text(encoding="utf-8"))
        if not is_open(document) or kept["for"] != digest_of(document):
            return None
        return in_words(document, kept["choice"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def in_words(document: Mapping[str, Any], choice: Mapping[str, Any]) -> str:
    """Say what the planner chose for a document.

    Examples
    --------
    >>> in_words({}, {"method": {"by": "direct"}})
    '[method] by = "auto" chose the direct method, the first row of quorate plan'
    """
    if choice["method"]["by"] == "direct":
        told = '[method] by = "auto" chose the direct method, the first row of quorate plan'
        idle = [f"[{name}]" for name in _OF_TEACHERS if document.get(name)]
        if not idle:
            return told
        named = idle[0] if len(idle) == 1 else f"{', '.join(idle[:-1])} and {idle[-1]}"
        return f"{told}; {named} {'is' if len(idle) == 1 else 'are'} for teachers, and not used"
    count, mechanism = choice["teachers"]["count"], choice["mechanism"]
    model = f' (model = "{choice["teachers"]["model"]}")' if "model" in choice["teachers"] else ""
    return (
        f'[method] by = "auto" chose votes of {count:,} teachers{model} by {mechanism["name"]} on '
        f"{mechanism['queries']:,} queries, the first row of quorate plan"
    )


def keep_choice(document: Mapping[str, Any], choice: Mapping[str, Any], folder: Path) -> None:
    """Keep a choice beside ``quorate.toml``, durably."""
    from quorate.release.keys import write_atomically

    kept = {"for": digest_of(document), "choice": choice}
    write_atomically(folder / CHOICE, (json.dumps(kept, indent=2, ensure_ascii=False) + "\n").encode())

"""Facts that an earlier version wrote, as this one would have written them; what is not known is not made up."""

from __future__ import annotations

from typing import Any

from quorate.outcomes import Outcome

#: What version 0.1 looked at before it wrote that a check had passed, and by which function. The rest were constants.
_LOOKED_AT = {
    "noise": "quorate.pipeline.facts.checks",
    "seed": "quorate.pipeline.facts.checks",
    "chain": "quorate.ledger.ledger.Ledger.verify",
    "audit": "quorate.run.audited.with_audit",
    "shard audit": "quorate.audit.shards.audit_shards",
}


def upgraded(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of version 0.1 (``"format": 1``) in this version's form.

    Its checks were sentences that held or did not. Where nothing had been looked at, the outcome is "not run".

    Examples
    --------
    >>> old = {"key": "shards", "name": "One record, one teacher", "passed": True, "meaning": "…"}
    >>> upgraded({"checks": [old]})["checks"][0]["outcome"]
    'not run'
    """
    checks = tree.get("checks", ())
    return {**tree, "checks": [_check(each) if isinstance(each, dict) and "key" in each else each for each in checks]}


def _check(old: dict[str, Any]) -> dict[str, Any]:
    ran = _LOOKED_AT.get(old.get("key", ""))
    outcome = Outcome.NOT_RUN if ran is None else Outcome.PASSED if old.get("passed") is True else Outcome.FAILED
    said = "" if ran is not None else "Version 0.1 stated this without looking: "
    return {
        "code": old.get("key"),
        "question": old.get("name"),
        "outcome": str(outcome),
        "evidence": f"{said}{old.get('meaning')}",
        "ran": ran,
        "remedy": None,
    }

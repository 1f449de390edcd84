"""What either method would do in a folder whose target is a number, from public files alone."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.ambient import one_thread
from quorate.arguments import for_shell
from quorate.errors import InvalidParameter, QuorateError, naming
from quorate.folder.settings import keys_of, read_settings, refuse_more_than_the_cap, settings_from
from quorate.folder.table_source import require_file
from quorate.plugins import METHODS, located
from quorate.report.notation import under_label
from quorate.run.method import CheckResult, check_of
from quorate.run.public_facts import ChosenMethod

#: Keys of public rows with targets, which a plan does not read.
_WITH_TARGETS = ("evaluation", "evaluation_query", "calibration", "calibration_query", "calibration_of_evaluation")
_NOT_KNOWN = (
    "how near predictions come, which rests on the private targets. In what was measured the direct method was nearer "
    "on every table: docs/how-to/predict-a-number.md. The run scores its model on [data] evaluation"
)


@dataclass(frozen=True, slots=True)
class NumberPlan:
    """What each method would do, or why it cannot; and the one that a run takes."""

    ways: Mapping[str, CheckResult | str]
    chosen: ChosenMethod
    command: str

    def tree(self) -> dict[str, Any]:
        """Return it in plain values."""
        ways = {way: {"cannot": of} if isinstance(of, str) else dict(of.found) for way, of in self.ways.items()}
        return {"target": "number", "methods": ways, "chosen": self.chosen.by, "why": self.chosen.why}

    def __str__(self) -> str:
        """Return it in 80 columns."""
        lines: list[str] = []
        for way, of in self.ways.items():
            steps = [("cannot", of)] if isinstance(of, str) else [*of.steps, *_noise(of.found)]
            lines += [METHODS[way].words]
            lines += [line for word, what in steps for line in under_label(f"  {word}", what, room=13)]
        lines += under_label("not known", _NOT_KNOWN, room=13)
        lines += under_label("taken", f"{self.chosen.in_words}: {self.command}", room=13)
        return "\n".join(lines)


def _noise(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Say how large the noise of a mean is, where there are means."""
    if found["method"] != "votes":
        return []
    where = "on each mean (one standard deviation)"
    if found["cells"]:
        where += ", in a part of the range as much less as the part is narrower"
    return [("noise", f"{found['noise']:.4g} in the unit of the target {where}")]


@one_thread()
def plan_number(root: Path) -> NumberPlan | None:
    """Plan a run whose target is a number; None where classes are predicted. The private file is never opened."""
    settings = read_settings(root / "quorate.toml")
    data, chosen = settings.data, settings.chosen
    if data.range is None or chosen is None:
        return None
    refuse_more_than_the_cap(settings)
    if data.public is None:
        raise InvalidParameter(
            "a plan follows from public rows, and [data] public names none; "
            f"quorate check {for_shell(root)} says what the run would release and cost"
        )
    require_file("public", data.public)
    if data.n_records is None:
        raise InvalidParameter(
            "a plan never opens the private file, so the number of private units has to be declared: [data] n_records"
        )
    ways = {way: _what(root, way) for way in sorted(METHODS)}
    if isinstance(refused := ways[chosen.by], str):
        raise InvalidParameter(refused)
    return NumberPlan(ways, chosen, f"quorate run {for_shell(root)}")


def _what(root: Path, way: str) -> CheckResult | str:
    """Return what a method would do, or why it cannot."""
    document = tomllib.loads((root / "quorate.toml").read_text(encoding="utf-8-sig"))
    data = {key: held for key, held in document["data"].items() if key not in _WITH_TARGETS}
    sections = {"data": data, "method": {**document.get("method", {}), "by": way}}
    try:
        settings = settings_from({**document, **sections}, folder=root)
        with naming(keys_of(settings)):
            run = located(METHODS[way].read)(root, begin=False, settings=settings, public_alone=True)
            return check_of(run.method, run.task, notes=(), cautions=())
    except QuorateError as refusal:
        return str(refusal)

"""All golden files: what is in each, how it is written, and where two versions of it differ."""

import json
import math
import re
from functools import cache
from itertools import zip_longest
from pathlib import Path

from tests.golden import fits, folders, learned, spoken
from tests.golden.pinned import VERSIONS
from tests.golden.prices import prices

RECORDED = Path(__file__).parent / "recorded"
PARTS = ("guarantee", "ledger", "released")  # of a fit or a run, each in a file of its own
FILES = ("prices", *PARTS, "spoken")
LAST_BITS = 1e-9  # by how much, relatively, a float may differ from machine to machine

CASES = {**fits.cases(), **folders.cases(), **learned.cases()}


@cache
def made(case):
    """Make one fit or run; once in a process."""
    return CASES[case]()


def path_of(file):
    return RECORDED / (f"{file}.txt" if file in ("ledger", "spoken") else f"{file}.json")


def write(file):
    if file == "spoken":
        written = spoken.written(spoken.table())
    elif file == "ledger":
        blocks = ["\n".join([f"# {case}", *made(case)["ledger"]]) for case in CASES]
        written = "\n\n".join([json.dumps(VERSIONS), *blocks]) + "\n"
    else:
        document = prices() if file == "prices" else {case: made(case)[file] for case in CASES}
        written = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        written = _short_lists(written)
    path_of(file).write_text(written, encoding="utf-8")


def _short_lists(text):
    """Write a list of numbers on one line."""
    return re.sub(
        r"\[\s+((?:-?[\d.e+-]+|null)(?:,\s+(?:-?[\d.e+-]+|null))*)\s+\]",
        lambda found: "[" + re.sub(r",\s+", ", ", found.group(1)) + "]",
        text,
    )


@cache
def recorded(file):
    """Read a golden file; the ledger's entries as a mapping of cases to lines."""
    text = path_of(file).read_text(encoding="utf-8")
    if file != "ledger":
        return json.loads(text)
    _, *blocks = text.rstrip("\n").split("\n\n")
    return {block.split("\n")[0].removeprefix("# "): block.split("\n")[1:] for block in blocks}


def recorded_versions():
    first = path_of("ledger").read_text(encoding="utf-8").split("\n", 1)[0]
    return dict(json.loads(first))


def differences(recorded, found, place=""):
    """Yield where two documents differ; floats by more than the last bits."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for name in {**recorded, **found}:
            yield from differences(recorded.get(name), found.get(name), f"{place}/{name}")
    elif isinstance(recorded, list) and isinstance(found, list):
        for i, (one, other) in enumerate(zip_longest(recorded, found)):
            yield from differences(one, other, f"{place}[{i}]")
    elif isinstance(recorded, float) and isinstance(found, float):
        if not math.isclose(recorded, found, rel_tol=LAST_BITS, abs_tol=1e-300):
            yield f"{place}: {recorded!r} is now {found!r}"
    elif recorded != found or type(recorded) is not type(found):
        yield f"{place}: {recorded!r} is now {found!r}"


def without_keys(lines):
    """Return entries without what is made from the libraries' versions."""
    kept = [json.loads(line) for line in lines]
    for entry in kept:
        if entry.get("key") is not None:
            entry["key"] = "…"
    return [json.dumps(entry, sort_keys=True) for entry in kept]

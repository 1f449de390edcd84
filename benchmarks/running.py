"""`quorate demo` beside the same pipeline written plainly with scikit-learn and joblib, each a program of its own.

The demo chooses the form of its student by folds of the noisy votes, so the peer of the same pipeline does too. The
second row's peer fits one linear student instead: that is less than the demo does, and what it prints is less accurate.
What the demo alone does (isolated teachers, files that are written and read, a ledger, exact noise, reports, a student
that others can load) counts against it in both rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from benchmarks.paired import Pair, Work


def demo(*options: str, least: float = 0.81):
    """Run both from the start of the interpreter to the accuracy, which is to be above `least` on both sides."""

    def ours() -> float:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "quorate", "demo", "--out", f"{folder}/demo", "--json"]
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return float(json.loads(told)["accuracy"])

    def theirs() -> float:
        command = [sys.executable, "-m", "benchmarks.plain_demo", *options]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return lambda _quick: Work(ours, theirs, same=lambda mine, other: min(mine, other) > least, processes=True)


PAIRS = (
    Pair("quorate demo", "the same pipeline, plainly", 1, demo(), rounds=5),
    Pair("quorate demo, beside less", "the same with one form of student", 1, demo("--one-form", least=0.8), rounds=5),
)

"""`quorate demo` beside the same pipeline written plainly with scikit-learn and joblib, each a program of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from benchmarks.paired import Pair, Work


def demo(_quick: bool) -> Work:
    """Run both from the start of the interpreter to the accuracy."""

    def ours() -> float:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "quorate", "demo", "--out", f"{folder}/demo", "--json"]
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return float(json.loads(told)["accuracy"])

    def theirs() -> float:
        command = [sys.executable, "-m", "benchmarks.plain_demo"]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return Work(ours, theirs, same=lambda mine, other: min(mine, other) > 0.81, processes=True)


PAIRS = (Pair("quorate demo", "the same pipeline, plainly", 1, demo, rounds=3),)

"""Every row and every curve, each in a process of its own.

    python -m benchmarks [NAME ...] [--quick] [--json FILE] [--page FOLDER] [--list]

NAME is a file of this folder with ``PAIRS`` or ``CURVES``, or a part of a row's name. ``--quick`` takes small inputs
and few rounds: it shows that everything runs and agrees, and its ratios mean little. ``--page docs`` writes
``docs/benchmarks.md`` and its pictures from what was found. ``python -m benchmarks peers`` and ``sets`` are commands of
their own (:mod:`benchmarks.peers`, :mod:`benchmarks.sets`), and no rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.page import write_page
from benchmarks.paired import Growth, Pair, grow, measure

FILES = ("asking", "columns", "counting", "prices", "running", "streaming", "training")
LIBRARIES = ("quorate", "numpy", "scipy", "scikit-learn", "joblib", "polars", "dp-accounting")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def rows() -> dict[str, Pair | Growth]:
    """Every row and curve by ``file: name``."""
    found: dict[str, Pair | Growth] = {}
    for file in FILES:
        module = import_module(f"benchmarks.{file}")
        for row in (*getattr(module, "PAIRS", ()), *getattr(module, "CURVES", ())):
            found[f"{file}: {row.name}"] = row
    return found


def versions() -> dict[str, str]:
    """The machine and the libraries, as the page names them."""
    return {
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        **{name: version(name) for name in LIBRARIES},
    }


def told(found: dict[str, Any]) -> str:
    """One line for a person."""
    if "exponent" in found:
        return f"{found['name']:<66} grows as {found['of']}^{found['exponent']:.2f} (at most {found['at_most']:g})"
    return (
        f"{found['name']:<66} {found['ratio']:7.2f} × {found['peer']} (at least {found['at_least']:g}); "
        f"{found['seconds']:.3f} s of CPU, {found['megabytes']:.0f} MB"
    )


def main() -> None:
    if sys.argv[1:2] == ["sets"]:
        from benchmarks.sets import main as sets

        sets(sys.argv[2:])
        return
    if sys.argv[1:2] == ["peers"]:  # a command of its own: it makes environments, and takes hours
        from benchmarks.peers import main as peers

        peers(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small inputs: does everything run and agree?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found")
    parser.add_argument("--page", type=Path, metavar="FOLDER", help="write benchmarks.md and its pictures")
    parser.add_argument("--list", action="store_true", help="name the rows")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    every = rows()
    if given.one:
        row = every[given.one]
        print(json.dumps((measure if isinstance(row, Pair) else grow)(row, quick=given.quick)))  # type: ignore[operator]
        return
    chosen = [name for name in every if not given.names or any(part in name for part in given.names)]
    if not chosen:
        parser.error(f"no row has {', '.join(given.names)} in its name; --list names them")
    if given.list:
        print("\n".join(chosen))
        return
    found = []
    for name in chosen:
        command = [sys.executable, "-m", "benchmarks", "--one", name, *(["--quick"] if given.quick else [])]
        child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **ONE_THREAD})
        found.append(json.loads(child.stdout.splitlines()[-1]) | {"row": name})
        print(told(found[-1]), flush=True)
    result = {"versions": versions(), "quick": given.quick, "rows": found}
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + "\n")
    if given.page:
        write_page(given.page, result)


if __name__ == "__main__":
    main()

"""How many functions and files one small ``quorate run`` visits, and how many of those functions only forward.

    python benchmarks/trace.py [--json] [--list]

A fresh run of the defaults on 240 private rows and 150 public ones is profiled in this process, the package's own
functions alone: not what a module does when it is imported, not comprehensions and lambdas, not the teachers'
processes. A function forwards where its whole body is one call, or returns one. The figures count code, not time, and
do not depend on the machine. Version 0.1: 588 functions in 104 files; 82 of the functions forward.
"""

import argparse
import ast
import contextlib
import importlib
import io
import json
import pkgutil
import sys
import tempfile
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

import quorate
from quorate.cli import main

PACKAGE = Path(quorate.__file__).parent

SETTINGS = """
[data]
private = "private.csv"
public = "public.csv"
label = "ill"
classes = ["no", "yes"]

[budget]
epsilon = 4.0
delta = 1e-5

[teachers]
count = 12

[run]
jobs = 1
"""


def write_run(root: Path) -> None:
    """Write a run's folder: visits with two numbers and a word each."""
    rng = np.random.default_rng(1)
    for name, n, header in (("private", 240, "age,bmi,ward,ill"), ("public", 150, "age,bmi,ward")):
        age, bmi, ward = rng.integers(18, 95, n), rng.normal(26, 4, n).round(1), rng.choice(["north", "south"], n)
        label = [f",{'yes' if years > 55 else 'no'}" if name == "private" else "" for years in age]
        lines = [f"{age[i]},{bmi[i]},{ward[i]}{label[i]}" for i in range(n)]
        (root / f"{name}.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    (root / "quorate.toml").write_text(SETTINGS, encoding="utf-8")


def visited(root: Path) -> set[CodeType]:
    """Run ``quorate run`` and return the code of every function of the package that was called."""
    for module in pkgutil.walk_packages(quorate.__path__, "quorate."):
        importlib.import_module(module.name)  # so that what an import does is not counted
    seen: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            seen.add(frame.f_code)

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        sys.setprofile(profile)
        try:
            main(["run", str(root)])
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(said.getvalue()) from None
        finally:
            sys.setprofile(None)
    return {code for code in seen if code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")}


def forwarding(path: Path) -> set[int]:
    """Return the lines of a file at which a function begins whose whole body is one call."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef):
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if len(body) == 1 and isinstance(body[0], ast.Return | ast.Expr) and isinstance(body[0].value, ast.Call):
            found.add(min([node.lineno, *(each.lineno for each in node.decorator_list)]))
    return found


def counted() -> dict[str, list[str]]:
    """Return the functions that were visited, those that forward, and the files."""
    with tempfile.TemporaryDirectory() as place:
        write_run(Path(place))
        codes = visited(Path(place))
    files = sorted({code.co_filename for code in codes})
    lines = {path: forwarding(Path(path)) for path in files}

    def named(code: CodeType) -> str:
        return f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_firstlineno} {code.co_qualname}"

    return {
        "functions": sorted(map(named, codes)),
        "forwarding": sorted(named(code) for code in codes if code.co_firstlineno in lines[code.co_filename]),
        "files": [str(Path(path).relative_to(PACKAGE)) for path in files],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--list", action="store_true", help="print every name as well")
    wanted = parser.parse_args()
    found = counted()
    figures = {name: len(each) for name, each in found.items()}
    if wanted.json:
        print(json.dumps(found if wanted.list else figures, indent=2))
    else:
        for name, each in found.items():
            print(f"{figures[name]:5} {name}")
            for line in each if wanted.list else ():
                print(f"      {line}")

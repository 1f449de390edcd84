"""Build the site of these documents: ``python docs/build_site.py [--out FOLDER]``; needs ``pip install ".[docs]"``.

The pages are those of the repository. They are copied to a folder beside each other as they lie here, so that every
relative link leads to the same place on the site as on the code host. What is added: the navigation, by folder, so that
a new page stands in it by itself; and the reference of the public names, from their docstrings. Warnings are errors: a
link that leads nowhere, a page that is in no list and a docstring that cannot be read end the build.
"""

from __future__ import annotations

import argparse
import inspect
import re
import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent
BESIDE = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "CITATION.cff", "LICENSE")

#: What is copied: the pages, and whatever they lead to.
STAGED = (
    "docs/**/*.md", "docs/**/*.svg", "docs/**/*.png", "docs/**/*.json", "docs/**/*.ipynb", "docs/*.py",
    "docs/theory/*.py", "examples/**/*", "benchmarks/**/*", "deploy/**/*", "src/quorate/data/bundled/*.md",
    "src/quorate/**/*.py",
    "tests/**/*.py",
)  # fmt: skip
CITATION = "src/quorate/data/bundled/CITATION"

#: Chapters of the navigation: a title, and the pages in it. A name with a star stands for every page of a folder that
#: no chapter before it names, in the order of their titles.
CHAPTERS = (
    ("Begin", ("docs/install", "docs/tutorial", "docs/notebooks/*", "docs/gallery", "docs/planner", "docs/README")),
    ("How to", ("docs/how-to/*",)),
    ("Reference", ("api/*", "docs/reference/*", "docs/glossary")),
    ("Theory", ("docs/theory/README", "docs/theory/*", "docs/papers", "docs/papers-by-example", "docs/learners")),
    ("Measured", ("docs/experiments", "docs/peers", "docs/benchmarks", "benchmarks/README")),
    ("Promises", ("docs/ledger-promise", "docs/service-promise", "docs/ledger-faults", "docs/limitations", "docs/*")),
    ("The project", ("ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG", CITATION, "docs/decisions/README")),
    ("Decisions", ("docs/decisions/*",)),
)

#: Rooms with public names, in the order of the reference. What a room shows is what its ``__all__`` lists.
ROOMS = (
    "quorate", "accounting", "mechanisms", "ledger", "learners", "learners.concepts", "learners.sanitizers", "students",
    "data", "noise", "audit", "theory", "labelling", "release", "report", "service", "errors", "findings", "types",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="where the pages go")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    staged = given.out.with_name(f"{given.out.name}-pages")
    for folder in (staged, given.out):
        shutil.rmtree(folder, ignore_errors=True)
    stage(staged)
    how = ["-W", "--keep-going", "-q", "-c", str(ROOT / "docs" / "site")]
    done = subprocess.run([sys.executable, "-m", "sphinx", *how, str(staged), str(given.out)], check=False)
    if done.returncode == 0:
        shutil.copy(given.out / "README.html", given.out / "index.html")
        pages = sum(1 for _ in given.out.rglob("*.html"))
        print(f"wrote {pages} pages to {given.out} in {time.monotonic() - began:.0f} s")
    return done.returncode


def stage(folder: Path) -> None:
    """Copy what is published, write the reference of the names, and put the navigation at the end of the first page."""
    for name in BESIDE:
        _copy(ROOT / name, folder / name)
    for pattern in STAGED:
        for path in ROOT.glob(pattern):
            if path.is_file() and "__pycache__" not in path.parts and "site" not in path.relative_to(ROOT).parts[:2]:
                _copy(path, folder / path.relative_to(ROOT))
    write_reference(folder / "api")
    first = folder / "README.md"
    first.write_text(first.read_text(encoding="utf-8") + navigation(folder), encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def pages_of(folder: Path) -> list[str]:
    """Every page of the site, without its ending."""
    found = [path for ending in ("md", "rst", "ipynb") for path in folder.rglob(f"*.{ending}")]
    pages = {path.relative_to(folder).with_suffix("").as_posix() for path in found}
    return sorted(
        page for page in pages if page.partition("/")[0] not in ("src", "deploy", "tests") or page == CITATION
    )


def navigation(folder: Path) -> str:
    """The lists of chapters, as MyST writes them; every page stands in one of them."""
    left = [page for page in pages_of(folder) if page != "README"]
    lists = []
    for title, names in CHAPTERS:
        chosen: list[str] = []
        for name in names:
            if name.endswith("/*"):
                here = [each for each in left if each.rpartition("/")[0] == name.removesuffix("/*")]
                kept = [each for each in here if each not in _named()]
                by_name = name in ("docs/decisions/*", "api/*")
                chosen += sorted(kept, key=None if by_name else lambda page: title_of(folder, page))
            elif name in left:
                chosen.append(name)
        left = [page for page in left if page not in chosen]
        if chosen:
            lists.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(chosen) + "\n```\n")
    if left:
        raise SystemExit(f"no chapter takes these pages; name their folder in CHAPTERS: {', '.join(left)}")
    return "\n" + "\n".join(lists)


def _named() -> set[str]:
    return {name for _, names in CHAPTERS for name in names if not name.endswith("*")}


def title_of(folder: Path, page: str) -> str:
    """The first heading of a page."""
    for ending in ("md", "rst", "ipynb"):
        path = folder / f"{page}.{ending}"
        if path.exists():
            found = re.search(r'^\s*"?#+ (.+?)(?:\\n)?"?,?$', path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            return found[1].lower() if found else page
    return page


def write_reference(folder: Path) -> None:
    """One page a room: what it is for, in the words of its docstring, and every public name."""
    folder.mkdir(parents=True)
    seen: set[int] = set()
    for place, room in enumerate(ROOMS):
        dotted = "quorate" if room == "quorate" else f"quorate.{room}"
        module = import_module(dotted)
        entries = []
        for name in _public(module):
            value = getattr(module, name)
            if id(value) in seen or inspect.ismodule(value):
                continue
            seen.add(id(value))
            kind = "autoclass" if inspect.isclass(value) else "autofunction" if callable(value) else None
            if kind is not None:
                entries.append(f".. {kind}:: {dotted}.{name}\n" + ("   :members:\n" if kind == "autoclass" else ""))
        title = dotted
        head = f"{title}\n{'=' * len(title)}\n\n.. currentmodule:: {dotted}\n\n"
        head += f".. automodule:: {dotted}\n   :no-members:\n\n"
        name = f"{place:02}-{room.replace('.', '-')}.rst"
        (folder / name).write_text(head + "\n".join(entries), encoding="utf-8")


def _public(module: object) -> list[str]:
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__  # type: ignore[attr-defined]
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

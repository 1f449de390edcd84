"""The documents keep their word: every example runs, prints what it says, and every name they list exists.

A page is a session in a folder of its own, or in the one of the page before it:

- a block that begins with a comment that is a path (``# my-run/quorate.toml``) is written to that file;
- other Python blocks of a page are one script, run where the first of them stands;
- in a ``console`` block each line after ``$ `` is run by the shell, and what follows is its standard output; of a
  command that is refused, the error;
- a ``text`` block after a Python block is what that block prints.

A line ``…`` stands for any number of lines. Figures that noise moves (percentages, counts beside a bar, seconds,
hashes, times) are compared by their form, and percentages must be near what is measured. After a change of what is
printed, ``python tests/test_docs.py`` writes the new output into the pages.
"""

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

import quorate.mechanisms as room
from quorate import errors
from quorate.accounting import from_json, spend, to_json
from quorate.accounting.event import KINDS

ROOT = Path(__file__).parent.parent
TOGETHER = (  # pages that go on in the folder of the page before them
    ("README.md", "docs/tutorial.md", "docs/how-to/read-the-report.md", "docs/how-to/hand-over-a-model.md"),
    ("docs/how-to/persons-instead-of-records.md", "docs/how-to/resume-a-run.md"),
)
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")])
RUN = ("console", "python", "toml")  # what is run or written; `bash` is what the continuous integration runs
# Commands that are killed, or start others; and the demo, as whoever has just installed quorate calls it.
OWN_PROCESSES = re.compile(r"kill -9|stand_in\.py|^quorate demo$")
PERCENT_POINTS = 6.0  # how far a quoted percentage may be from a measured one

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONAL = re.compile(r"^(?:from|import) (torch|skorch)\b", flags=re.MULTILINE)
NAMED = re.compile(r"# ([\w.-]+(?:/[\w.-]+)*\.(?:py|toml))\n")
PERCENT = re.compile(r"(\d+(?:\.\d+)?)(?= %)")
MOVING = (
    (re.compile(r"^.*▪.*$"), "▪"),
    (re.compile(r"\(\d+\.\d to \d+\.\d %\)"), "(%)"),
    (re.compile(r"\d+\.\d %"), "%"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "#"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"), "time"),
    (re.compile(r"took \d+ s"), "took s"),
    (re.compile(r"\b8,?1[34]\d\b"), "half of Adult's test rows"),  # the demo draws its halves, and drops repeated rows
    (re.compile(r"^teachers    4\d\d "), "teachers "),  # of the demo: the columns depend on the half
    (re.compile(r"σ = 336\.\d votes"), "σ"),  # and so does the noise
    (re.compile(r"^\d+,.*,answered,-?\d+$"), "a released label"),
    (re.compile(r"(quorate|scikit-learn|version) \d+\.\d+[\w.]*"), r"\1 #"),
)
SOMETIMES = re.compile(
    r"weak  +(the model finds|and fewer)|remedy  "
)  # a class that the student finds less than half of


@dataclass
class Block:
    """One fenced block of a page."""

    kind: str
    text: str
    start: int  # of its text, in the page
    end: int


@dataclass
class Shown:
    """Output that a page quotes, and what came out."""

    start: int  # of what is said, in the page
    said: str
    came: str


def blocks_of(text):
    return [Block(match[1], match[2], match.start(2), match.end(2)) for match in FENCE.finditer(text)]


def stable(line):
    """What must be the same on every run."""
    for moving, form in MOVING:
        line = moving.sub(form, line)
    return line.rstrip()


def kept(text):
    """The lines of an output without those that noise brings and takes."""
    lines, inside = [], False
    for line in text.strip("\n").split("\n"):
        inside = bool(SOMETIMES.match(line)) or (inside and line.startswith(" " * 12))  # its next lines
        lines += [] if inside else [line]
    return lines


def agrees(said, came):
    """Whether output is what a page says: line by line, where ``…`` stands for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(stable(line)) + r"\n" for line in kept(said))
    found = "".join(stable(line) + "\n" for line in kept(came))
    return re.fullmatch(pattern, found) is not None


def percentages_far_off(said, came):
    """Quoted percentages that are not near the measured ones of the line that has the same form."""
    measured = {stable(line): line for line in came.splitlines()}
    far = []
    for line in said.splitlines():
        other = measured.get(stable(line))
        if other is not None and "▪" not in line:
            pairs = zip(PERCENT.findall(line), PERCENT.findall(other), strict=True)
            far += [line for mine, its in pairs if abs(float(mine) - float(its)) > PERCENT_POINTS]
    return far


def printed_by(command, folder):
    """What a command prints, and what it says where it is refused."""
    from tests.shell import shell  # here, so that this file can be run as a program too

    code, out, err = shell(command, folder, own_processes=OWN_PROCESSES.search(command) is not None)
    return out + (err if code else "")


def run_page(page, folder):
    text = page.read_text(encoding="utf-8")
    blocks = blocks_of(text)
    scripts = [each for each in blocks if each.kind == "python" and not NAMED.match(each.text)]
    shown, printed = [], None
    for place, block in enumerate(blocks):
        if named := NAMED.match(block.text) if block.kind in RUN else None:
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.kind == "console":
            for start, command, said in commands_of(block.text):
                shown.append(Shown(block.start + start, said, printed_by(command, folder)))
        elif block.kind == "python":
            if printed is None:
                mark = "-- end of block --"
                script = f'\nprint("{mark}")\n'.join(each.text for each in scripts)
                (folder / "example.py").write_text(script, encoding="utf-8")
                printed = printed_by("python example.py", folder).split(f"{mark}\n")
                assert len(printed) == len(scripts), f"{page.name}: {printed[-1]}"
            after = blocks[place + 1] if place + 1 < len(blocks) else None
            came = printed[scripts.index(block)]
            if after is not None and after.kind == "text":
                shown.append(Shown(after.start, after.text, came))
            else:
                assert came == "", f"{page.name}: {came}"
    return shown


def commands_of(text):
    assert text.startswith("$ "), f"a console block begins with a command, not with {text[:20]!r}"
    found = re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, flags=re.MULTILINE)
    return [(match.start(2), match[1], match[2]) for match in found]


def sessions():
    """Every page with an example: some together, each other one alone."""
    grouped = {page for session in TOGETHER for page in session}
    alone = [page for page in PAGES if any(block.kind in RUN for block in blocks_of(page.read_text(encoding="utf-8")))]
    names = [page.relative_to(ROOT).as_posix() for page in alone]
    return [*TOGETHER, *((name,) for name in names if name not in grouped)]


def check_session(pages, folder):
    """Run the examples of some pages in a folder, and hold what comes against what they say."""
    came = []
    for page in pages:
        for module in sorted(set(OPTIONAL.findall((ROOT / page).read_text(encoding="utf-8")))):
            pytest.importorskip(module)  # of an extra that is large, and installed by itself
        for shown in run_page(ROOT / page, folder):
            assert agrees(shown.said, shown.came), (
                f"{page} says\n{shown.said}\nand there came\n{shown.came}\nIf that is right: python tests/test_docs.py"
            )
            assert percentages_far_off(shown.said, shown.came) == []
            came.append(shown)
    return came


@pytest.mark.heavy  # the first session runs the demo: tests/cli/test_demo.py looks at more of it
@pytest.mark.parametrize("pages", sessions()[1:], ids=lambda pages: Path(pages[0]).stem)
def test_the_examples_of_the_documents_run_and_print_what_they_say(pages, tmp_path):
    check_session(pages, tmp_path)


def test_a_wrong_output_or_figure_in_a_page_is_caught():
    came = "left  200 answers\nstudent accuracy 84.1 % (83.3 to 84.9 %)\n"
    assert agrees("left  200 answers\nstudent accuracy 83.9 % (83.1 to 84.7 %)\n", came)
    assert agrees("…\nstudent accuracy 83.9 % (83.1 to 84.7 %)\n", came)
    assert not agrees("left  201 answers\n…\n", came)
    assert not agrees("left  200 answers\n", came)
    weak = "weak        the model finds 913 of 1,909 rows of class >50K\n"  # now above half, now below it
    weak += (
        'remedy      write decision_threshold = "balanced" under [student] and type\n            quorate run r again\n'
    )
    assert agrees(weak + came, came)
    assert agrees(came, weak + came)
    assert not agrees(came, "weak in some other way\n" + came)
    assert percentages_far_off("student accuracy 83.9 % (83.1 to 84.7 %)", came) == []
    assert percentages_far_off("student accuracy 94.1 % (93.3 to 94.9 %)", came) != []


def test_the_two_commands_of_the_readme_are_what_continuous_integration_runs():
    """Installing takes the network, so it is run there; here the words are held together. The page runs the demo."""
    told = [line for block in blocks_of((ROOT / "README.md").read_text()) if block.kind == "bash"
            for line in block.text.splitlines()]  # fmt: skip
    assert told == ["pip install . && quorate demo", 'pip install ".[dev]" && pytest']
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for part in ('pip install --quiet ".[dev]"', "\nquorate --version\n", "\ntests default pytest\n"):
        assert part in script
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "quorate demo" in [
        c for block in blocks_of(page) if block.kind == "console" for _, c, _ in commands_of(block.text)
    ]


def test_links_between_the_documents_lead_somewhere():
    """Files, and the headings of a page where a link names one."""
    broken = []
    for page in PAGES:
        text = re.sub(FENCE, "", page.read_text(encoding="utf-8"))
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            path, _, heading = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (heading and heading not in anchors(target.read_text(encoding="utf-8"))):
                broken.append((page.name, link))
    assert broken == []


def anchors(text):
    """The names that a Markdown reader gives to headings."""
    titles = re.findall(r"^#+ (.+)$", re.sub(FENCE, "", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_can_be_reached_from_the_readme():
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        ahead += [(page.parent / link).resolve() for link in links if "://" not in link]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in reached] == []


@pytest.mark.parametrize("script", ["generate_cli_reference.py", "generate_settings_reference.py"])
def test_a_reference_made_from_the_code_is_current(script):
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / script, "--check"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def table_rows(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]


def test_every_error_is_documented_with_its_code_and_exit_code():
    def tree(base):
        return [base, *(each for sub in base.__subclasses__() for each in tree(sub))]

    ours = {each for each in tree(errors.QuorateError) if each.__module__.startswith("quorate.")}
    told = {tuple(row[:3]) for row in table_rows("docs/reference/errors.md") if row[0].startswith("`QUO-")}
    assert told == {(f"`{each.code}`", f"`{each.__name__}`", str(each.exit_code)) for each in ours}


TERMS = (  # of privacy and learning, that screens print
    "abstain", "accounting", "anchor", "answered", "AUC", "average precision", "balanced", "baseline", "binary",
    "budget", "caution", "charged", "classes", "clip", "composition", "coordinates", "cut-off", "declined", "delta",
    "digest",
    "direct method", "distance to a tie", "drawn pool", "effective dimension", "ε", "δ", "κ", "η", "epsilon",
    "evaluation", "exact price", "false alarms", "guarantee", "half-lead", "held out", "interrupted", "kept back",
    "ledger head", "margin", "marginals", "momentum", "neighbouring", "never asked", "noisy rounds", "note",
    "pairs of worlds", "precision", "public pool", "queries", "receipt", "recall", "rehears", "replace only",
    "reserv", "round", "schema", "seed", "shard", "sigma", "spent", "strategy", "student", "teachers", "threshold",
    "unit", "weak", "whiten",
)  # fmt: skip
IN_FULL = {"answered": "answer", "charged": "charge", "classes": "class", "queries": "query", "teachers": "teacher"}


def screens():
    """All that commands, reports and warnings print, as it is recorded: the golden sentences, and blocks of pages."""
    recorded = (ROOT / "tests" / "golden" / "recorded" / "spoken.txt").read_text(encoding="utf-8")
    blocks = (block for page in PAGES for block in blocks_of(page.read_text(encoding="utf-8")))
    return "\n".join((recorded, *(block.text for block in blocks if block.kind in ("console", "text"))))


def test_the_glossary_has_every_term_and_every_mechanism_that_a_screen_prints():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    heads = " ".join(re.findall(r"^\*\*(.+?)\.\*\*", text, re.MULTILINE)).lower()
    printed = screens()
    unknown = [term for term in TERMS if IN_FULL.get(term, term).lower() not in heads]
    assert unknown == []
    words = set(re.findall(r"\b(?:[A-Z][a-z]+){2,}\b", printed))
    mechanisms = words & {name for name in room.__all__ if isinstance(getattr(room, name), type)}
    assert {"NoisyCounts", "PermuteAndFlip", "StableSparseVector"} <= mechanisms
    assert {name for name in mechanisms if f"`{name}`" not in text} == set()
    assert sum(term.lower() in printed.lower() for term in TERMS) > 0.7 * len(TERMS), "others stand in reports alone"
    entries = re.findall(r"^\*\*(.+?)[.,] ?.*", text, re.MULTILINE)
    assert entries == sorted(entries, key=str.lower)


def caution_codes():
    """Every code that the package gives to a caution: a text, or a constant of a module that is one."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    speaking = re.compile(r"\b(?:caution|Finding)\(|^[A-Z_]+(?:: [^=]+)? = [\"'][a-z-]+[\"']", re.MULTILINE)
    trees = [ast.parse(text) for text in texts if speaking.search(text)]  # the others hold none of either
    constants = {
        target.id: node.value.value
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }
    calls = [
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "caution" or (node.func.id == "Finding" and any(k.arg == "severity" for k in node.keywords))
    ]
    given = [each for call in calls for each in (*call.args[:1], *(k.value for k in call.keywords if k.arg == "code"))]
    names = {each.id for each in given if isinstance(each, ast.Name)} - {"code"}  # an argument that is handed on
    assert names <= constants.keys()
    return {constants[name] for name in names} | {str(each.value) for each in given if isinstance(each, ast.Constant)}


@pytest.mark.heavy
def test_every_caution_is_documented_with_its_code():
    codes = caution_codes()
    assert {"labels-are-coins", "error-bound-does-not-hold"} <= codes, "the search finds what is there"
    told = {row[0].strip("`") for row in table_rows("docs/reference/errors.md")}
    assert codes - told == set()


def test_every_event_is_documented_with_its_canonical_json():
    text = (ROOT / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    lines = [line for block in blocks_of(text) if block.kind == "json" for line in block.text.splitlines()]
    assert {type(from_json(line)) for line in lines} == set(KINDS.values())
    assert [to_json(from_json(line)) for line in lines] == lines
    headings = re.findall(r"^## `(\w+)\(", text, flags=re.MULTILINE)
    assert sorted(headings) == sorted(kind.__name__ for kind in KINDS.values())


def test_every_rule_of_price_is_documented():
    rules = set(re.findall(r'^\| ``"([\w ]+)"``', spend.__doc__ or "", flags=re.MULTILINE))
    told = {row[0].strip("`") for row in table_rows("docs/reference/events.md")}
    assert rules
    assert rules <= told


def test_the_documents_speak_of_the_project_alone():
    """No path of the machine that they were written on."""
    paths = re.compile(r"(?<![\w.~])/(?:work|home|tmp|root|Users)/")
    assert [page.name for page in PAGES if paths.search(page.read_text(encoding="utf-8"))] == []


def test_every_extra_stands_on_the_page_on_installing_and_the_citation_is_of_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = {
        row[0].strip("`") for row in table_rows("docs/install.md") if row[0].startswith("`") and "quorate" not in row[0]
    }
    assert told == set(project["optional-dependencies"])
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_page_stands_in_the_navigation_of_the_site(tmp_path):
    """Without Sphinx: by folder, and a page in a folder that no chapter names is refused."""
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "docs" / "build_site.py")
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    for page in [*PAGES, *(ROOT / "docs").rglob("*.ipynb")]:
        path = tmp_path / page.relative_to(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    listed = site.navigation(tmp_path)
    pages = {path.relative_to(tmp_path).with_suffix("").as_posix() for path in tmp_path.rglob("*.*") if path.is_file()}
    assert pages - set(listed.split("\n")) == {"README"}
    (tmp_path / "docs" / "elsewhere").mkdir()
    (tmp_path / "docs" / "elsewhere" / "new.md").write_text("# New")
    with pytest.raises(SystemExit, match="no chapter takes these pages"):
        site.navigation(tmp_path)


def test_notebooks_are_stored_without_outputs_and_the_pictures_are_small():
    for notebook in (ROOT / "docs").rglob("*.ipynb"):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        assert [
            cell for cell in cells if cell["cell_type"] == "code" and (cell["outputs"] or cell["execution_count"])
        ] == []
    assert sum(path.stat().st_size for path in (ROOT / "docs" / "figures" / "gallery").iterdir()) < 1_000_000


def refresh():
    """Write what the examples print now into the pages."""
    for session in sessions():
        with tempfile.TemporaryDirectory() as folder:
            for name in session:
                page = ROOT / name
                for shown in reversed(run_page(page, Path(folder))):
                    if agrees(shown.said, shown.came) and not percentages_far_off(shown.said, shown.came):
                        continue
                    came = "".join(f"{line.rstrip()}\n" for line in shown.came.strip("\n").splitlines())
                    text = page.read_text(encoding="utf-8")
                    rest = text[shown.start + len(shown.said) :]
                    page.write_text(text[: shown.start] + came + rest, encoding="utf-8")
                    print(f"{name}: wrote\n{came}")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    refresh()

"""The house itself: imports go one way, nothing private of scikit-learn is used, every error has its own code."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import quorate
from quorate import errors
from quorate.voting.models import EXTRAS

ROOT = Path(__file__).parents[1]
SOURCE = Path(quorate.__file__).parent


def rooms():
    """The rooms as ARCHITECTURE.md lists them, from the ground up: one may import only those before it."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.partition("\n## Rooms\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`(\w+)/?`", cell)]
    last = listed.index("cli") + 1
    return (*listed[:last], "__main__", *listed[last:])


ROOMS = rooms()
FORBIDDEN_NAMES = {"utils", "helpers", "common", "manager", "core"}


def modules():
    return sorted(SOURCE.rglob("*.py"))


@cache
def parsed(path):
    """The tree of a file, for many tests; none of them changes it."""
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_names(tree):
    """Every dotted name that a module imports, `from a import b` as `a.b`."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


@cache
def named_in(path):
    """What :func:`imported_names` finds in a file, for many tests."""
    return imported_names(parsed(path))


def breaches(room, names):
    """The imports that point up the house, to a room that stands on this one."""
    return [
        name for name in names if name.startswith("quorate.") and ROOMS.index(name.split(".")[1]) > ROOMS.index(room)
    ]


FRONT_DOOR = SOURCE / "__init__.py"  # re-exports the shells, so it may import any room


@pytest.mark.heavy
def test_a_room_imports_only_the_rooms_it_stands_on():
    found = {
        str(path.relative_to(SOURCE)): upwards
        for path in modules()
        if path != FRONT_DOOR and (upwards := breaches(room_of(path), named_in(path)))
    }
    assert found == {}


def test_every_room_is_listed_and_research_stands_last():
    assert {room_of(path) for path in modules() if path != FRONT_DOOR} == set(ROOMS)
    assert ROOMS[0] == "errors"
    assert ROOMS[-4:] == ("theory", "learners", "learn", "experiments")  # leaves, which no room of the product imports


def test_a_method_imports_nothing_of_another_one():
    defined = re.compile(r"^[A-Z_]+.* = Method\($", re.MULTILINE)
    methods = {room_of(path) for path in modules() if defined.search(path.read_text(encoding="utf-8"))}
    assert {"voting", "direct"} <= methods
    imported = {(room_of(path), name) for path in modules() for name in named_in(path)}
    others = {f"quorate.{method}": method for method in methods}
    found = [(room, name) for room, name in imported if others.get(".".join(name.split(".")[:2]), room) != room]
    assert [pair for pair in found if pair[0] in methods] == []


def test_an_import_that_points_up_is_caught():
    names = imported_names(ast.parse("from quorate.cli.group import main\nfrom quorate.noise import OSNoise"))
    assert breaches("ledger", names) == ["quorate.cli.group.main"]


@pytest.mark.heavy
def test_imports_are_absolute_so_that_this_file_can_read_them():
    relative = [
        path for path in modules() for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


@pytest.mark.heavy
def test_no_private_scikit_learn_name_is_imported():
    private = [
        (path.name, name)
        for path in modules()
        for name in named_in(path)
        if name.startswith("sklearn") and any(part.startswith("_") for part in name.split("."))
    ]
    assert private == []


@pytest.mark.heavy
def test_nothing_is_pickled_but_what_goes_through_a_pipe_to_our_own_worker():
    """A pickle that is read runs code. The one exception never touches a disk: a task and its result.

    Where workers are on other machines it does, and is read only where its digest came with the task or the result.
    """
    pickled = {
        path.relative_to(SOURCE).as_posix()
        for path in modules()
        for name in named_in(path)
        if name.split(".")[0] in {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
    }
    assert pickled <= {"ensemble/training.py", "ensemble/workers/cluster/exchange.py", "ensemble/workers/workers.py"}


DRAWING = {"noise", "ledger", "release"}  # rooms whose business it is
NOT_RELEASED = {"audit", "experiments"}  # rooms that draw noise, and release nothing private by it


def noise_without_a_block(room, tree):
    """Ways past :class:`quorate.release.DrawnBlock`: blocks drawn or stored by hand, noise addressed or made by hand.

    A learner is a mechanism of its own: it reads the noise that it was given, and divides it among steps, which it
    names by literals.
    """
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        name = called.rpartition(".")[2]
        holder = called.rpartition(".")[0].lower()
        block = name in {"draw", "store"} and "reserv" in holder
        addressed = name in {"at", "words"} and ("noise" in holder or "source" in holder)
        literal = bool(node.args) and isinstance(node.args[0], ast.Constant)
        given = room == "learners" and (name == "words" or literal)
        if block or (addressed and not given) or name in {"OSNoise", "SeededNoise"}:
            found.append(f"{called} in line {node.lineno}")
    return found


@pytest.mark.heavy
def test_noise_for_a_release_comes_from_a_drawn_block():
    """Mechanisms take the words of the source they are given, and nobody but release/ gives one out."""
    exempt = DRAWING | NOT_RELEASED | {"mechanisms", "accounting"}
    found = {
        path.relative_to(SOURCE).as_posix(): ways
        for path in modules()
        if room_of(path) not in exempt
        if (ways := noise_without_a_block(room_of(path), parsed(path)))
    }
    assert found == {}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("room", "line", "caught"),
    [
        ("labelling", "block = reservation.draw('label', 3)", True),
        ("labelling", "self._reservation.store(block, answers)", True),
        ("labelling", "mechanism.release_many(rows, noise.at('label', 0))", True),
        ("learners", "mechanism.release(scores, self.noise.at(PURPOSE, 0))", True),
        ("run", "label(counts, mechanism, reservation, OSNoise())", True),
        ("learners", "choose(concepts, points, labels, plan, noise.at('choice', 0))", False),
        ("labelling", "mechanism.release_many(rows, drawn.noise(source))", False),
        ("learners", "np.add.at(weight, place, signed)", False),
    ],
)
def test_that_test_sees_ways_past_a_drawn_block(room, line, caught):
    assert bool(noise_without_a_block(room, ast.parse(line))) == caught


def makers_of(names, trees):
    """The files that make a value of each class: those that call it by its name."""
    makers = {name: set() for name in names}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in makers:
                makers[node.func.id].add(path)
    return makers


TOLD_ONCE = {"OnlineAnswers": "voting/ask.py", "Provenance": "run/facts.py", "Spending": "run/facts.py"}


@pytest.mark.heavy
def test_what_is_told_once_is_made_in_one_file():
    trees = {path.relative_to(SOURCE).as_posix(): parsed(path) for path in modules()}
    assert makers_of(TOLD_ONCE, trees) == {name: {path} for name, path in TOLD_ONCE.items()}
    elsewhere = ast.parse("answers = OnlineAnswers(1)")
    assert makers_of(["OnlineAnswers"], {"folder/ask.py": elsewhere}) == {"OnlineAnswers": {"folder/ask.py"}}


def test_no_room_is_a_lumber_room():
    assert [path for path in modules() if FORBIDDEN_NAMES & set(path.with_suffix("").parts[-3:])] == []


def all_errors(base=errors.QuorateError):
    return [base, *(each for sub in base.__subclasses__() for each in all_errors(sub))]


def test_every_error_has_its_own_code_and_stands_in_the_drawn_tree():
    found = all_errors()
    codes = [error.code for error in found]
    assert len(set(codes)) == len(codes)
    assert [error.__name__ for error in found if error.__name__ not in (errors.__doc__ or "")] == []


TESTS = Path(__file__).parent
NO_ROOM = {"golden"}  # what version 0.1 computed, of every room together


# Loaded by the first level of a file. skops loads the others where they are; quorate.deferred has it without them.
SLOW_TO_LOAD = re.compile(r"^(?:import|from) (torch|dask|distributed|skops)\b", re.MULTILINE)


def test_no_file_of_tests_loads_what_every_process_that_collects_tests_would_wait_for():
    slow = {
        str(path.relative_to(TESTS)): found
        for path in TESTS.rglob("*.py")
        if (found := SLOW_TO_LOAD.findall(path.read_text(encoding="utf-8")))
    }
    assert slow == {}


def test_a_slow_import_at_the_first_level_is_caught():
    assert SLOW_TO_LOAD.findall("import os\nimport skops.io as s\ndef f():\n    import torch") == ["skops"]


def test_the_tests_mirror_the_rooms():
    """A folder of tests is named for the room, or the folder of a room, that it tests."""
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path()}
    assert [each for each in folders if each.parts[0] not in NO_ROOM and not (SOURCE / each).is_dir()] == []
    beside = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")}
    alone = {path.stem for path in SOURCE.glob("*.py")}
    # of the package and its pages as a whole
    whole = {"house", "docs", "theory_docs", "surfaces", "refusals", "contributing", "choosing"}
    assert beside - alone == whole


LONGEST_FUNCTION = 60  # lines, docstring not counted: what can be seen at once
LONGEST_FILE = 450


def name_of(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def import_graph():
    """For each module the modules that it names in imports, wherever in it they stand; ``from a import b`` is a.b."""
    names = {name_of(path) for path in modules() if path != FRONT_DOOR}
    graph = {}
    for path in modules():
        if path != FRONT_DOOR:
            found = (name.removeprefix("quorate.") for name in named_in(path) if name.startswith("quorate."))
            graph[name_of(path)] = {name if name in names else name.rpartition(".")[0] for name in found} & names - {
                name_of(path)
            }
    return graph


def circles(graph):
    """The sets of modules each of which leads to all others of its set: repeated removal of what leads nowhere."""

    def reached(start):
        seen = set()
        waiting = [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    reach = {name: reached(name) for name in graph}
    found = [{name, *(other for other in reach[name] if name in reach[other])} for name in graph if name in reach[name]]
    return [each for place, each in enumerate(found) if each not in found[:place]]


@pytest.mark.heavy
def test_no_two_files_need_each_other():
    """Files that import each other are one thing in two places: neither can be read, or tried, alone."""
    assert circles(import_graph()) == []


def test_a_circle_is_caught():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [{"b", "c"}]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def own_lines(function):
    """Lines of a function from its ``def`` on, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        doc = function.body[0]
        lines -= doc.end_lineno - doc.lineno + 1
    return lines


@pytest.mark.heavy
def test_no_function_is_longer_than_can_be_seen_at_once():
    long = {
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and own_lines(node) > LONGEST_FUNCTION
    }
    assert long == set()


def test_the_lines_of_a_docstring_do_not_count():
    (function,) = ast.parse('def f() -> int:\n    """One.\n\n    Two.\n    """\n    return 1\n').body
    assert own_lines(function) == 2


def texts_taken_apart(tree):
    """Lines on which the text of a caught error, or what was made of it, is read by a pattern or cut."""
    lines = set()
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name):
        texts = {handler.name}

        def holds_text(node, texts=texts):
            return any(isinstance(part, ast.Name) and part.id in texts for part in ast.walk(node))

        for node in ast.walk(handler):
            if isinstance(node, ast.Assign) and holds_text(node.value):
                texts |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        for node in ast.walk(handler):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and holds_text(node):
                pattern = ast.unparse(node.func.value) == "re"
                if pattern or node.func.attr in {"partition", "replace", "removeprefix", "removesuffix", "startswith"}:
                    lines.add(node.lineno)
            if isinstance(node, ast.Compare) and "str(" in ast.unparse(node) and holds_text(node):
                lines.add(node.lineno)
    return lines


OTHERS_WORDS = {"cli/unforeseen.py", "students/voting_class.py"}  # of Python, and of scikit-learn


@pytest.mark.heavy
def test_the_programs_own_words_are_not_read_back():
    """An error's facts are its fields; whoever needs one for another reader takes it from there."""
    found = {str(path.relative_to(SOURCE)) for path in modules() if texts_taken_apart(parsed(path))}
    assert found <= OTHERS_WORDS
    cheat = "try:\n    f()\nexcept ValueError as refusal:\n    said = str(refusal)\n    print(said.partition(';')[0])\n"
    assert texts_taken_apart(ast.parse(cheat)) == {5}


def test_files_are_short_and_how_short_is_printed():
    """``pytest -rP tests/test_house.py -k files_are_short`` shows how long the files are."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    ordered = sorted(lengths.values())
    steps = range(0, ordered[-1] + 50, 50)
    print(f"{len(ordered)} files, {sum(ordered):,} lines; half have at most {ordered[len(ordered) // 2]}")
    for low in steps:
        print(f"{low:>5} to {low + 49:<4} {sum(low <= length < low + 50 for length in ordered):>4}")
    long = {str(path.relative_to(SOURCE)) for path, length in lengths.items() if length > LONGEST_FILE}
    assert long == set()


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("room", sorted({room_of(path) for path in modules() if path.parent != SOURCE}))
def test_a_room_says_what_belongs_there_and_where_to_begin(room):
    said = ast.get_docstring(ast.parse((SOURCE / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert " belong" in said
    assert "Begin with" in said
    for named in re.findall(r":mod:`~?quorate\.([\w.]+)`", said):
        place = SOURCE.joinpath(*named.split("."))
        assert place.is_dir() or place.with_suffix(".py").is_file(), named


EXTRA = re.compile(r"""(?:quorate|\.|/src)\[([\w, {}\[\]-]+)\](["'])?""")


def extras_named(text):
    """The extras that a text tells to install, and whether each stands in quotes, as a shell needs it."""
    lines = [line for line in text.splitlines() if "pip install" in line]
    found = [(names, bool(quote)) for line in lines for names, quote in EXTRA.findall(line)]
    return [(name.strip(), quoted) for names, quoted in found for name in names.split(",")]


def test_every_extra_that_a_hint_names_is_declared():
    """Where a message or a page says what to install, it can be installed, and typed in any shell."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {path: extras_named(path.read_text(encoding="utf-8")) for path in (*modules(), *pages)}
    told = {(path.name, name) for path, found in named.items() for name, _ in found}
    assert len(told) > 15, "the hints are found"
    assert {name for _, name in told} - set(declared) == {"{EXTRAS[library]}"}  # written by one table, which is next
    assert set(EXTRAS.values()) <= set(declared)
    assert [path.name for path, found in named.items() if not all(quoted for _, quoted in found)] == []


def test_a_hint_with_a_wrong_extra_or_without_quotes_is_seen():
    text = """raise X('it needs Z: pip install "quorate[zz,onnx]"')\n(pip install quorate[torch])"""
    assert extras_named(text) == [("zz", True), ("onnx", True), ("torch", False)]


def test_there_is_one_copy_of_each_module():
    """Examples are looked for in the checkout's files; where the package is installed, these would be second copies."""
    places = {name: getattr(sys.modules[name], "__file__", None) for name in list(sys.modules)}
    places = {name: file for name, file in places.items() if file and name.partition(".")[0] == "quorate"}
    assert len(places) > 10
    assert [name for name, file in places.items() if SOURCE not in Path(file).parents] == []


#: What is built, or secret: none of it is source.
NOT_SOURCE = {".whl", ".pem", ".so", ".pyc", ".prof"}


def not_source(files):
    """Which of some files are none that a repository holds."""
    return [name for name in files if Path(name).suffix in NOT_SOURCE]


def test_what_is_built_or_secret_is_not_tracked():
    assert not_source(["a.py", "tls/k.pem", "tool.whl"]) == ["tls/k.pem", "tool.whl"]
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    assert "pyproject.toml" in tracked
    assert not_source(tracked.splitlines()) == []

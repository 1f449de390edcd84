"""Names that keys, stored models and facts hold outlive a move: each is pinned, and each class that can be met has one.

Where a file is moved or a class renamed, nothing of ``golden/recorded/names.txt`` changes: a name that is lost, or
another one, charges somebody's run a second time. A new class gets its name, its path of today, and its line there when
the version is released, or when its file moves.
"""

import enum
import importlib
import inspect
import io
import pkgutil
import re
import sys
import warnings
import zipfile
from collections import Counter
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest
from tests import released
from tests.released import may_lack

import quorate
from quorate import stored_names
from quorate.accounting import Event
from quorate.ensemble.teachers.plain_step import PlainStep
from quorate.folder.published import student_from
from quorate.labelling.active import Margin
from quorate.learners.concepts import Thresholds
from quorate.release.model_digest import described
from quorate.stored_names import is_named, place_of, stored_as, stored_name

GOLDEN = Path(__file__).parent / "golden" / "recorded" / "names.txt"

#: Of each stored name the path of its class at 0.2.0.dev0: the same, where a line does not say another one.
WRITTEN = {line.split()[0]: line.split()[-1] for line in GOLDEN.read_text(encoding="utf-8").splitlines()}

#: What a model, a teacher, a student, a mechanism or a map does: whoever has one of these can stand in a key.
ACTS = ("fit", "predict", "transform", "train", "vote", "release", "get_params")
#: Whose parts are plain values, which stand in keys too: strategies, concept classes, sanitizers, plans, maps.
FAMILIES = ("quorate.labelling.active.", "quorate.learners.", "quorate.data.feature_maps.")
#: Rooms that make no key: what attacks, prints, serves, hands over, prices, or keeps accounts.
NO_KEYS = {"audit", "cli", "service", "export", "ledger", "release", "planning", "report", "types"}


@cache
def classes():
    """Every class of the package, by its module."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(quorate.__path__, "quorate."):
            if not module.name.endswith("__main__"):
                place = importlib.import_module(module.name)
                found |= {
                    f"{module.name}.{kind.__qualname__}": kind
                    for kind in vars(place).values()
                    if inspect.isclass(kind) and kind.__module__ == module.name and "<locals>" not in kind.__qualname__
                }
    return found


def can_be_met(path, kind):
    if issubclass(kind, BaseException | enum.Enum) or inspect.isabstract(kind) or path.split(".")[1] in NO_KEYS:
        return False
    return not getattr(kind, "_is_protocol", False)


def held_by(kind):
    """Yield the classes that the fields of a dataclass name."""
    here = vars(importlib.import_module(kind.__module__))
    for field in fields(kind) if is_dataclass(kind) else ():
        for word in re.findall(r"[A-Za-z_]\w*", str(field.type)):
            of_here = here.get(word)
            alike = [each for each in classes().values() if each.__name__ == word]
            yield from [of_here] if inspect.isclass(of_here) else alike if len(alike) == 1 else ()


@cache
def met():
    """The classes that keys, stored models and facts can meet, by their modules."""
    waiting = [
        kind
        for path, kind in classes().items()
        if issubclass(kind, Event)
        or any(callable(getattr(kind, act, None)) for act in ACTS)
        or (path.startswith(FAMILIES) and not kind.__name__.startswith("_"))
    ]
    found = {}
    while waiting:
        kind = waiting.pop()
        path = f"{kind.__module__}.{kind.__qualname__}"
        if path in classes() and path not in found and can_be_met(path, kind):
            found[path] = kind
            waiting += held_by(kind)
    return found


def named():
    """Everything that was given a name, by its path: classes, and the functions that facts say to have run."""
    found = {path: kind for path, kind in classes().items() if is_named(kind)}
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("quorate.")]
    for room in [*modules, *classes().values()]:
        module, within = (room.__name__, "") if inspect.ismodule(room) else (room.__module__, f"{room.__name__}.")
        found |= {
            f"{module}.{within}{name}": thing
            for name, thing in vars(room).items()
            if inspect.isfunction(thing)
            and is_named(thing)
            and (thing.__module__, thing.__qualname__) == (module, within + name)
        }
    return found


@pytest.mark.heavy
def test_every_class_that_a_key_can_meet_has_a_name_of_its_own():
    assert len(met()) > 120
    assert sorted(path for path, kind in met().items() if not is_named(kind)) == []


@pytest.mark.heavy
def test_the_names_are_those_that_were_written_down():
    names = Counter(map(stored_name, named().values()))
    assert [name for name, count in names.items() if count > 1] == []
    assert set(WRITTEN) - set(names) == set()
    new = {path: stored_name(thing) for path, thing in named().items() if stored_name(thing) not in WRITTEN}
    assert {path: name for path, name in new.items() if path != name} == {}, "renamed, or moved: write it down"
    may_lack(new)


@pytest.mark.parametrize(("number", "fails"), [("0.3.0.dev0", False), ("0.3.0", True)])
def test_a_released_version_lacks_no_record(number, fails, monkeypatch):
    monkeypatch.setattr(released, "version", lambda package: number)
    may_lack([])
    with pytest.raises(AssertionError) if fails else nullcontext():
        may_lack({"quorate.rules.Rule"})


@pytest.mark.heavy
def test_what_was_written_down_with_its_module_is_found_where_it_is_now():
    """skops writes the module of each class: where a file moves, `PLACES` says to where."""
    now = named()
    found = {name: stored_name(now.get(place_of(path))) for name, path in WRITTEN.items()}
    assert found == {name: name for name in WRITTEN}


@pytest.mark.heavy
def test_no_file_that_moves_changes_a_key(monkeypatch):
    """Every class says that it stands somewhere else, as after a move of all files: the texts are the same."""
    models = [Margin(30), Thresholds(bits=4), PlainStep(None), *(kind for kind in met().values())]
    before = [described(model) for model in models]
    for kind in met().values():
        monkeypatch.setattr(kind, "__module__", "quorate.elsewhere")
    assert [described(model) for model in models] == before
    assert not any("elsewhere" in text for text in before)


@pytest.mark.heavy
def test_facts_name_what_ran_by_a_name_that_outlives_a_move():
    """In every file: whatever is given to ``ran=name_of(...)`` has a stored name."""
    ran = {
        word
        for path in Path(quorate.__file__).parent.rglob("*.py")
        for word in re.findall(r'ran"?(?:: str)? ?[=:] ?name_of\(([\w.]+)\)', path.read_text(encoding="utf-8"))
        if path.parent.name != "export"  # it tells whoever checks a package, and is not kept
    }
    assert len(ran) >= 8
    said = {path.rpartition(".")[2] for path in named()}
    assert {word for word in ran if word.rpartition(".")[2] not in said} == set()


def test_a_class_of_a_users_own_is_called_by_its_module_whatever_it_inherits_from():
    @stored_as("quorate.rules.Rule")
    class Moved:
        pass

    class Special(Moved):
        pass

    assert (stored_name(Moved), described(Moved()), described(Moved)) == (
        "quorate.rules.Rule", "quorate.rules.Rule()", "quorate.rules.Rule",
    )  # fmt: skip
    assert stored_name(Special) == f"{__name__}.{Special.__qualname__}"


def test_a_class_without_a_name_in_a_key_is_an_error_in_tests():
    with pytest.raises(AssertionError, match=r"quorate\.findings\.Finding has no stored name"):
        described(quorate.findings.Finding)


def moved_step(path):
    """Return a model as skops wrote it when the class of its step stood elsewhere."""
    import skops.io

    written, content = zipfile.ZipFile(io.BytesIO(skops.io.dumps(PlainStep([3.0])))), io.BytesIO()
    module, _, name = path.rpartition(".")
    with zipfile.ZipFile(content, "w") as archive:
        for file in written.namelist():
            part = written.read(file).replace(b"quorate.ensemble.teachers.plain_step", module.encode())
            archive.writestr(file, part.replace(b'"PlainStep"', f'"{name}"'.encode()))
    return content.getvalue()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("trusted", ["quorate.old.Step", "quorate.ensemble.teachers.plain_step.PlainStep"])
def test_a_model_that_was_written_before_a_move_is_opened_without_a_warning(trusted, monkeypatch):
    monkeypatch.setattr(stored_names, "PLACES", {"quorate.old.Step": "quorate.ensemble.teachers.plain_step.PlainStep"})
    student = student_from(
        moved_step("quorate.old.Step"), place="student.skops", trusted=[trusted], name_them_in="trusted=", anew="run"
    )
    assert type(student) is PlainStep
    assert student.get_params(deep=False) == {"model": [3.0], "random_state": None}

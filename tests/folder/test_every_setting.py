"""Every key of ``quorate.toml``: what is wrong with it is one line that names it as typed, and a new file has it."""

import re
import tomllib
from pathlib import Path

import pytest

from quorate.errors import InvalidParameter, QuorateError, named, naming
from quorate.folder import planned
from quorate.folder.methods import read_run
from quorate.folder.section import MISSING, read_section, settings_of_section
from quorate.folder.settings import KEYS_BY_ARGUMENT, SECTIONS, keys_of, settings_from, settings_of
from quorate.folder.template import filled, template

KEYS = [(section, key) for section, shape in SECTIONS.items() for key in settings_of_section(shape)]
WRONG = ({"a": 1}, -3, [{}], "", "no such word")
FREE = {"string", "path", "column_names", "_maybe_empty", "as_it_is"}  # what they read may be any text


def document(section, key, value):
    """A file in which one key is wrong, and all others go with it."""
    base = {
        "data": {"private": "a.csv", "public": "b.csv", "label": "y", "classes": ["no", "yes"]},
        "budget": {"epsilon": 1.0, "delta": 1e-6},
    }
    beside = {
        ("data", "unit_name"): {"unit": "id"},
        ("data", "image_column"): {"images": "scans"},
        ("data", "evaluation_query"): {"evaluation": "sqlite:///file.db"},
        ("data", "calibration_query"): {"calibration": "sqlite:///file.db"},
        ("mechanism", "strategy"): {"queries": 20},
    }
    base.setdefault(section, {}).update(beside.get((section, key), {}))
    if section == "method" and key != "by":
        base["method"] = {"by": "direct"}
    if section == "teachers":
        help_ = settings_of_section(SECTIONS[section])[key].help
        if "with `endpoint`" in help_ and key != "endpoint":
            base["teachers"] = {"endpoint": "http://127.0.0.1:8000/v1", "model": "a model"}
        elif "with `command`" in help_ and key != "command":
            base["teachers"] = {"command": "teach"}
    base[section][key] = value
    return base


@pytest.mark.parametrize(("section", "key"), KEYS, ids=[".".join(names) for names in KEYS])
def test_a_wrong_value_is_named_with_its_section_and_what_was_got(section, key):
    check = settings_of_section(SECTIONS[section])[key].check
    refusals = {}
    for wrong in WRONG:
        if getattr(check, "__name__", "") in FREE and isinstance(wrong, str):
            continue
        if key == "class_shares" and isinstance(wrong, dict):
            continue  # which names a class
        try:
            settings_from(document(section, key, wrong), folder=Path())
        except InvalidParameter as refusal:
            refusals[repr(wrong)] = str(refusal)
    assert len(refusals) >= 2
    for got, words in refusals.items():
        assert re.fullmatch(rf".*\[{section}\] {key}\b.*", words)
        assert re.search(r"must .*, got ", words)
        assert f"got {got}" in words


@pytest.mark.parametrize(("section", "key"), KEYS, ids=[".".join(names) for names in KEYS])
def test_a_key_has_its_help_and_an_unknown_one_names_the_nearest(section, key):
    known = settings_of_section(SECTIONS[section])[key]
    assert known.help
    assert known.required or known.default is not MISSING
    with pytest.raises(InvalidParameter, match=rf"^\[{section}\] has no key '{key}x'; did you mean"):
        read_section(section, {f"{key}x": 1}, SECTIONS[section], Path(), others=SECTIONS)
    other = next(name for name in SECTIONS if key not in settings_of_section(SECTIONS[name]))
    with pytest.raises(InvalidParameter, match=rf"^\[{other}\] has no key '{key}'; .*\[{section}\] .*ha(s|ve) one"):
        read_section(other, {key: 1}, SECTIONS[other], Path(), others=SECTIONS)
    if known.default is MISSING:
        lacking = document(section, key, None)
        del lacking[section][key]
        with pytest.raises(InvalidParameter, match=rf"^\[{section}\] {key} is required[.,] \w"):
            settings_from(lacking, folder=Path())


def test_a_new_file_is_one_and_says_what_it_would_do_without_its_lines():
    """What a new file has as lines are its examples and defaults; with its comments as lines each key would be read."""
    settings = settings_from(tomllib.loads(filled({
        "private": "a.csv", "public": "b.csv", "label": "y", "classes": ("no", "yes"), "epsilon": 1.0, "delta": 1e-6
    })), folder=Path())  # fmt: skip
    assert settings == settings_from(document("run", "n_jobs", 1) | {"run": {}}, folder=Path())
    assert max(map(len, template().splitlines())) <= 120
    for section, shape in SECTIONS.items():
        part = template().partition(f"[{section}]\n")[2].partition("\n[")[0]
        for key, known in settings_of_section(shape).items():
            lines = [line for line in part.splitlines() if re.match(rf"(# )?{key} = ", line)]
            assert len(lines) == (known.example is not None), (section, key)
            for line in lines:
                assert tomllib.loads(line.removeprefix("# ")) == {key: known.example}


OTHERWISE = {"feature_map": "linear", "text": ["note"], "marginals": 0.5, "neighbours": "replace"}


@pytest.mark.parametrize("key", [key for section, key in KEYS if section == "method" and key != "by"])
def test_a_key_of_the_direct_method_asks_for_it_unless_it_says_its_default(key):
    """Whichever keys there will be: by public facts alone this table would be learned from by votes."""
    default = settings_of_section(SECTIONS["method"])[key].default
    few = document("method", key, OTHERWISE.get(key, 1 if default is None else True))
    few["data"] |= {"unit": "id", "n_records": 100}
    of_both = key in ("marginals", "neighbours")
    with pytest.raises(InvalidParameter, match=rf"\[method\] {key} is for the direct method"):
        settings_from({**few, "method": {**few["method"], "by": "votes"}}, folder=Path())
    del few["method"]["by"]
    if not of_both:
        assert settings_from(few, folder=Path()).method.by == "direct"
    if isinstance(default, str | bool):
        few["method"][key] = default
        assert settings_from(few, folder=Path()).method.by == "votes"


def test_a_name_of_python_has_the_key_that_its_reader_types():
    assert KEYS_BY_ARGUMENT["n_teachers"] == "[teachers] count"
    assert KEYS_BY_ARGUMENT["epsilon"] == "[budget] epsilon"
    assert KEYS_BY_ARGUMENT["text"] == "[method] text"
    share = settings_from(document("run", "epsilon", 0.5), folder=Path())
    with naming(keys_of(share)):
        assert (named("epsilon"), named("delta"), named("student")) == (
            "[run] epsilon", "[budget] delta", "[student] model",
        )  # fmt: skip


KINDS = ("text", "categorical", "numeric", "dates")
NUMBER = {"data.label": None, "data.classes": None, "data.range": [0, 100]}
#: What the tables do not have, or hold otherwise, and the key that the refusal must name.
OF_TABLES = [
    *(({f"data.{kind}": ["agee"]}, f"[data] {kind} names 'agee'") for kind in (*KINDS, "drop")),
    ({"data.numeric": ["ward"]}, "[data] numeric: column 'ward'"),
    ({"data.dates": ["ward"]}, "[data] dates: column 'ward'"),
    ({"data.label": "agee"}, '[data] label = "agee": '),
    ({"data.unit": "agee"}, '[data] unit = "agee": '),
    ({"data.unit": "ill"}, "[data] label and [data] unit both name 'ill'"),
    ({"data.target": "agee", **NUMBER}, '[data] target = "agee": '),
    ({"data.target": "ill", "data.unit": "ill", **NUMBER}, "[data] target and [data] unit both name 'ill'"),
    ({"data.evaluation": "public.csv"}, '[data] evaluation needs the column of [data] label = "ill": '),
    ({"data.calibration": "public.csv"}, "[data] calibration "),
    ({"data.public": "quorate.toml"}, "[data] public: "),
    ({"data.private": "quorate.toml"}, "[data] private"),
    ({"data.private": "."}, "[data] private: "),
]
OF_VOTES = [
    ({"data.classes": ["no", "perhaps"]}, "a label outside [data] classes was found"),
    ({"teachers.model": "a_lost_module:teacher"}, "[teachers] model 'a_lost_module:teacher' "),
    ({"student.model": "a_lost_module:student"}, "[student] model 'a_lost_module:student' "),
    ({"mechanism.name": "a_lost_module:Noise"}, "[mechanism] name 'a_lost_module:Noise'"),
]
OF_DIRECT = [
    ({"method.text": ["agee"]}, "[method] text: column 'agee'"),
    ({"method.text": ["age"]}, "[method] text: column 'age'"),
]
CASES = [
    *((changes, told, by) for by in ("votes", "direct") for changes, told in OF_TABLES),
    *((changes, told, "votes") for changes, told in OF_VOTES),
    *((changes, told, "direct") for changes, told in OF_DIRECT),
]


@pytest.mark.default_cases(6)
@pytest.mark.parametrize(("changes", "told", "by"), CASES, ids=[f"{by}: {told}" for _, told, by in CASES])
def test_what_the_tables_do_not_have_is_refused_with_the_key_that_names_it(make_run, changes, told, by):
    of_classes = {"teachers.count": None, "mechanism.queries": None, "run.allow_hopeless": None}
    how = of_classes if "data.target" in changes and by == "votes" else {}
    root = make_run(**{"method.by": by}, **how, **changes)
    with pytest.raises(QuorateError) as refusal:
        read_run(root, begin=False, settings=settings_of(root))
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_names_no_column_is_refused_before_a_method_is_chosen_by_a_rehearsal(make_run, monkeypatch):
    """The rehearsal takes up to half a minute, and would have been for nothing."""
    monkeypatch.setattr(planned, "plan_of", lambda *_, **__: pytest.fail("a rehearsal began"))
    open_ = {"teachers.count": None, "mechanism.queries": None, "run.allow_hopeless": None, "method.by": "auto"}
    root = make_run(**open_, **{"data.evaluation": "evaluation.csv", "data.n_records": 400, "data.unit": "agee"})
    with pytest.raises(QuorateError, match=r'\[data\] unit = "agee": '):
        planned.settings_to_run(settings_of(root))

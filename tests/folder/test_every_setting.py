"""Every key of ``quorate.toml``: what is wrong with it is one line that names it as typed, and a new file has it."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.folder.conftest import AGE_AND_BMI, DIRECT, WARD, WITHOUT_POOL, charges
from tests.folder.test_refusals import one_line

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
    assert "default required" not in " ".join(template().split())
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
OPEN = {"teachers.count": None, "mechanism.queries": None, "run.allow_hopeless": None}
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
    how = OPEN if "data.target" in changes and by == "votes" else {}
    root = make_run(**{"method.by": by}, **how, **changes)
    with pytest.raises(QuorateError) as refusal:
        read_run(root, begin=False, settings=settings_of(root))
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_names_no_column_is_refused_before_a_method_is_chosen_by_a_rehearsal(make_run, monkeypatch):
    """The rehearsal takes up to half a minute, and would have been for nothing."""
    monkeypatch.setattr(planned, "plan_of", lambda *_, **__: pytest.fail("a rehearsal began"))
    root = make_run(
        **OPEN, **{"method.by": "auto", "data.evaluation": "evaluation.csv", "data.n_records": 400, "data.unit": "agee"}
    )
    with pytest.raises(QuorateError, match=r'\[data\] unit = "agee": '):
        planned.settings_to_run(settings_of(root))


DECLARED = {"data.n_records": 400}
PROMPT = {"teachers.endpoint": "http://127.0.0.1:9/v1", "teachers.model": "toy:8b", "teachers.shots": 4}
SQLITE = {"data.private": "sqlite:///c.db"}
OF_NUMBER = {**NUMBER, **OPEN, "data.target": "bmi"}
NO_POOL = {**DIRECT, "data.public": None}
SHARE = {"data.evaluation": "evaluation.csv", "data.calibration_of_evaluation": 0.5}
HELD_OUT = {"data.n_records": 1_200, "data.calibration_share": 0.4}
INTERACTIVE = {"mechanism.name": "InteractiveNoisyMax", "mechanism.threshold": 8.0}

#: Changes of a sound folder, and what the line says; by the exit code with which it ends.
WRONG_SETTINGS = {
    2: [
        ({"data.classes": ["no"]}, "[data] classes must be a list of at least two labels, got ['no']"),
        ({"data.classes": ["no", "yes", "no"]}, "'no' is listed twice"),
        ({"data.classes": ["no", 1]}, "all classes in one type"),
        ({"budget.epsilon": float("nan")}, "epsilon must be a number > 0, got nan"),
        ({"budget.epsilon": "4"}, "[budget] epsilon must be a number > 0, got '4'"),
        ({"budget.epsilon": 1e-12}, "epsilon must be at least 1e-9"),
        ({"budget.epsilon": 0.001, "run.allow_hopeless": None, **DECLARED}, "same: [run] allow_hopeless = true"),
        ({**DIRECT, "budget.epsilon": 9_000.0, "run.epsilon": 8_000.0}, "[run] epsilon = 8000.0 is too large for"),
        ({"bugdet.epsilon": 1}, "has no section [bugdet]; did you mean [budget]?"),
        # mechanisms and strategies
        ({"mechanism.name": "NoisyCount"}, 'did you mean "NoisyCounts"?'),
        ({"mechanism.queries": 151}, "[mechanism] queries = 151 but the pool has 150 distinct points"),
        ({"mechanism.strategy": "margin"}, "queries = 300"),
        ({"mechanism.queries": 900, "mechanism.strategy": "margin"}, "Margin asks 900 queries ([mechanism] queries), "),
        (
            {"mechanism.name": "StableSparseVector", "mechanism.cutoff": 200, "mechanism.queries": 100},
            "[mechanism] cutoff must be at most the number of queries, which is 100, got 200; no more can be declined",
        ),
        (
            {"mechanism.name": "StableSparseVector", "mechanism.cutoff": 5, "mechanism.cutof": 1.0},
            "has no key 'cutof'; did you mean \"cutoff\"?",
        ),
        (
            {"mechanism.name": "ConfidentNoisyMax", "mechanism.threshold": 8.0, "mechanism.sigma_answer": 30.0},
            "ConfidentNoisyMax got a part of its noise; give ",
        ),
        (INTERACTIVE, "InteractiveNoisyMax needs confidence. Example: confidence = "),
        ({**INTERACTIVE, "mechanism.n_teachers": 12}, "has no key 'n_teachers'"),  # which follows from the task
        # teachers and students
        (
            {"teachers.count": 500, **DECLARED},
            "[teachers] count must be at most 400, the number of records, got 500; try [teachers] count = ",
        ),
        (
            {"teachers.prior_matching": True, "data.classes": ["no", "yes", "perhaps"]},
            "[teachers] prior_matching is for two classes, and there are 3; leave it out",
        ),
        ({"teachers.model": "svm"}, '[teachers] model must be one of "auto", "logistic", "tree", "forest", "boosting"'),
        ({"teachers.command": 3}, "[teachers] command must be a program and its arguments"),
        ({"teachers.command": ["teach"], "teachers.model": "forest"}, "[teachers] model does not go with command"),
        ({"teachers.command": ["teach"], "teachers.shots": 3}, "[teachers] shots does not go with command"),
        ({"teachers.keeps_model": True}, "[teachers] keeps_model is for teachers that are a command"),
        ({"teachers.endpoint": "http://127.0.0.1:8000/v1"}, "[teachers] model is required. "),
        ({**PROMPT, "teachers.hosts": "llm.example.org"}, "must name machines"),
        ({**PROMPT, "teachers.prior_matching": True}, "prior_matching is for models that are fitted"),
        ({**PROMPT, "teachers.api_key_env": "sk-secret key"}, "must be the name of an environment variable"),
        ({"teachers.shots": 4}, "there is no endpoint"),
        ({"student.decision_threshold": {"false_positive": 1}}, "as costs must have the keys false_negative and"),
        (
            {"student.method": "values", "mechanism.name": "GaussianNoisyMax"},
            "VoteShareStudent learns from noisy votes",
        ),
        # either method
        (
            {**DIRECT, "teachers.count": 5, "mechanism.queries": 9, "student.model": "forest", "run.n_jobs": 2},
            "[teachers] count, [mechanism] queries, [student] model and [run] n_jobs are for votes of teachers",
        ),
        (
            {"method.by": "votes", "method.rounds": 4, "method.clip": 1.0},
            "[method] rounds and [method] clip are for the direct method",
        ),
        ({"method.by": "votes", "method.private_temperature": True}, "private_temperature is for the direct method, "),
        ({**DIRECT, "method.feature_map": "patches"}, '[method] feature_map = "patches" takes square grey images'),
        ({"run.scheduler": "tcp://10.1.2.3:8786"}, "[run] scheduler is reached by plain TCP"),
        ({"run.scheduler": "10.1.2.3"}, "[run] scheduler must be the address"),
        # tables
        ({**SQLITE, "data.private": "postgresql://[h/db", "data.private_query": "select 1"}, "no URL of a database"),
        (SQLITE, "private_query is missing"),
        ({"data.private_query": "select 1"}, "is put to a database"),
        (
            {"data.private": "sqlite://c.db", "data.private_query": "select 1 order by 1"},
            '[data] private: after sqlite: there are three slashes; write "sqlite:///c.db"',
        ),
        ({"data.evaluation_query": "select 1"}, "[data] evaluation_query is put to a database, and [data] evaluation,"),
        ({"data.private": "mysql://host/db", "data.private_query": "select 1"}, "no database that is read"),
        ({**SQLITE, "data.private_query": "select * from v"}, "end it with order by"),
        ({"data.image_column": "scan"}, "[data] image_column names the column of image files, and [data] images,"),
        ({"data.missing": 9}, "[data] missing must list"),
        ({"data.missing": ["no"]}, "[data] missing names 'no', which is one of the classes"),
        ({"data.private": "a.parquet", "data.public": "b.parquet", "data.quote": "'"}, "[data] quote says how text"),
        ({"data.public": "b.parquet", "data.missing": "k.A."}, "[data] missing says "),
        ({"data.text": ["ill"]}, "[data] text names 'ill', which is the label"),
        ({"data.classes": ["no"], "data.class_shares": {"yes": 0.1}}, "at least two labels, got ['no']"),
        ({"data.class_shares": {"yes": "0,05"}}, "got '0,05'; write 0.05, with a point and without quotes"),
        ({"data.n_records": 3.0}, "got 3.0; a point is the decimal mark"),
        ({"data.n_records": "3.000"}, "got '3.000'; write 3000, without quotes"),
        ({"budget.epsilon": "1,0"}, "got '1,0'; write 1.0, with a point"),
        ({"data.private": "C:\\new.csv"}, "a backslash and a letter stand for one character there"),
        ({"data.text": ["note"], "data.drop": ["note"]}, "[data] names column 'note' more than once"),
        ({"data.date_formt": "dd.mm.yyyy"}, 'did you mean "date_format"'),
        ({"data.class_shares": {"maybe": 0.1}}, "[data] class_shares names 'maybe', which is none of the classes"),
        ({"data.score": "auc"}, "[data] score must be one of"),
        ({"data.calibration_of_evaluation": 0.5}, "is a share of the rows of [data] evaluation, which is missing"),
        ({**SHARE, "data.calibration": "private.csv"}, "names rows of its own; leave one of the two out"),
        ({**SHARE, "data.calibration_share": 0.2, **DECLARED}, "calibration_of_evaluation makes them of public ones"),
        *(
            ({**SHARE, "data.calibration_of_evaluation": share}, f"calibration_of_evaluation{told}")
            for share, told in (
                (0.001, " got 0 rows, and needs at least 100"),
                (0.9, " got 90 rows, and needs at least 100"),
                (0.999, "=0.999 of 100 rows leaves none to score"),
            )
        ),
        ({**HELD_OUT, "data.calibration": "other.csv"}, "leave calibration_share out"),
        ({"data.coverage": 0.8}, "[data] coverage is what "),
        # a number as the target
        ({**OF_NUMBER, "data.range": None}, "[data] range is required beside [data] target"),
        ({**OF_NUMBER, "data.target": None}, "[data] target is required beside [data] range"),
        ({**OF_NUMBER, "data.range": [5, 5]}, "[data] range must be two finite numbers"),
        ({**OF_NUMBER, "data.classes": ["no", "yes"]}, "[data] classes is for classes"),
        ({**OF_NUMBER, "data.label": "ill"}, "[data] label is for classes"),
        ({**OF_NUMBER, "method.by": "votes", "method.rounds": 9}, "[method] rounds is for the direct method"),
        ({**OF_NUMBER, "method.by": "direct", "teachers.count": 50}, "[teachers] count is for votes of teachers"),
        ({**OF_NUMBER, "mechanism.online_answers": 50}, "[mechanism] online_answers is for votes for classes"),
        ({**OF_NUMBER, "data.public": None, "method.by": "votes", "schema.age": [0, 1]}, "[data] public is required"),
        ({**OF_NUMBER, "student.decision_threshold": 0.2}, "decision_threshold"),
        # a schema in the place of public rows
        (NO_POOL, "public is required, or a [schema]"),
        ({**DIRECT, **AGE_AND_BMI}, "[schema] takes the place of public rows"),
        *(({"schema.age": [0, 120], "method.by": by, **OPEN}, "[schema]") for by in ("votes", "auto")),
        ({**NO_POOL, **AGE_AND_BMI, "schema.ward": ["north", 3]}, "'ward'"),
        *(
            ({**WITHOUT_POOL, "schema.age": declared}, told)
            for declared, told in (("?", "still open"), ([5, 1], "'age'"), ("text", "drop"))
        ),
        *(
            ({**WITHOUT_POOL, **more}, f"which is the {what}; leave it out of [schema]")
            for more, what in (
                ({"schema.ill": ["no", "yes"]}, "label"),
                ({"schema.patient_id": "number", "data.unit": "patient_id"}, "unit"),
            )
        ),
        ({**WITHOUT_POOL, "method.feature_map": "trees"}, "feature_map"),
        ({**WITHOUT_POOL, "method.feature_map": "kernels", "method.marginals": 0}, "feature_map"),
        ({**WITHOUT_POOL, "method.text": ["ward"]}, "public pool"),
        ({**WITHOUT_POOL, "data.categorical": ["wart"]}, "[data] categorical says what columns of"),
        ({**WITHOUT_POOL, "data.public_query": "select 1"}, "[data] public_query is put to a"),
        ({**NO_POOL, "data.images": "scans", "schema.file": ["a", "b"]}, "[data] images needs [data] public"),
    ],
    4: [
        (
            {"data.private": "privat.csv"},
            '[data] private: there is no file "privat.csv" beside quorate.toml; did you mean "private.csv"?',
        ),
        (
            {"data.evaluation": "e.csv"},
            '[data] evaluation: there is no file "e.csv" beside quorate.toml; write its path relative to quorate.toml',
        ),
        ({**SQLITE, "data.private_query": "select 1 order by 1"}, "there is no file"),
        ({"data.classes": ["no", "perhaps"]}, "private.csv, column 'ill': a label outside [data] classes was found"),
        ({"data.classes": [0, 1]}, "a label outside [data] classes was found"),
        ({"teachers.count": 201, "data.unit": "patient_id"}, "too many teachers"),
        ({"teachers.count": 500, "data.n_records": 600}, 'and take [teachers] count = "auto"'),
        ({"teachers.count": "auto", "data.n_records": 10**9}, "the true number of"),
        ({**PROMPT, "teachers.text": "rview"}, "[teachers] text names 'rview'"),
        (
            {**WITHOUT_POOL, "schema.height": [0, 300]},
            "private.csv lacks the column 'height' of [schema]; leave it out of [schema]",
        ),
        (
            {**NO_POOL, **WARD, "schema.agee": [0, 120], "schema.bmi": [10, 60]},
            "[schema] names 'agee', which private.csv lacks; did you mean 'age'?",
        ),
        (
            {**NO_POOL, **WARD, "schema.bmi": [10, 60]},
            'Declare it in [schema], as bounds ([0, 120]) or as a list (["F", "M"]), or leave it out by a line',
        ),
        *(
            ({"data.private": f"private{suffix}", "data.quote": "'", "data.missing": ["-"]}, f"{suffix} is not read; ")
            for suffix in (".xls", ".sav", ".dta", ".ods", ".json", ".docx")
        ),
    ],
}


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [(changes, code, told) for code, cases in WRONG_SETTINGS.items() for changes, told in cases],
    ids=[told for cases in WRONG_SETTINGS.values() for _, told in cases],
)
def test_what_does_not_go_is_one_line_that_names_the_key_and_charges_nothing(make_run, cli, changes, code, told):
    root = make_run(**changes)
    for verb in ("check", "run"):
        said = cli.refused(code, verb, root)
        assert told in " ".join(one_line(said).split())
        assert not [name for name in ("queries=", "n_teachers=", "n_records=", "allow_hopeless=") if name in said]
    assert charges(root) == 0

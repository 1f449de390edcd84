"""The recipes of CONTRIBUTING.md: each is followed from outside, used from end to end, and given a twin."""

import re
import sys
import tomllib
from importlib import import_module, invalidate_caches
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.folder import conftest as runs

from quorate import PrivateClassifier, PublicPool
from quorate.accounting import PureDP, epsilon, from_json, own_kinds
from quorate.accounting.event import OWN_KINDS
from quorate.audit import audit_schedule, price_faults
from quorate.cli.group import COMMANDS
from quorate.data import formats, read_data, register_format
from quorate.data.formats import reader_of
from quorate.errors import DataRefused, InvalidParameter, LedgerIntegrityError, PreconditionFailed
from quorate.folder.published import read_facts
from quorate.ledger import Budget, Ledger, LedgerStore, register_store
from quorate.ledger import ledger as ledgers
from quorate.plugins import COMMANDS as COMMANDS_OF
from quorate.plugins import FORMATS, STORES, load
from quorate.students import Student
from quorate.voting.models import student_of

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
RECIPE = re.compile(r"^### (.+?)\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (\w+\.py)\n")

RECIPES = dict(RECIPE.findall(PAGE.read_text(encoding="utf-8")))
cli = runs.cli


def declare(place, package, points):
    """Write in a folder what an installed package says of itself: its name, and its entry points by their group."""
    written = place / f"{package}-1.0.dist-info"
    written.mkdir(exist_ok=True)
    (written / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    lines = [
        line
        for group, names in points.items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in names.items()))
    ]
    (written / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    invalidate_caches()


@pytest.fixture
def follow(tmp_path, monkeypatch):
    """Return ``follow(title, *changes, declared=True)``: writes a recipe's package, installs it and returns its module.

    A change is a pair of texts: the first is replaced by the second in the code, for a twin.
    """
    place = tmp_path / "package"
    place.mkdir()
    monkeypatch.syspath_prepend(str(place))
    before = set(sys.modules)
    registries = (OWN_KINDS, formats._BY_SUFFIX, ledgers._BY_SCHEME)
    kept = [dict(registry) for registry in registries]

    def made(title, *changes, declared=True):
        module, points = "", {}
        for kind, text in FENCE.findall(RECIPES[title]):
            for old, new in changes if kind == "python" else ():
                assert old in text
                text = text.replace(old, new)
            if kind == "python":
                named = NAMED.match(text)
                (place / named[1]).write_text(text, encoding="utf-8")
                module = named[1].removesuffix(".py")
            elif kind == "toml":
                points |= tomllib.loads(text)["project"]["entry-points"]
        if declared and points:
            declare(place, "toy", points)
        invalidate_caches()
        return import_module(module)

    yield made
    for name in set(sys.modules) - before:
        if name.startswith("toy_"):
            del sys.modules[name]
    for registry, earlier in zip(registries, kept, strict=True):
        registry.clear()
        registry.update(earlier)


RNG = np.random.default_rng(7)
X, POOL = RNG.normal(size=(400, 2)), RNG.normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(np.int64)


def classifier(**more):
    how = {"classes": [0, 1], "epsilon": 20.0, "delta": 1e-5, "n_teachers": 10, "n_jobs": 1}
    return PrivateClassifier(**how, **more)


@pytest.mark.heavy
def test_there_are_six_recipes_and_each_has_a_test_here():
    here = Path(__file__).read_text(encoding="utf-8")
    assert list(RECIPES) == ["A mechanism", "A student", "A store", "An accounting rule", "A table format", "A command"]
    assert all(here.count(f'follow("{title}"') >= 2 for title in RECIPES)  # it, and a twin


def test_every_file_that_a_recipe_names_is_there():
    named = {each for text in RECIPES.values() for each in re.findall(r"`((?:src|tests|docs)/[\w./]+)`", text)}
    assert len(named) > 15
    assert [each for each in named if not (ROOT / each).exists()] == []


@pytest.mark.heavy
def test_a_mechanism(follow):
    module = follow("A mechanism")
    mechanism = module.HalfLead(scale=3.0)
    clf = classifier(mechanism=mechanism, queries="all").fit(X, Y, public=PublicPool(POOL))
    assert clf.score(X, Y) > 0.8
    assert clf.guarantee_.epsilon == pytest.approx(epsilon(mechanism.schedule(60), 1e-5), abs=2e-9)
    assert any("toy_mechanism.HalfLead is the owner's own" in each for each in clf.guarantee_.caveats)
    assert not audited(mechanism)


@pytest.mark.heavy
def test_a_mechanism_that_draws_less_noise_than_it_pays_for_is_found(follow):
    module = follow("A mechanism", ("discrete_laplace(self.scale,", "discrete_laplace(self.scale / 10,"))
    assert audited(module.HalfLead(scale=3.0))


def test_a_mechanism_that_does_not_say_its_sensitivity_is_refused(follow):
    module = follow("A mechanism", ("    sensitivity: ClassVar[float] = 1.0\n", ""))
    with pytest.raises(InvalidParameter, match="does not declare its sensitivity"):
        classifier(mechanism=module.HalfLead(scale=3.0)).fit(X, Y, public=PublicPool(POOL))


def audited(mechanism):
    how = {"n_teachers": 40, "n_classes": 2, "delta": 1e-5, "runs": 20_000, "seed": 1}
    return audit_schedule(mechanism, mechanism.schedule(4), **how).violated


@pytest.mark.heavy
def test_a_student(follow):
    module = follow("A student")
    student = student_of("toy_student:Centroids", method="auto", shares="linear", folder=Path("nowhere"))
    assert isinstance(student, Student)
    clf = classifier(student=student, mechanism="GaussianNoisyMax").fit(X, Y, public=PublicPool(POOL))
    assert type(clf.student_).__name__ == "NearestCentroid"
    assert clf.score(X, Y) > 0.65  # .78 to .99 under other noise; a student that has not learned has .5
    assert module.Centroids() == student


def test_a_student_that_cannot_learn_from_what_is_released_is_refused_before_the_charge(follow):
    student = follow("A student").Centroids()
    with Ledger(budget=Budget(20.0, 1e-5)) as ledger:
        with pytest.raises(InvalidParameter, match="learns from classes"):
            classifier(student=student, ledger=ledger).fit(X, Y, public=PublicPool(POOL))
        assert not ledger.reservations()


@pytest.mark.heavy
@pytest.mark.parametrize("declared", [True, False])
def test_a_store(follow, tmp_path, declared):
    module = follow("A store", declared=declared)
    url = f"text://{tmp_path}/study.json"
    if not declared:
        with pytest.raises(InvalidParameter, match="no store has the scheme 'text'"):
            Ledger(url, budget=Budget(1.0, 1e-5))
        register_store("text", module.open_text)
    with pytest.raises(PreconditionFailed, match="there is no ledger at text://"):
        Ledger(url)
    with Ledger(url, budget=Budget(30.0, 1e-4)) as ledger:
        assert ledger.durable
        reservation = ledger.reserve(PureDP(0.25), delta=0, purposes={"label": 3}, key="labels")
        reservation.store(reservation.draw("label", 2), [1, 0])
    with Ledger(url) as ledger:
        assert (ledger.spent.epsilon, ledger.head.sequence > 3) == (0.25, True)
        assert ledger.reservation("labels").remaining("label") == 1
        ledger.verify(prices=True)
        clf = classifier(ledger=ledger).fit(X, Y, public=PublicPool(POOL))
    assert clf.guarantee_.epsilon > 20
    assert any("kept by toy_store.TextStore, a store of the owner's own" in each for each in clf.guarantee_.caveats)
    with Ledger(tmp_path / "ledger.db", budget=Budget(30.0, 1e-4)) as ledger:
        own = classifier(ledger=ledger).fit(X, Y, public=PublicPool(POOL))
    assert not any("a store of the owner's own" in each for each in own.guarantee_.caveats)
    with Ledger(url) as ledger:  # and the key that binds it to its data lies beside it
        classifier(ledger=ledger).set_params(epsilon=1.0, delta=1e-6).fit(X, Y, public=PublicPool(POOL))
        assert len(ledger.reservations()) == 3
    with pytest.raises(InvalidParameter, match="give Ledger"):
        classifier(ledger=url).fit(X, Y, public=PublicPool(POOL))


@pytest.mark.parametrize(
    "change",
    [
        ("self._lines += lines", "self._lines += [] if self._lines else lines"),
        ("lines=tuple(self._lines[after:])", "lines=tuple(self._lines[after:-1])"),
    ],
)
def test_a_store_that_loses_an_entry_is_missed(follow, tmp_path, change):
    follow("A store", change)
    url = f"text://{tmp_path}/study.json"
    with Ledger(url, budget=Budget(1.0, 1e-5)) as ledger:
        ledger.reserve(PureDP(0.25), delta=0, purposes={"label": 3}, key="labels")
    with pytest.raises(LedgerIntegrityError):
        Ledger(url)


def test_what_opens_no_store_and_a_scheme_that_is_taken_are_refused(follow):
    module = follow("A store", declared=False)
    register_store("text", module.open_text)
    with pytest.raises(InvalidParameter, match="taken"):
        register_store("text", module.open_text)
    with pytest.raises(InvalidParameter, match="scheme must be"):
        register_store("Text File", module.open_text)
    register_store("wrong", lambda url, create: {})
    with pytest.raises(InvalidParameter, match="must return a LedgerStore"):
        Ledger("wrong://here", budget=Budget(1.0, 1e-5))
    assert isinstance(module.TextStore(Path("nowhere.json")), LedgerStore)


def test_an_accounting_rule(follow):
    module = follow("An accounting rule")
    event = module.KeepOrDraw(0.5)
    assert module.faults == ()
    assert from_json(event.to_json()) == event
    with Ledger(budget=Budget(1.0, 1e-5)) as ledger:
        reservation = ledger.reserve(event, delta=0, purposes={"label": 1}, key="labels")
        assert (ledger.spent.epsilon, own_kinds(reservation.event)) == (0.5, ("toy_rule.keep_or_draw",))


@pytest.mark.parametrize("rule", ["PureDP(0.9 * event.epsilon)", "PureDP(event.epsilon / 2)"])
def test_an_accounting_rule_below_the_truth_is_found(follow, rule):
    module = follow("An accounting rule", ("PureDP(event.epsilon)", rule))
    assert {fault.rule for fault in module.faults} >= {"delta", "epsilon", "rdp"}
    assert {fault.times for fault in module.faults} == {1, 2}
    assert all(fault.exact > fault.claimed for fault in module.faults)


def test_a_curve_below_the_truth_is_found_too(follow):
    """Here ρ and curve agree with each other, so that only the sum over the outcomes tells."""
    rule = "rdp=lambda event, orders: orders * event.epsilon**2 / {0}, zcdp=lambda event: event.epsilon**2 / {0}"
    honest = follow("An accounting rule", ("priced_as=lambda event: PureDP(event.epsilon)", rule.format(2)))
    assert honest.faults == ()
    low = price_faults(honest.KeepOrDraw(0.25), honest.outcomes(0.5))
    assert {fault.rule for fault in low} == {"delta", "epsilon", "rdp", "zcdp"}


@pytest.mark.parametrize("pair", [([0.5, 0.5], [1.0]), ([0.5, 0.6], [0.5, 0.5]), ([1.5, -0.5], [0.5, 0.5])])
def test_outcomes_that_are_no_distributions_are_refused(pair):
    with pytest.raises(InvalidParameter, match="outcomes must be"):
        price_faults(PureDP(1.0), [pair])


def run_of_pipes(folder):
    folder.mkdir()
    private = pl.DataFrame(X, schema=["a", "b"]).with_columns(pl.Series("ill", np.where(Y, "yes", "no")))
    private.write_csv(folder / "private.pipes", separator="|")
    pl.DataFrame(POOL, schema=["a", "b"]).write_csv(folder / "public.pipes", separator="|")
    (folder / "quorate.toml").write_text(
        '[data]\nprivate = "private.pipes"\npublic = "public.pipes"\nlabel = "ill"\nclasses = ["no", "yes"]\n'
        "[budget]\nepsilon = 4.0\ndelta = 1e-5\n[teachers]\ncount = 10\n",
        encoding="utf-8",
    )
    return folder


@pytest.mark.heavy
def test_a_table_format_says_what_is_wrong_and_quotes_no_row(follow, cli, tmp_path):
    root = run_of_pipes(tmp_path / "run")
    module = follow("A table format", declared=False)
    register_format(module.PIPES)
    assert cli("check", root)[0] == 0
    (root / "private.pipes").write_text("a|b|ill\n1|2|secret|secret\n", encoding="utf-8")
    code, _, said = cli("check", root)
    assert code == 4
    told = (
        "private.pipes: the format toy_format.PipeText cannot read this file (DataRefused); what it says is not quoted"
    )
    assert told in " ".join(said.split())
    assert "secret" not in said
    with pytest.raises(DataRefused, match="has no column"):
        module.PIPES.read(root / "public.pipes", label="ill", unit=None, drop=(), n_features=None)


def test_a_table_format_takes_no_ending_of_another(follow):
    module = follow("A table format", ('(".pipes",)', '(".csv",)'), declared=False)
    with pytest.raises(InvalidParameter, match=r"the suffix '\.csv' belongs to the format DelimitedText"):
        register_format(module.PIPES)


def test_what_a_format_of_another_package_raises_warns_or_returns_is_not_quoted(follow, tmp_path):
    reads = "            return pl.read_csv("
    for number, (odd, said) in enumerate(
        [
            ("raise ValueError(read_bytes(path).decode())", "(ValueError)"),
            ("import warnings; warnings.warn(read_bytes(path).decode()); raise KeyError('a')", "(KeyError)"),
            ("return read_bytes(path)", "(it returns no DataFrame)"),
        ]
    ):
        (tmp_path / f"{number}").mkdir()
        file = tmp_path / f"{number}" / "private.pipes"
        file.write_text("a|b|ill\n1|2|secret\n", encoding="utf-8")
        module = follow("A table format", (reads, f"            {odd}\n{reads}"), declared=False)
        formats._BY_SUFFIX.pop(".pipes", None)
        register_format(module.PIPES)
        del sys.modules["toy_format"]
        with pytest.raises(DataRefused) as refusal:
            read_data(file, label="ill")
        assert said in str(refusal.value)
        assert "secret" not in str(refusal.value)
        assert refusal.value.__context__ is None


def test_a_declared_format_is_asked_for_its_suffix_alone(follow, tmp_path):
    follow("A table format", ('(".pipes",)', '(".pipes", ".bars", ".tubes")'))
    for name in ("rows.pipes", "rows.bars"):
        (tmp_path / name).write_text("a|b\n1|2\n", encoding="utf-8")
    assert read_data(tmp_path / "rows.pipes").columns == ("a", "b")
    assert reader_of("rows.pipes") == ("reader of .pipes files", "toy_format.PipeText, toy 1.0")
    assert reader_of("rows.bars") is None
    with pytest.raises(DataRefused, match="svmlight"):
        read_data(tmp_path / "rows.bars")


def test_a_declared_format_that_has_not_the_suffix_is_refused(follow, tmp_path):
    follow("A table format", ('(".pipes",)', '(".bars",)'))
    (tmp_path / "rows.pipes").write_text("a|b\n1|2\n", encoding="utf-8")
    with pytest.raises(InvalidParameter, match=r"package toy declares a format of \.pipes files"):
        read_data(tmp_path / "rows.pipes")


@pytest.mark.heavy
def test_a_table_format(follow, cli, tmp_path):
    root = run_of_pipes(tmp_path / "run")
    assert cli("check", root)[0] == 4  # before the package is there
    follow("A table format")
    code, said, wrong = cli("check", root)
    assert code == 0, wrong
    assert "10 teachers" in said
    code, _, wrong = cli("run", root)  # and its report names the format and its package
    assert code == 0, wrong
    assert ("reader of .pipes files", "toy_format.PipeText, toy 1.0") in read_facts(root).provenance.versions
    assert "toy_format.PipeText, toy 1.0" in (root / "public" / "report.html").read_text(encoding="utf-8")


@pytest.mark.heavy
def test_a_direct_run_needs_its_cells_and_says_that_it_cannot_see_how_they_are_read(follow, cli, tmp_path):
    root = run_of_pipes(tmp_path / "run")
    text = (root / "quorate.toml").read_text(encoding="utf-8")
    text = text.replace("[teachers]\ncount = 10\n", '[method]\nby = "direct"\nrounds = 3\n')
    (root / "quorate.toml").write_text(text, encoding="utf-8")
    names = "    def names(self, path):"
    cells = '    def cells(self, path):\n        return pl.read_csv(path, separator="|", infer_schema=False)\n\n'
    follow("A table format")
    code, _, said = cli("check", root)
    assert code == 4
    assert "PipeText does not say how one private row is read by itself" in " ".join(said.split())
    formats._BY_SUFFIX.pop(".pipes")
    del sys.modules["toy_format"]
    follow("A table format", (names, cells + names), declared=False)
    code, _, wrong = cli("run", root)
    assert code == 0, wrong
    (check,) = [each for each in read_facts(root).checks if each.code == "private rows"]
    assert check.outcome == "not covered"
    assert "toy_format.PipeText, toy 1.0" in check.evidence


@pytest.mark.parametrize(
    ("title", "group", "name", "use"),
    [
        ("A table format", FORMATS, "pipes", lambda folder: read_data(folder / "rows.pipes")),
        ("A store", STORES, "text", lambda folder: Ledger(f"text://{folder}/l.json", budget=Budget(1.0, 1e-5))),
        ("A command", COMMANDS_OF, "size", lambda folder: load(COMMANDS_OF, "size")),
    ],
)
def test_a_name_that_two_packages_declare_is_refused_and_both_are_named(follow, cli, tmp_path, title, group, name, use):
    module = follow(title)
    (tmp_path / "rows.pipes").write_text("a|b\n1|2\n", encoding="utf-8")
    use(tmp_path)
    formats._BY_SUFFIX.pop(".pipes", None)
    target = {"pipes": "PIPES", "text": "open_text", "size": "command"}[name]
    declare(Path(module.__file__).parent, "another-toy", {group: {name: f"{module.__name__}:{target}"}})
    with pytest.raises(InvalidParameter, match=f"packages another-toy and toy each declare '{name}'") as refusal:
        use(tmp_path)
    assert "\n" not in str(refusal.value)
    if name == "size":
        code, said, _ = cli("--help")
        assert code == 0
        assert "Of another-toy and toy: refused." in said
        code, _, said = cli("size", tmp_path)
        assert code == 2
        assert "another-toy and toy" in " ".join(said.split())


@pytest.mark.heavy
def test_a_command(follow, cli, tmp_path):
    assert "Say how large" not in cli("--help")[1]
    follow("A command")
    del sys.modules["toy_command"]
    code, said, _ = cli("--help")
    assert code == 0
    assert re.search(r"Commands of other packages:\n +size +Of the package toy\.", said)
    assert "toy_command" not in sys.modules  # names are listed without importing anything
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "labels.csv").write_text("row,label\n", encoding="utf-8")
    assert cli("size", tmp_path)[:2] == (0, "10 bytes may leave\n")
    assert "Say how large" in cli("size", "--help")[1]
    code, _, said = cli("size", tmp_path / "nowhere")
    assert code == 4
    assert "has published nothing yet" in said
    code, _, said = cli("sizes")
    assert code == 2
    assert 'did you mean "size"?' in said


def test_a_command_takes_the_place_of_none_of_quorates(follow, cli):
    place = Path(follow("A command").__file__).parent
    for name in ("run", "audit"):
        declare(place, "toy", {COMMANDS_OF: {name: "toy_command:command"}})
        code, said, _ = cli(name, "--help")
        assert code == 0
        assert "Say how large" not in said
        assert "other packages" not in cli("--help")[1]
    assert set(COMMANDS) >= {"run", "audit"}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("toy_command:Path", "is no click command, got type"),
        ("toy_command:nothing", "cannot be imported (AttributeError"),
        ("toy_nowhere:command", "cannot be imported (ModuleNotFoundError"),
    ],
)
def test_a_command_that_cannot_be_one_is_refused_in_one_line(follow, cli, target, said):
    declare(Path(follow("A command").__file__).parent, "toy", {COMMANDS_OF: {"size": target}})
    code, _, refusal = cli("size", "here")
    assert code == 2
    assert said in " ".join(refusal.split())
    assert "package toy" in " ".join(refusal.split())
    assert cli("--help")[0] == 0  # and what works goes on working

"""A small hospital: visits with numbers and words, whose table is private, and a pool that may be shown."""

import csv
import json
import shutil
import tomllib

import numpy as np
import polars as pl
import pytest

from quorate.cli import main
from quorate.direct import descend
from quorate.folder import audits
from quorate.folder.methods import execute, read_run
from quorate.ledger import Ledger

PUBLISHED = {"labels.csv", "guarantee.json", "facts.json", "model_card.md", "report.html", "student.skops"}
DIRECT = {"method.by": "direct", "data.n_records": 400, "method.rounds": 4}
AGE_AND_BMI = {"schema.age": [0, 120], "schema.bmi": [10, 60]}
WARD = {"schema.ward": ["north", "south", "west"]}
WITHOUT_POOL = {**DIRECT, "data.public": None, **AGE_AND_BMI, **WARD}
SETTINGS = {
    "data": {"private": "private.csv", "public": "public.csv", "label": "ill", "classes": ["no", "yes"]},
    "budget": {"epsilon": 4.0, "delta": 1e-5},
    "teachers": {"count": 12},
    "mechanism": {"queries": "all"},
    "run": {"n_jobs": 1, "allow_hopeless": True},  # small and noisy, to be quick; what is refused is tested by itself
}


def visits(n, seed):
    """Features of n visits, and whether each patient was ill."""
    rng = np.random.default_rng(seed)
    age, bmi = rng.integers(18, 95, n), np.round(rng.normal(26, 4, n), 3)
    ward = rng.choice(["north", "south", "west"], n)
    ill = (age - 55) / 18 + 1.2 * (ward == "west") + rng.normal(0, 0.6, n) > 0
    return pl.DataFrame({"age": age, "bmi": bmi, "ward": ward}), np.where(ill, "yes", "no").tolist()


def toml(settings):
    """Write settings as TOML; NaN and infinity come out as TOML spells them."""

    def value(each):
        if isinstance(each, bool):
            return str(each).lower()
        if isinstance(each, dict):
            return f"{{ {', '.join(f'{key} = {value(share)}' for key, share in each.items())} }}"
        if isinstance(each, list):
            return f"[{', '.join(map(value, each))}]"
        return f'"{each}"' if isinstance(each, str) else repr(each)

    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {value(each)}\n" for key, each in section.items())
        for name, section in settings.items()
    )


def write_run(root, n=400, m=150, **changes):
    """Write the folder of a run; `changes` are ``{"section.key": value}``, and a value of None drops the key."""
    root.mkdir()
    rows, ill = visits(n, seed=1)
    patients = [f"P{number % (n // 2):04d}" for number in range(n)]
    ids = [pl.Series("patient_id", patients)] if changes.get("data.unit") else []
    rows.with_columns(pl.Series("ill", ill), *ids).write_csv(root / "private.csv")
    visits(m, seed=2)[0].write_csv(root / "public.csv")
    shown, truth = visits(100, seed=3)
    shown.with_columns(pl.Series("ill", truth)).write_csv(root / "evaluation.csv")
    settings = {section: dict(keys) for section, keys in SETTINGS.items()}
    if changes.get("method.by") == "direct":  # which has no teachers
        settings = {section: settings[section] for section in ("data", "budget")}
    for place, value in changes.items():
        section, _, key = place.partition(".")
        settings.setdefault(section, {})[key] = value
        if value is None:
            del settings[section][key]
    (root / "quorate.toml").write_text(toml(settings), encoding="utf-8")
    assert "nan" in toml(settings) or tomllib.loads(toml(settings))
    return root


@pytest.fixture
def make_run(tmp_path):
    """Return ``make(name="run", n=400, m=150, **{"section.key": value})``; see :func:`write_run`."""
    return lambda name="run", n=400, m=150, **changes: write_run(tmp_path / name, n, m, **changes)


@pytest.fixture
def make_direct(make_run):
    """``make_run`` for the direct method, with four rounds and few public rows."""
    return lambda name="run", *, m=60, **changes: make_run(name, m=m, **{**DIRECT, **changes})


@pytest.fixture(scope="session")
def finished_runs(tmp_path_factory):
    """Return ``finished(**{"section.key": value})``: a run made once for all tests, which none of them may change."""
    made = {}

    def finished(**changes):
        key = json.dumps(changes, sort_keys=True)
        if key not in made:
            root = write_run(tmp_path_factory.mktemp("finished") / "run", **changes)
            run(root)
            made[key] = root
        return made[key]

    return finished


@pytest.fixture
def finished_run(finished_runs, tmp_path):
    """Return ``finished(**{"section.key": value})``: a finished run of this test's own, copied from one made before."""
    return lambda **changes: shutil.copytree(finished_runs(**changes), tmp_path / "run")


def run(root):
    """Make a run of any method, or make it again."""
    return execute(read_run(root), command="quorate run")


def labels(root):
    """Rows of the labels that a run has published."""
    with (root / "public" / "labels.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def entries(root):
    """Number of entries in a run's ledger, which is verified."""
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        return ledger.head.sequence


def history(root):
    """Entries of a run's ledger."""
    with Ledger(root / "ledger.db") as ledger:
        return ledger.export()


def charges(root):
    """Number of charges in a run's ledger; none where there is no ledger."""
    if not (root / "ledger.db").exists():
        return 0
    with Ledger(root / "ledger.db") as ledger:
        return len(ledger.reservations())


def spent_on(root):
    """What a run's ledger has spent, and its number of charges; every price of it is worked out again."""
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        return ledger.spent, len(ledger.reservations())


def stored(root, purpose="label"):
    """Answers of each block of a run that was charged once."""
    with Ledger(root / "ledger.db") as ledger:
        (reservation,) = ledger.reservations()
        return [block.answers for block in reservation.blocks(purpose)]


class Killed(BaseException):
    """Stands for the end of the process: nothing in the package may catch it and tidy up."""


def interrupted(*_, **__):
    """What stops a run where it is put in the place of something."""
    raise KeyboardInterrupt


def at_round(number, act):
    """What takes the place of `descend.release`: before the round of this number it does something."""
    release, rounds = descend.release, []

    def released(*given, **how):
        rounds.append(1)
        if len(rounds) == number:
            act()
        return release(*given, **how)

    return released


# Python that makes a direct run, whose process is killed in the round of a number: that, the folder and options.
KILLED_IN_A_ROUND = """
import os, signal, sys
from quorate.cli import main
from quorate.direct import descend

release, rounds = descend.release, []

def killed(*given, **how):
    rounds.append(1)
    if len(rounds) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return release(*given, **how)

descend.release = killed
main(["run", *sys.argv[2:]])
"""


def edit(root, old, new):
    """Put other words in place of some in a run's settings; return them as they were."""
    path = root / "quorate.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return text


@pytest.fixture
def small_shards(monkeypatch):
    """Four teachers and one unit show whether the shard audit is wired; what it catches is tested with its room."""
    monkeypatch.setattr(audits, "SHARD_ROWS", 48)
    monkeypatch.setattr(audits, "SHARD_UNITS", 1)


class Said(str):
    """What a command printed on a stream."""

    @property
    def words(self):
        """It in one line, wherever the terminal broke it."""
        return " ".join(self.split())


class Cli:
    """The command line, by the door that the console script uses."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, *arguments):
        """Return the exit code, and what was printed on either stream."""
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(each) for each in arguments])
        seen = self.capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, Said(seen.out), Said(seen.err)

    def json(self, *arguments):
        """Return what a command that succeeds says to programs."""
        return json.loads(self.ok(*arguments, "--json"))

    def ok(self, *arguments):
        """Return what a command prints that succeeds."""
        code, out, err = self(*arguments)
        assert code == 0, out + err
        return out

    def refused(self, code, *arguments):
        """Return what a command says that is refused with this code."""
        found, _, err = self(*arguments)
        assert found == code, err
        return err


@pytest.fixture
def cli(capsys):
    """The command line."""
    return Cli(capsys)

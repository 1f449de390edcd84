"""Small seeded runs in a folder, by the command line: each mechanism, each strategy."""

import contextlib
import csv
import io
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden.fits import CODES, POOL, X
from tests.golden.pinned import SEED, guarantee, lines, pinned

from quorate.accounting import Guarantee
from quorate.cli import main
from quorate.ledger import Ledger

SETTINGS = """
[data]
private = "private.csv"
public = "public.csv"
label = "ill"
classes = ["no", "yes"]
n_records = 240

[budget]
epsilon = 12.0
delta = 1e-5
{budget}

[teachers]
count = 12

[mechanism]
queries = {queries}
{mechanism}

[student]
{student}

[run]
n_jobs = 1
allow_hopeless = true
{run}
"""

MECHANISMS = {
    "auto": "online_answers = 3",
    "GaussianNoisyMax": "",
    "NoisyCounts": "",
    "LaplaceNoisyMax": "",
    "ConfidentNoisyMax": "threshold = 5.0",
    "InteractiveNoisyMax": "threshold = 5.0\nconfidence = 0.9",
    "DistanceToInstability": "",
    "Exponential": "",
    "PermuteAndFlip": "",
    "PrivatePrediction": "",
    "StableSparseVector": "cutoff = 3",
    "SoftLabel": "cutoff = 3\nbins = 3",
}
STRATEGIES = ("core-set", "k-means", "margin", "oracular-cal", "disagreement")


def write(root, *, mechanism="", queries='"all"', budget="", student="", run=f"unsafe_noise_seed = {SEED}"):
    """Write a folder that a run may start from."""
    root.mkdir(parents=True, exist_ok=True)
    for name, rows, labels in (("private", X, CODES % 2), ("public", POOL, None)):
        with (root / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["age", "bmi", "pulse", *([] if labels is None else ["ill"])])
            for i, row in enumerate(rows.tolist()):
                writer.writerow([*row, *([] if labels is None else [("no", "yes")[labels[i]]])])
    (root / "quorate.toml").write_text(
        SETTINGS.format(mechanism=mechanism, queries=queries, budget=budget, student=student, run=run), encoding="utf-8"
    )
    return root


def command(*arguments):
    """Run ``quorate`` in this process; return its exit code and what it printed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main([str(each) for each in arguments])
        except SystemExit as stop:
            return int(stop.code or 0), said.getvalue()
    return 0, said.getvalue()


def run(**settings):
    """Run ``quorate run`` in a fresh folder; return what it wrote."""
    with TemporaryDirectory() as place, pinned():
        root = write(Path(place) / "run", **settings)
        code, said = command("run", root, "--json")
        if code:
            raise AssertionError(said)
        with Ledger(root / "ledger.db") as book:
            kept = lines(book)
        promised = Guarantee.from_json((root / "public" / "guarantee.json").read_text(encoding="utf-8"))
        with (root / "public" / "labels.csv").open(encoding="utf-8", newline="") as file:
            labels = list(csv.reader(file))
        last = labels[0].index("guarantee")  # says in a sentence that the noise was seeded
        return {
            "guarantee": guarantee(promised),
            "ledger": kept,
            "released": {"labels": [",".join(row[:last]) for row in labels]},
        }


def cases():
    return {
        **{f"run, {name}": partial(run, mechanism=f'name = "{name}"\n{more}') for name, more in MECHANISMS.items()},
        **{
            f"run, strategy {name}": partial(
                run, mechanism=f'name = "GaussianNoisyMax"\nstrategy = "{name}"', queries="12"
            )
            for name in STRATEGIES
        },
        "run, zCDP": partial(run, budget='composition = "zcdp"', mechanism="online_answers = 2\nsigma = 9.0"),
    }

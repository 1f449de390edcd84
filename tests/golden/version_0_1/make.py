"""How the archives in this folder were made, with version 0.1 alone: ``python tests/golden/version_0_1/make.py``.

Small runs of synthetic people without a seed, each killed (SIGKILL) at another stage, and two that finished. Nothing
in them is secret: the rows are drawn here, and each run's key protects these rows only. They are not made anew: that
later versions go on with what version 0.1 left is what they are for.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

HERE = Path(__file__).parent
N, N_PUBLIC = 240, 150

SETTINGS = """
[data]
private = "private.csv"
public = "public.csv"
label = "ill"
classes = ["no", "yes"]
unit = "patient_id"
n_records = 120

[budget]
epsilon = 60.0
delta = 1e-5

[teachers]
count = 12

[mechanism]
{mechanism}

[run]
jobs = 1
"""

COUNTS = 'name = "NoisyCounts"\nqueries = "all"\nonline_answers = 3'
STREAM = 'name = "StableSparseVector"\nqueries = "all"\ncutoff = 12\nonline_answers = 3'
STRATEGY = 'name = "GaussianNoisyMax"\nqueries = 130\nstrategy = "margin"'

#: Name of a run: what it asks for, and where it was killed.
RUNS = {
    "before-teachers": (COUNTS, "teachers begin"),
    "after-teachers": (COUNTS, "saved teachers-00000"),
    "after-votes": (COUNTS, "saved votes"),
    "amid-labels": (COUNTS, "drawn 2"),
    "before-student": (COUNTS, "student begins"),
    "finished": (COUNTS, "never"),
    "amid-stream": (STREAM, "drawn 2"),
    "finished-stream": (STREAM, "never"),
    "amid-strategy": (STRATEGY, "drawn 5"),
}

KILLED = """
import os, signal, sys
from pathlib import Path
import quorate.run.journey as journey
from quorate.cli import main
from quorate.ledger import Reservation
from quorate.run.stages import FolderStages

point, drawn = sys.argv[1], []

def at(here):
    if here == point:
        os.kill(os.getpid(), signal.SIGKILL)

def before(function, here):
    def wrapped(*args, **how):
        at(here)
        return function(*args, **how)
    return wrapped

save, draw = FolderStages.save, Reservation.draw

def saving(self, stage, key, content):
    save(self, stage, key, content)
    at(f"saved {stage}")

def drawing(self, purpose, *args, **how):
    block = draw(self, purpose, *args, **how)
    if purpose == "label":
        drawn.append(block)
        at(f"drawn {len(drawn)}")
    return block

FolderStages.save, Reservation.draw = saving, drawing
journey.teachers = before(journey.teachers, "teachers begin")
journey.teach = before(journey.teach, "student begins")
main(["run", "run"])
"""


def people(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Lines of n visits, without and with what is to be learned."""
    rng = np.random.default_rng(seed)
    age, bmi = rng.integers(18, 95, n), np.round(rng.normal(26, 4, n), 1)
    ward = rng.choice(["north", "south", "west"], n)
    ill = (age - 55) / 18 + 1.2 * (ward == "west") + rng.normal(0, 0.3, n) > 0
    rows = [f"{age[i]},{bmi[i]},{ward[i]}" for i in range(n)]
    return rows, [f"{rows[i]},{'yes' if ill[i] else 'no'},P{i // 2:04d}" for i in range(n)]


def make(name: str, mechanism: str, point: str) -> None:
    """Make one run, and pack its folder."""
    with TemporaryDirectory() as place:
        root = Path(place, "run")
        root.mkdir()
        (root / "private.csv").write_text("\n".join(["age,bmi,ward,ill,patient_id", *people(N, 1)[1]]) + "\n")
        (root / "public.csv").write_text("\n".join(["age,bmi,ward", *people(N_PUBLIC, 2)[0]]) + "\n")
        (root / "new.csv").write_text("age,bmi,ward\n20,23.1,north\n90,26.4,west\n")
        (root / "quorate.toml").write_text(SETTINGS.format(mechanism=mechanism))
        with Path(place, "said").open("w") as said:
            process = subprocess.Popen(
                [sys.executable, "-c", KILLED, point], cwd=place, stdout=said, stderr=said, start_new_session=True
            )
            ended = process.wait()
            with contextlib.suppress(ProcessLookupError):  # the workers of a process that was killed
                os.killpg(process.pid, signal.SIGKILL)
        if ended != (0 if point == "never" else -signal.SIGKILL):
            raise RuntimeError(Path(place, "said").read_text())
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:xz") as archive:
            archive.add(root, arcname="run", filter=anonymous)
        (HERE / f"{name}.tar.xz").write_bytes(packed.getvalue())
        print(name, len(packed.getvalue()), sorted(path.name for path in root.rglob("*")))


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out whose files they were."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    if version("quorate") != "0.1.0":
        sys.exit("these are runs of version 0.1.0, and are not made with another")
    os.environ.setdefault("COLUMNS", "80")
    for name, (mechanism, point) in RUNS.items():
        make(name, mechanism, point)
    (HERE / "versions.txt").write_text("".join(f"{name} {version(name)}\n" for name in ("scikit-learn", "numpy")))

"""How the archives in this folder were made, in the main before a relation could be chosen: runs and fits, killed.

``python tests/golden/version_0_2_dev0/make.py`` with that version alone. Nothing in them is secret: the rows are drawn
here, and each key protects these rows only. They are not made anew: that later versions go on with what was begun is
what they are for.
"""

import contextlib
import inspect
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

HERE = Path(__file__).parent
N, N_PUBLIC = 240, 60

SETTINGS = """
[data]
private = "private.csv"
public = "public.csv"
label = "ill"
classes = ["no", "yes"]
{data}

[budget]
epsilon = {epsilon}
delta = 1e-5

[method]
{method}

[run]
{run}
"""
DIRECT = 'by = "direct"\nrounds = 5\nfeature_map = "linear"'
DECLARED = "n_records = 240"
VOTES = 'by = "teachers"\n[teachers]\ncount = 12\n[mechanism]\nname = "NoisyCounts"\nqueries = "all"'

ALONE = "jobs = 1\nallow_hopeless = true"
STRATEGY = (
    'by = "teachers"\n[teachers]\ncount = 12\n[mechanism]\nname = "GaussianNoisyMax"\nqueries = 40\nstrategy = "margin"'
)
COMMAND = VOTES.replace("count = 12", 'count = 12\ncommand = ["python3", "teach.py"]')
ADDED = f'{DIRECT}\nneighbours = "add-or-remove"'
TEACH = """import csv
import sys

train, questions, votes = sys.argv[1:]
rows = list(csv.reader(open(train)))[1:]
with open(votes, "w") as file:
    for question in list(csv.reader(open(questions)))[1:]:
        nearest = min(rows, key=lambda row: abs(float(row[0]) - float(question[0])))
        file.write(nearest[-1] + "\\n")
"""

#: Name of a run: what it asks for, and the number of the block that it was killed at.
RUNS = {
    "direct-run": ({"data": DECLARED, "epsilon": 1.0, "method": DIRECT, "run": ""}, 3),
    "direct-run-read": ({"data": "", "epsilon": 1.0, "method": DIRECT, "run": ""}, 3),
    "votes-run": ({"data": DECLARED, "epsilon": 12.0, "method": VOTES, "run": ALONE}, 1),
    "votes-strategy": ({"data": DECLARED, "epsilon": 12.0, "method": STRATEGY, "run": ALONE}, 2),
    "votes-command": ({"data": DECLARED, "epsilon": 12.0, "method": COMMAND, "run": ALONE}, 1),
}

#: The same, of runs that state a relation: begun by the code that asked for one first.
STATED = {"direct-relation": ({"data": DECLARED, "epsilon": 1.0, "method": ADDED, "run": ""}, 3)}
#: The same, of a run that left its feature map to the package, which then took "both" for tables with numbers.
BY_DEFAULT = {
    "direct-default-map": ({"data": DECLARED, "epsilon": 1.0, "method": 'by = "direct"\nrounds = 5', "run": ""}, 3)
}

#: The same, of a run that said nothing but what its data and its budget are: by votes, of logistic teachers.
SAYS_NOTHING = {"votes-by-default": ({"data": DECLARED, "epsilon": 12.0, "method": "", "run": ""}, 1)}

#: A finished run that was served: what was told stands in ``told.json``, with the key that asked.
SERVED = {
    "data": DECLARED,
    "epsilon": 12.0,
    "method": 'by = "votes"\n[teachers]\nmodel = "logistic"\ncount = 12\n'
    '[mechanism]\nname = "GaussianNoisyMax"\nqueries = 40\nonline_answers = 8',
    "run": "n_jobs = 1\nallow_hopeless = true",
}
ASKED = [{"age": age, "bmi": 24.5, "ward": "west"} for age in (20, 55, 90)]

AT_A_BLOCK = """
import os, signal, sys
from quorate.ledger import Reservation

draw, drawn = Reservation.draw, []

def drawing(self, *args, **how):
    block = draw(self, *args, **how)
    drawn.append(block)
    if len(drawn) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return block

Reservation.draw = drawing
"""
RUN = f"{AT_A_BLOCK}\nfrom quorate.cli import main\nmain(['run', 'run'])\n"
FIT = f"""{AT_A_BLOCK}
import numpy as np
import quorate
with np.load("run/rows.npz") as rows:
    X, y = rows["X"], rows["y"]
quorate.PrivateLogisticRegression(
    classes=[0, 1], epsilon=1.0, delta=1e-5, rounds=5, n_records=240, ledger="run/ledger.db"
).fit(X, y)
"""
#: Ids of units, and whether they read the same since what an id says is one table for every type.
IDS = {
    "direct-fit-ids": ["P-7", 12, True, date(2024, 3, 1), "12.5"],
    "direct-fit-ids-read-otherwise": ["P-7", " 12", "1.0", True, date(2024, 3, 1)],
}


def people(n, seed):
    """Lines of n visits, without and with what is to be learned."""
    rng = np.random.default_rng(seed)
    age, bmi = rng.integers(18, 95, n), np.round(rng.normal(26, 4, n), 1)
    ward = rng.choice(["north", "south", "west"], n)
    ill = (age - 55) / 18 + 1.2 * (ward == "west") + rng.normal(0, 0.3, n) > 0
    rows = [f"{age[i]},{bmi[i]},{ward[i]}" for i in range(n)]
    return rows, [f"{rows[i]},{'yes' if ill[i] else 'no'}" for i in range(n)]


def folder(root, settings):
    """Write what a run is made from."""
    (root / "private.csv").write_text("\n".join(["age,bmi,ward,ill", *people(N, 1)[1]]) + "\n")
    (root / "public.csv").write_text("\n".join(["age,bmi,ward", *people(N_PUBLIC, 2)[0]]) + "\n")
    (root / "quorate.toml").write_text(SETTINGS.format(**settings))
    if settings["method"] == COMMAND:
        (root / "teach.py").write_text(TEACH)


def with_ids(ids):
    """Return the script of the fit whose rows are of five units in turn."""
    grouped = FIT.replace("n_records=240", "n_records=5").replace("fit(X, y)", f"fit(X, y, groups={ids!r} * 48)")
    return f"import datetime\n{grouped}"


def numbers(root):
    """Write rows of numbers, which need no pool: their plan has the same bits everywhere."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3))
    np.savez_compressed(root / "rows.npz", X=X, y=(X @ [1.0, -2.0, 0.5] > 0).astype(np.int64))


def pack(name, place, script, block):
    """Run a script that ends at a block, and pack the folder that it leaves."""
    with Path(place, "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(block)], cwd=place, stdout=said, stderr=said, start_new_session=True
        )
        ended = process.wait()
        with contextlib.suppress(ProcessLookupError):  # the workers of a process that was killed
            os.killpg(process.pid, signal.SIGKILL)
    if ended != -signal.SIGKILL:
        raise RuntimeError(Path(place, "said").read_text())
    archived(name, place)


def archived(name, place):
    """Pack the folder of a run."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        archive.add(place / "run", arcname="run", filter=anonymous)
    (HERE / f"{name}.tar.xz").write_bytes(packed.getvalue())
    print(name, len(packed.getvalue()), sorted(path.name for path in (place / "run").rglob("*")))


def serve(place):
    """Run, serve, ask for three points, and stop; note what was told."""
    root, command = place / "run", [sys.executable, "-c", "from quorate.cli import main; main()"]
    folder(root, SERVED)
    subprocess.run([*command, "run", "run"], cwd=place, check=True, stdout=subprocess.DEVNULL)
    create = [*command, "keys", "create", "run", "--name", "ward 7", "--scope", "ask", "--quota", "6"]
    token = subprocess.run(create, cwd=place, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    with Path(place, "said").open("w") as said:
        process = subprocess.Popen([*command, "serve", "run", "--port", "8479"], cwd=place, stdout=said, stderr=said)
    while '"event": "listening"' not in Path(place, "said").read_text():
        time.sleep(0.1)
    from quorate.service import Client

    with Client("http://127.0.0.1:8479", token) as client:
        told = [client.label(row) for row in ASKED]
    process.send_signal(signal.SIGTERM)
    process.wait()
    answers = [[answer.label, answer.status] for answer in told]
    (root / "told.json").write_text(json.dumps({"token": token, "rows": ASKED, "answers": answers}))


def anonymous(member):
    """Leave out whose files they were."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    if sys.argv[1:] == ["served"]:  # by the version before a standby could take over
        with TemporaryDirectory() as place:
            Path(place, "run").mkdir()
            serve(Path(place))
            archived("served", Path(place))
        sys.exit()
    from quorate import PrivateLogisticRegression

    stated = "neighbours" in inspect.signature(PrivateLogisticRegression).parameters
    for name, (settings, block) in ({**STATED, **BY_DEFAULT, **SAYS_NOTHING} if stated else RUNS).items():
        with TemporaryDirectory() as place:
            Path(place, "run").mkdir()
            folder(Path(place, "run"), settings)
            pack(name, Path(place), RUN, block)
    if stated:
        sys.exit("the others were begun before a relation could be chosen, and are not made with another version")
    with TemporaryDirectory() as place:
        Path(place, "run").mkdir()
        numbers(Path(place, "run"))
        pack("direct-fit", Path(place), FIT, 3)
    for name, ids in IDS.items():
        with TemporaryDirectory() as place:
            Path(place, "run").mkdir()
            numbers(Path(place, "run"))
            pack(name, Path(place), with_ids(ids), 3)
    (HERE / "versions.txt").write_text("".join(f"{name} {version(name)}\n" for name in ("scikit-learn", "numpy")))

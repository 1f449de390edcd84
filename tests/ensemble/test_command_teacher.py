"""Teachers that are commands: the protocol, what is abstained from, what is ended, what is left and what leaks."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from quorate import PrivateClassifier, PublicPool
from quorate.ensemble import (
    CommandTeacher,
    Ensemble,
    as_teacher,
    count_votes,
    dump_voters,
    load_voters,
    train_teachers,
    with_classes,
)
from quorate.ensemble.teachers.command import process
from quorate.ensemble.teachers.command.files import CommandFailed, read_votes, spellings
from quorate.ensemble.teachers.command.process import last_words
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.release.model_digest import described
from quorate.types import Secret

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(np.int64)
QUESTIONS = np.array([[2.0, 0.0], [-2.0, 0.0], [1.5, 1.0]])

# The commonest label of the shard, for every question; a shell script, since it starts quickly.
COMMONEST = """
label=$(tail -n +2 "$1" | sed 's/.*,//' | sort | uniq -c | sort -rn | head -n 1 | sed 's/^ *[0-9]* //')
tail -n +2 "$2" | while read -r line; do echo "$label"; done > "$3"
"""
# The same in two steps.
IN_TWO_STEPS = """
case $1 in
  train) tail -n +2 "$2" | sed 's/.*,//' | sort | uniq -c | sort -rn | head -n 1 | sed 's/^ *[0-9]* //' > "$3/label" ;;
  vote) tail -n +2 "$3" | while read -r line; do cat "$2/label"; done > "$4" ;;
esac
"""


def script(folder: Path, text: str, name: str = "teach.sh") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def teacher(folder: Path, text: str, *, strict: bool = False, **more) -> CommandTeacher:
    script(folder, text)
    place = folder / "place"
    place.mkdir(exist_ok=True)
    made = CommandTeacher(["sh", "teach.sh"], folder=folder, place=place, classes=["no", "yes"], **more)
    return made.on_public_rows() if strict else made


def trained(made: CommandTeacher, n: int, *, n_jobs: int = 1) -> Ensemble:
    shards = Secret(np.arange(60) % n)
    return train_teachers(made, X, Y, shards, n_teachers=n, n_classes=2, key=Secret(bytes(32)), n_jobs=n_jobs)


def left(folder: Path) -> list[str]:
    return [path.name for path in (folder / "place").iterdir()]


def is_gone(pid: int) -> bool:
    """Whether a process is dead, or about to be buried by whoever started it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def within_seconds(wanted) -> bool:
    for _ in range(200):
        if wanted():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(("text", "keeps_model"), [(COMMONEST, False), (IN_TWO_STEPS, True)])
def test_both_protocols_vote_and_vote_again(tmp_path, text, keeps_model):
    made = teacher(tmp_path, text, keeps_model=keeps_model)
    voter = made.train(X[:9], np.array([1] * 6 + [0] * 3), 5)

    assert voter.vote(QUESTIONS).tolist() == [1, 1, 1]
    assert voter.vote(QUESTIONS[:1]).tolist() == [1]
    assert voter.vote(QUESTIONS[:0]).tolist() == []
    assert left(tmp_path) == []


def test_a_shard_without_rows_abstains_without_a_call(tmp_path):
    voter = teacher(tmp_path, "touch called").train(X[:0], Y[:0], 5)

    assert voter.vote(QUESTIONS).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("files", ["csv", "parquet"])
def test_what_stands_in_the_files(tmp_path, files):
    made = teacher(tmp_path, 'cp "$2" "$3/seen"', keeps_model=True, files=files)
    table = pl.DataFrame(
        {"word": ["a, b", None, 'c"'], "n": [1, 2, 3], "x": [0.5, float("nan"), 1e-300], "label": [1] * 3}
    )
    seen = made.train(table, np.array([0, 1, 1]), 5).model["seen"]
    (tmp_path / "seen").write_bytes(seen)
    read = pl.read_csv(tmp_path / "seen") if files == "csv" else pl.read_parquet(tmp_path / "seen")

    assert read.columns == ["word", "n", "x", "label", "label_"]
    assert read["label_"].to_list() == ["no", "yes", "yes"]
    assert read["word"].to_list() == ["a, b", None, 'c"']
    assert read["x"].to_list() == [0.5, None, 1e-300]


def test_arrays_and_pandas_frames_have_headings_too(tmp_path):
    import pandas as pd

    made = teacher(tmp_path, 'head -n 1 "$2" > "$3/head"', keeps_model=True)

    assert made.train(X[:2], Y[:2], 1).model["head"] == b"x0,x1,label\n"
    assert made.train(pd.DataFrame({"a": ["x", None], "b": [1.0, 2.0]}), Y[:2], 1).model["head"] == b"a,b,label\n"


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("written", "codes"),
    [
        (b"yes\nno\n", [1, 0]),
        (b"yes\r\nno", [1, 0]),
        (b'"yes"\n\n', [1, -1]),
        (b"\n\n", [-1, -1]),
        (b"perhaps\nno\n", [-1, 0]),
        (b"yes\x00\nno\n", [-1, 0]),
    ],
)
def test_what_counts_as_a_vote(tmp_path, written, codes):
    path = tmp_path / "votes"
    path.write_bytes(written)
    assert read_votes(path, 2, spellings(["no", "yes"])).tolist() == codes


def link(path):
    path.with_name("elsewhere").write_text("yes\nno\n")
    path.symlink_to(path.with_name("elsewhere"))


TEXTS = [b"yes\n", b"yes\nno\nno\n", b"label\nyes\nno\n", b"yes\n\xff\n", b"", b"y" * 10_000]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("left", [*TEXTS, Path.mkdir, os.mkfifo, link, lambda path: None])
def test_what_is_no_file_with_a_list_of_as_many_votes_is_a_failed_call(tmp_path, left):
    path = tmp_path / "votes"
    path.write_bytes(left) if isinstance(left, bytes) else left(path)
    with pytest.raises(CommandFailed):
        read_votes(path, 2, spellings(["no", "yes"]))


def test_codes_where_no_classes_are_declared(tmp_path):
    (tmp_path / "votes").write_text("1\n-1\n²\n")
    assert read_votes(tmp_path / "votes", 3, None).tolist() == [1, -1, -1]


@pytest.mark.heavy
@pytest.mark.parametrize(
    "text",
    [
        "exit 3",
        "kill -SEGV $$",
        "sleep 600",
        "while :; do :; done",
        'trap "" TERM INT HUP; while :; do sleep 1; done',
        'mkdir "$3"; chmod 000 .',
        'head -c 2000000 /dev/zero > "$3"',
    ],
    ids=["exit", "crash", "sleep", "busy", "deaf", "unreadable", "rubbish"],
)
def test_a_command_that_fails_or_is_late_abstains_and_leaves_nothing(tmp_path, text):
    ensemble = trained(teacher(tmp_path, text, timeout=0.3), 1)

    assert count_votes(ensemble, QUESTIONS).reveal().sum() == 0
    assert left(tmp_path) == []


# What a call may lack for its fellows' sake: two of them do not fit side by side.
NO_ROOM_FOR_TWO = """
if ! mkdir {0}/taken 2> {0}/null; then echo > {0}/met; exit 1; fi
trap 'rmdir {0}/taken' EXIT
times=0
while [ ! -e {0}/met ] && [ $times -lt 100 ]; do sleep 0.05; times=$((times + 1)); done
"""


@pytest.mark.heavy
@pytest.mark.parametrize(("text", "keeps_model"), [(COMMONEST, False), (IN_TWO_STEPS, True)])
def test_what_fails_while_a_fellow_runs_is_done_again_alone(tmp_path, text, keeps_model):
    made = teacher(tmp_path, NO_ROOM_FOR_TWO.format(tmp_path) + text, keeps_model=keeps_model)
    ensemble = trained(made, 4, n_jobs=2)

    assert count_votes(ensemble, QUESTIONS, n_jobs=2).reveal().sum() == 4 * len(QUESTIONS)
    assert (tmp_path / "met").exists()  # one did fail


def test_only_what_is_late_is_no_call_to_be_done_again(tmp_path):
    """How long it takes is its own; all else may be a fellow's doing, and says so to whoever runs the teachers."""
    assert teacher(tmp_path, "sleep 600", timeout=0.3).train(X[:9], Y[:9], 5).vote(QUESTIONS).tolist() == [-1, -1, -1]
    with pytest.raises(MemoryError):
        teacher(tmp_path, "exit 3").train(X[:9], Y[:9], 5).vote(QUESTIONS)
    with pytest.raises(MemoryError):
        teacher(tmp_path, "exit 3", keeps_model=True).train(X[:9], Y[:9], 5)
    with pytest.raises(MemoryError):
        teacher(tmp_path, "chmod 000 .; true > votes").train(X[:9], Y[:9], 5).vote(QUESTIONS)


@pytest.mark.parametrize("start", ["sleep {} &", "setsid sleep {} &", "(setsid sleep {} &) &"])
def test_a_child_that_outlives_its_command_is_ended(tmp_path, start):
    seconds = f"7{os.getpid()}"  # by which it is known
    made = teacher(tmp_path, start.format(seconds) + "\nsleep 0.2\n" + COMMONEST)

    assert made.train(X[:9], np.ones(9, dtype=np.int64), 5).vote(QUESTIONS).tolist() == [1, 1, 1]
    assert within_seconds(lambda: not runs("sleep", seconds))


def test_that_test_would_see_it():
    seconds = f"8{os.getpid()}"
    with subprocess.Popen(["sleep", seconds]) as sleeper:
        assert within_seconds(lambda: runs("sleep", seconds))
        sleeper.kill()


def runs(*words: str) -> bool:
    """Whether a process with these words runs."""
    wanted = "\0".join((*words, "")).encode()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (path / "cmdline").read_bytes() == wanted and not is_gone(int(path.name)):
                return True
    return False


def test_one_slow_teacher_makes_no_other_late(monkeypatch):
    """Time that it waits for its turn is not its own; a clock on the wall would count it."""

    class Waits:
        pid = 1

        def __init__(self, turns):
            self.turns = turns

        def wait(self, seconds):
            self.turns -= 1
            if self.turns > 0:
                raise subprocess.TimeoutExpired("it", seconds)

    clock = iter(range(0, 100_000, 10))  # ten seconds pass between two looks
    monkeypatch.setattr(process.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(process, "_used", lambda session: process._Used(0.2, wants_a_turn=True))
    assert process._wait(Waits(50), 1.0)
    monkeypatch.setattr(process, "_used", lambda session: process._Used(0.2, wants_a_turn=False))
    assert not process._wait(Waits(50), 1.0)
    monkeypatch.setattr(process, "_used", lambda session: process._Used(1.2, wants_a_turn=True))
    assert not process._wait(Waits(50), 1.0)


IN_A_THREAD = "t = threading.Thread(target=lambda: any(False for _ in iter(int, 1))); t.start(); t.join()"
BUSY = {
    "child": ["sh", "-c", "(while :; do :; done) & wait"],
    "thread": [sys.executable, "-S", "-E", "-c", f"import threading; {IN_A_THREAD}"],
}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the kernel shows no processes and threads here")
@pytest.mark.parametrize("where", ["child", pytest.param("thread", marks=pytest.mark.heavy)])
def test_cpu_time_of_all_its_processes_and_threads_is_counted_and_one_that_waits_for_them_wants_a_turn(where):
    with subprocess.Popen(BUSY[where], start_new_session=True) as busy:
        try:
            assert within_seconds(lambda: (process._used(busy.pid) or (0, 0))[0] > 0.5)
            looks = []
            for _ in range(10):
                looks.append(process._used(busy.pid).wants_a_turn)
                time.sleep(0.01)
            assert all(looks)
        finally:
            os.killpg(busy.pid, signal.SIGKILL)


@pytest.mark.heavy
def test_a_caller_that_is_killed_leaves_no_folder_and_no_process(tmp_path):
    teacher(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 600")
    program = f"""
import numpy as np
from quorate.ensemble import CommandTeacher
place = {str(tmp_path / "place")!r}
made = CommandTeacher(["sh", "teach.sh"], folder={str(tmp_path)!r}, place=place, classes=["a", "b"])
made.train(np.zeros((3, 1)), np.array([0, 1, 1]), 5).vote(np.zeros((1, 1)))
"""
    with subprocess.Popen([sys.executable, "-c", program]) as caller:
        pid = tmp_path / "pid"
        assert within_seconds(lambda: pid.exists() and pid.read_text().strip())
        assert len(left(tmp_path)) == 1
        caller.kill()
    assert within_seconds(lambda: left(tmp_path) == [])
    assert within_seconds(lambda: is_gone(int(pid.read_text())))


def test_its_environment_is_the_declared_one(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    monkeypatch.setenv("R_LIBS", "/libraries")
    text = 'env > "$3/env"; pwd > "$3/pwd"; stat -c %a . > "$3/mode"'
    seen = teacher(tmp_path, text, keeps_model=True, environment=["R_LIBS"]).train(X[:2], Y[:2], 77).model
    names = dict(line.split("=", 1) for line in seen["env"].decode().splitlines() if "=" in line)

    assert "SECRET_TOKEN" not in names
    assert names["R_LIBS"] == "/libraries"
    assert names["QUORATE_SEED"] == "77"
    assert names["HOME"].startswith(seen["pwd"].decode().strip())
    assert names["OMP_NUM_THREADS"] == "1"
    assert seen["mode"] == b"700\n"
    assert Path(seen["pwd"].decode().strip()).parent == (tmp_path / "place").resolve()


def test_no_shell_reads_its_words(tmp_path):
    made = CommandTeacher(["sh", "-c", 'echo "$0" > "$3/word"', "$(touch x); `id`"], keeps_model=True, folder=tmp_path)

    assert made.train(X[:2], Y[:2], 1).model["word"] == b"$(touch x); `id`\n"


@pytest.mark.heavy
def test_what_it_prints_is_heard_on_public_rows_alone(tmp_path, capfd):
    text = 'cat "$1"; cat "$1" >&2; exit 1'
    ensemble = trained(teacher(tmp_path, text), 3)
    assert count_votes(ensemble, QUESTIONS).reveal().sum() == 0
    out = capfd.readouterr()
    assert out.out + out.err == ""

    with pytest.raises(CommandFailed, match=r"exit code 1; it printed: .*yes"):
        teacher(tmp_path, text, strict=True).train(X, Y, 1).vote(QUESTIONS)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "exit 7",
            "it ended with exit code 7; it printed nothing. Mend it; it is called with the files TRAIN, QUESTIONS",
        ),
        ("kill -KILL $$", "signal 9 ended it"),
        (
            "echo slow; sleep 600",
            "not done after timeout = 0.3 seconds of its own time; it printed: slow. Raise timeout",
        ),
        ("echo so >&2", "it wrote no file of votes; it printed: so"),
        ('echo yes > "$3"', "it wrote 1 votes for 200 questions"),
        ('tail -n +2 "$2" | sed s/.*/maybe/ > "$3"', "line 1 of its votes is 'maybe'; expected one of no, yes"),
    ],
)
def test_a_command_that_fails_on_public_rows_is_refused_before_anything_is_charged(tmp_path, text, said):
    timeout = 0.3 if "sleep" in text else 60.0  # what is not late must not be late on a busy machine
    clf = PrivateClassifier(
        teacher(tmp_path, text, timeout=timeout), classes=["no", "yes"], epsilon=1.0, delta=1e-3, n_teachers=4
    )
    with pytest.raises(InvalidParameter) as refused:
        clf.fit(X, np.array(["no", "yes"])[Y], public=PublicPool(RNG.normal(size=(60, 2))))
    assert said in str(refused.value)
    assert str(refused.value).startswith("the command sh teach.sh fails on public rows: ")
    assert not any(word in str(refused.value) for word in ("CommandTeacher", "Command", "(numpy)", "fit and predict"))
    assert left(tmp_path) == []


def refused(made: CommandTeacher, rows=X) -> str:
    with pytest.raises((CommandFailed, OSError)) as failed:
        made.on_public_rows().train(rows, Y, 1).vote(rows)
    return str(made.refusal(failed.value))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (b"", ""),
        (b"one\n\n  two  words\n", "one / two words"),
        (b"  load(path)\n  ~~~~^^^^^^\nKeyError: 'no such column'\n", "load(path) / KeyError: 'no such column'"),
        (b"\x1b[31mError:\x1b[0m no\tcolumn\x07\n", "Error: no column"),
        (b"first " * 60 + b"\nthe cause\n", "first " * 38 + "… / the cause"),
        (b"Error in fit: " + b"long " * 60 + b"\nhalted", "Error in fit: " + "long " * 43 + "… / halted"),
        (b"a\n" * 50 + b"word " * 47 + b"end", "… / " + "word " * 47 + "end"),
        (b"x" * 300, "x" * 240 + " …"),
        (b"\n".join(b"line" for _ in range(30_000)) + b"\nlast", "… / " + "line / " * 33 + "last"),
        (b"ab" * 50_000 + b" cause of it", "… / cause of it"),
    ],
)
def test_what_is_shown_of_many_words_is_whole_lines_and_says_where_some_are_left_out(tmp_path, printed, shown):
    (tmp_path / "printed").write_bytes(printed)
    assert last_words(tmp_path / "printed") == shown


def test_a_file_that_it_names_and_that_is_not_there_is_named(tmp_path):
    (tmp_path / "nb.awk").touch()
    told = refused(CommandTeacher("sh -c 'exit 2' nbb.awk", folder=tmp_path))
    assert "exit code 2" in told
    assert f"It names 'nbb.awk', and there is no such file in {tmp_path}; did you mean 'nb.awk'? Mend it" in told
    assert "It names" not in refused(CommandTeacher("sh -c 'exit 2' nb.awk 0.5 --out=a.txt", folder=tmp_path))


def test_what_fails_on_public_rows_is_told_in_words(tmp_path):
    told = refused(CommandTeacher(["sh", "-c", "exit 1", "|", "sort"], folder=tmp_path))
    assert "No shell reads its words, and '|' is one of them. Mend it" in told
    told = refused(teacher(tmp_path, "exit 1", keeps_model=True))
    assert told.endswith("it is called with train TRAIN MODEL, and with vote MODEL QUESTIONS VOTES")
    told = refused(teacher(tmp_path, COMMONEST), scipy.sparse.csr_array(X))
    assert told.endswith("and these rows are sparse. Give a dense table, or a Pipeline that takes sparse rows")
    script(tmp_path, "words", "teach").chmod(0o755)
    told = refused(CommandTeacher(["./teach"], folder=tmp_path))
    assert "fails on public rows: it cannot be started, or its files not be written: Exec format error. Mend" in told


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("sh teach.sh | sort", "'|' is a word of the program's: write what a shell is to do into a script"),
        ("sh teach.sh > log", "'>' is a word"),
        ("sh a.sh && sh b.sh", "'&&' is a word"),
        ("sh a.sh; sh b.sh", "';' is a word"),
        ("sh `which teach`", "'`' is a word"),
        ("sh $(which teach)", "'$(' is a word"),
        ("sh $HOME/teach.sh", "'$HOME' stays as it is: write what it stands for"),
        ("~/bin/teach", "'~' stays as it is"),
    ],
)
def test_what_only_a_shell_would_read_is_refused_in_a_text(command, sign):
    with pytest.raises(InvalidParameter) as refused:
        CommandTeacher(command)
    assert str(refused.value).startswith(f"command is {command!r}; no shell reads its words, so {sign}")


@pytest.mark.parametrize(
    "command", ["sh -c 'a | b > $1; c'", 'sh -c "a | b > $1; c"', r"sh --sep=\| \; it\'s", ["sh", "-F", "|"]]
)
def test_in_quotes_or_a_list_it_is_a_word(command):
    assert CommandTeacher(command).command[0] == "sh"


def test_a_file_without_the_right_to_be_executed_is_told_from_one_that_is_not_there(tmp_path):
    script = tmp_path / "teach.pl"
    script.write_text("#!/usr/bin/perl\n")
    with pytest.raises(PreconditionFailed, match=r"is a file that may not be executed; .*chmod \+x"):
        CommandTeacher([str(script)])
    script.chmod(0o755)
    CommandTeacher([str(script)])


@pytest.mark.parametrize(
    ("command", "error", "said"),
    [
        ("", InvalidParameter, "command is ''"),
        ([], InvalidParameter, "expected a program and its arguments"),
        ("sh 'teach", InvalidParameter, "cannot be split: No closing quotation"),
        (["sh", 3], InvalidParameter, "command is"),
        ("Rscript-that-nobody-has teach.R", PreconditionFailed, "there is no program 'Rscript-that-nobody-has'"),
    ],
)
def test_a_wrong_command_is_refused(command, error, said):
    with pytest.raises(error, match=said):
        CommandTeacher(command)


def test_a_script_that_is_not_there_is_named_with_the_nearest_one(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "teach.R").touch()
    told = r"'src/tech\.R', and there is no such file in .*; did you mean 'src/teach\.R'"
    with pytest.raises(PreconditionFailed, match=told):
        CommandTeacher("sh src/tech.R", folder=tmp_path)
    with pytest.raises(PreconditionFailed, match=r"'other\.py'.*; correct its path"):
        CommandTeacher(["sh", "other.py"], folder=tmp_path)
    words = ["sh", "src/teach.R", "-c", "a line of code for teach.py", "--out=a.py", "nowhere.csv"]
    assert CommandTeacher(words, folder=tmp_path).command == tuple(words)


@pytest.mark.heavy
def test_one_process_a_teacher_and_the_same_votes_with_any_number_of_jobs(tmp_path):
    text = f'echo "$QUORATE_SEED" >> {tmp_path}/calls; rows=$(tail -n +2 "$2" | wc -l)\n' + COMMONEST
    made = teacher(tmp_path, text)
    counts = []
    for n_jobs in (1, 2):
        ensemble = trained(made, 5, n_jobs=n_jobs)
        counts.append(count_votes(ensemble, QUESTIONS, n_jobs=n_jobs).reveal().tolist())
        calls = (tmp_path / "calls").read_text().split()
        (tmp_path / "calls").unlink()
        assert len(calls) == len(set(calls)) == 5
    assert counts[0] == counts[1]
    assert np.sum(counts[0]) == 15


@pytest.mark.heavy
def test_a_model_folder_is_kept_and_asked_by_the_command_of_the_settings_alone(tmp_path):
    made = teacher(tmp_path, IN_TWO_STEPS, keeps_model=True)
    voters = Secret((made.train(X[:9], np.ones(9, dtype=np.int64), 5), made.train(X[:0], Y[:0], 6)))
    written = dump_voters(voters).reveal()
    asked = count_votes(Ensemble(load_voters(written, made), 2), QUESTIONS)

    assert asked.reveal().tolist() == [[0, 1]] * 3
    assert b"teach.sh" not in written
    with pytest.raises(PreconditionFailed):
        load_voters(written)
    assert dump_voters(Secret((teacher(tmp_path, COMMONEST).train(X, Y, 1),))) is None  # no copy of the shard is kept


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["../outside", "/tmp/outside"])
def test_a_path_that_leads_out_of_the_model_folder_is_not_written(tmp_path, name):
    made = teacher(tmp_path, IN_TWO_STEPS, keeps_model=True)
    voter = made.train(X[:9], Y[:9], 5)
    voter.model[name] = b"x"

    assert count_votes(Ensemble(Secret((voter,)), 2), QUESTIONS).reveal().sum() == 0
    assert not (tmp_path / "place" / "outside").exists()


@pytest.mark.heavy
def test_a_model_folder_with_a_link_in_it_is_an_abstention(tmp_path):
    ensemble = trained(teacher(tmp_path, 'ln -s /etc/passwd "$3/link"', keeps_model=True), 1)

    assert count_votes(ensemble, QUESTIONS).reveal().sum() == 0


def test_it_is_known_again_by_its_words_and_the_content_of_the_files_that_it_names(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    one, moved = teacher(here, COMMONEST), teacher(there, COMMONEST)
    other = teacher(there, COMMONEST + "# another one\n")

    assert described(one) == described(moved) != described(other)
    assert described(one) != described(teacher(here, COMMONEST, timeout=1.0))
    assert with_classes(one, ["no", "yes"]) is one  # it was made with some
    assert as_teacher(one) is one

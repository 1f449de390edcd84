"""Images as arrays and as files: pixels or patches by default, one size by public facts, no private file refused."""

import io
import json
import os
import sys
import threading
import tracemalloc
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits

from quorate import PrivateLogisticRegression, PublicPool, load
from quorate.data.images import ImageForm, private_images, public_images, read_image
from quorate.errors import PreconditionFailed
from quorate.folder import tables
from quorate.folder.methods import read_run
from quorate.run import usable_rows

pytestmark = pytest.mark.mostly_heavy

IMAGES, LABELS = load_digits(return_X_y=True)
KEPT = LABELS < 2
IMAGES = np.kron(IMAGES[KEPT].reshape(-1, 8, 8), np.ones((2, 2)))  # 16 × 16
LABELS = LABELS[KEPT]
N, M = 200, 100


def pgm(image):
    return b"P5\n# a comment\n%d %d\n255\n" % image.shape[::-1] + image.astype(np.uint8).tobytes()


def npy(image):
    held = io.BytesIO()
    np.save(held, image)
    return held.getvalue()


def by_pillow(kind):
    def written(image):
        image_module = pytest.importorskip("PIL.Image")
        held = io.BytesIO()
        image_module.fromarray(image.astype(np.uint8)).save(held, format=kind)
        return held.getvalue()

    return written


WRITERS = {"pgm": pgm, "npy": npy, "png": by_pillow("PNG"), "jpg": by_pillow("JPEG")}


@pytest.mark.several_fits
def test_a_private_image_of_another_size_is_left_out_and_changes_no_other():
    given = {"classes": [0, 1], "epsilon": 8.0, "delta": 1e-5, "unsafe_noise_seed": 1, "n_records": N}
    pool = PublicPool(IMAGES[N : N + M])
    one = PrivateLogisticRegression(**given).fit([*IMAGES[:50], IMAGES[50][:8]], LABELS[:51], public=pool)
    other = PrivateLogisticRegression(**given).fit(IMAGES[:50], LABELS[:50], public=pool)
    assert (one.coef_ == other.coef_).all()  # with the same noise
    assert one.predict([*IMAGES[:30]]).tolist() == one.predict(IMAGES[:30]).tolist()


@pytest.mark.quick
def test_colours_are_pixels():
    pool = PublicPool(np.random.default_rng(0).random((30, 12, 12, 3)))
    assert (pool.image_shape, pool.width) == ((12, 12, 3), 432)


@pytest.mark.quick
@pytest.mark.parametrize("kind", WRITERS)
def test_each_kind_of_file_is_read(kind, tmp_path):
    (tmp_path / f"a.{kind}").write_bytes(WRITERS[kind](IMAGES[0]))
    found = read_image(tmp_path, f"a.{kind}")
    assert found is not None
    assert np.abs(found - IMAGES[0]).max() <= (0 if kind != "jpg" else 12)


def folder(root, kind="pgm"):
    (root / "scans").mkdir()
    for i, image in enumerate(IMAGES[:360]):
        (root / "scans" / f"{i}.{kind}").write_bytes(WRITERS[kind](image))
    names, ill = [f"{i}.{kind}" for i in range(360)], ["no" if label else "yes" for label in LABELS[:360]]
    rows = pl.DataFrame({"file": names, "ill": ill})
    rows[:N].write_csv(root / "private.csv")
    rows[N : N + M].drop("ill").write_csv(root / "public.csv")
    rows[N + M :].write_csv(root / "evaluation.csv")


def test_images_that_memory_does_not_hold_give_the_integers_of_those_that_it_does(make_run, monkeypatch):
    root = make_run(**{"data.images": "scans", **DIRECT, "run.unsafe_noise_seed": 5})
    folder(root)
    (root / "scans" / "3.pgm").write_bytes(b"rubbish")
    (root / "scans" / "4.pgm").unlink()
    held = read_run(root).task
    monkeypatch.setattr(tables, "CELLS_IN_MEMORY", 0)
    monkeypatch.setattr(usable_rows, "CELLS", 256 * 100)
    parted = read_run(root).task
    assert parted.fingerprint == held.fingerprint
    weights = held.plan.start + 1.0
    sums = [task.units().reveal().summing(task.plan.grid)(weights) for task in (held, parted)]
    assert (sums[0] == sums[1]).all()
    (root / "scans" / "7.pgm").write_bytes(pgm(IMAGES[8]))
    with pytest.raises(PreconditionFailed, match=r"an image in .*scans was changed while it was read; start again"):
        parted.units()


def zipped():
    held = io.BytesIO()
    np.savez(held, IMAGES[0])
    return held.getvalue()


def eps(image):
    """A picture that Pillow would start a program for."""
    return b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 16 16\n%%EndComments\n%%EOF\n"


UNUSABLE = {
    "gone": ("gone.pgm", None),
    "rubbish": ("rubbish.pgm", b"P5 9 9"),
    "another size": ("small.pgm", pgm(IMAGES[0][:8])),
    "no numbers": ("words.npy", npy(np.array(["a"]))),
    "an archive": ("z.npy", zipped()),
    "NUL in a name": ("a\0b.pgm", None),
    "a circle of links": ("circle.pgm", None),
    "half a character": ("\ud800.pgm", None),
    "a name too long": ("x" * 5000 + ".pgm", None),
    "a folder": (".npy/..", None),
    "too large for a float": ("long.npy", npy(np.full((16, 16), np.longdouble("1e400")))),
    "a mean too large": ("colours.npy", npy(np.full((16, 16, 3), 1e308))),
    "complex": ("complex.npy", npy(IMAGES[0] + 1j)),
    "a program's": ("eps.png", eps(IMAGES[0])),
    "text": ("text.npy", b"\x93NUMPY\x01\0\xff\xff{"),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("what", UNUSABLE)
def test_a_private_name_or_file_of_any_kind_is_an_unusable_row_without_a_word(what, tmp_path, capfd):
    name, content = UNUSABLE[what]
    (tmp_path / "good.pgm").write_bytes(pgm(IMAGES[0]))
    if content is not None:
        (tmp_path / name).write_bytes(content)
    (tmp_path / "circle.pgm").symlink_to("round.pgm")
    (tmp_path / "round.pgm").symlink_to("circle.pgm")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        rows = private_images(tmp_path, ["good.pgm", name, "good.pgm"], ImageForm(16, 16, 1), missing=-1.0)
    assert (rows[[0, 2]] == IMAGES[0].astype(np.uint8).ravel()).all()
    assert (rows[1] == -1.0).all()
    assert warned == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.quick
def test_that_test_has_cases_that_a_reader_without_care_fails(tmp_path):
    """A twin: names and files are looked at outside of what catches errors."""
    (tmp_path / "z.npy").write_bytes(zipped())
    with pytest.raises(AttributeError):
        np.load(tmp_path / "z.npy").dtype  # noqa: B018
    for what in ("NUL in a name", "half a character"):
        with pytest.raises(ValueError, match=r"null byte|surrogates"):
            (tmp_path / UNUSABLE[what][0]).resolve(strict=True)
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        with pytest.warns(RuntimeWarning):
            np.asarray(np.full(1, np.longdouble("1e400")), dtype=np.float64)


@pytest.mark.quick
def test_whether_pillow_is_needed_is_told_by_public_names_alone(tmp_path, monkeypatch):
    for kind in ("npy", "png"):
        (tmp_path / f"a.{kind}").write_bytes(WRITERS[kind](IMAGES[0]))
    form = ImageForm(16, 16, 1)
    assert (private_images(tmp_path, ["a.png"], form, missing=-1.0) == IMAGES[0].astype(np.uint8).ravel()).all()
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert public_images(tmp_path, ["a.npy"], called="public.csv")[1] == form
    rows = private_images(tmp_path, ["a.npy", "a.png"], form, missing=-1.0)
    assert (rows[0] == IMAGES[0].ravel()).all()
    assert (rows[1] == -1.0).all()
    with pytest.raises(PreconditionFailed, match=r"quorate\[images\]"):
        public_images(tmp_path, ["a.npy", "a.png"], called="public.csv")


LARGE = {
    "a.pgm": b"P5 8192 8192 255\n",
    "text.pgm": b"P2 8192 8192 255\n",
    "endless.pgm": b"P2 16 16 255\n",
    "a.npy": npy(np.empty((0, 8192), np.uint8)).replace(b"(0, 8192), }   ", b"(8192, 8192), }"),
}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", LARGE)
def test_of_a_private_image_of_another_size_the_header_alone_is_read(name, tmp_path):
    with (tmp_path / name).open("wb") as file:
        file.write(LARGE[name])
        file.truncate(1 << 26)  # of zeros that take no room
    tracemalloc.start()
    rows = private_images(tmp_path, [name], ImageForm(16, 16, 1), missing=-1.0)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (rows == -1.0).all()
    assert most < 1 << 20


@pytest.mark.quick
def test_a_pipe_is_no_image_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.pgm")
    writer = threading.Thread(target=lambda: (tmp_path / "a.pgm").write_bytes(pgm(IMAGES[0])))
    writer.start()
    found = read_image(tmp_path, "a.pgm", only=ImageForm(16, 16, 1))
    held = os.open(tmp_path / "a.pgm", os.O_RDONLY | os.O_NONBLOCK)  # whoever writes waits for one who reads
    writer.join()
    os.close(held)
    assert found is None


@pytest.mark.quick
def test_a_pgm_file_of_text_is_read_with_its_comments(tmp_path):
    rows = "\n".join(" ".join(str(int(each)) for each in row) for row in IMAGES[0])
    (tmp_path / "a.pgm").write_text(f"P2\n# made here\n16 16\n# most\n16\n{rows}\n")
    found = read_image(tmp_path, "a.pgm", only=ImageForm(16, 16, 1))
    assert found is not None
    assert (found == IMAGES[0]).all()
    for wrong in ("P2 1_6 16 16\n", "P2 -1 16 16\n", "P2 16 16\n"):
        (tmp_path / "b.pgm").write_text(f"{wrong}{rows}\n")
        assert read_image(tmp_path, "b.pgm") is None


def test_names_that_lead_elsewhere_are_no_images(tmp_path):
    folder(tmp_path)
    (tmp_path / "secret.pgm").write_bytes(pgm(IMAGES[0]))
    assert read_image(tmp_path / "scans", "../secret.pgm") is None
    assert read_image(tmp_path / "scans", None) is None


DIRECT = {"method.by": "direct", "method.rounds": 4, "data.n_records": N}


@pytest.mark.parametrize("how", [{}, DIRECT], ids=["votes", "direct"])
def test_a_run_on_a_folder_of_images(how, make_run, cli):
    root = make_run(**{"data.images": "scans", "data.evaluation": "evaluation.csv", "budget.epsilon": 8.0, **how})
    folder(root)
    (root / "scans" / "3.pgm").write_bytes(b"rubbish")
    (root / "scans" / "4.pgm").unlink()
    cli.ok("check", root)
    out = cli.ok("run", root)
    assert "accuracy 9" in out or "accuracy 100" in out
    assert not how or "patches" in out
    assert cli("run", root)[0] == 0
    read = read_image(root / "scans", "5.pgm")
    shown = np.stack([read, 255 - read])
    loaded = load(root)
    assert list(loaded.predict(shown)) == list(loaded.predict(shown.reshape(2, -1)))
    assert loaded.predict_proba(shown).shape == (2, 2)
    card = (root / "public" / "model_card.md").read_text(encoding="utf-8")
    assert "one image a row: 256 numbers, its pixels row by row, from 0 to " in card


@pytest.mark.usefixtures("brief_rehearsals")
def test_a_folder_of_images_with_labelled_public_ones_is_planned(make_run, cli):
    more = {"data.evaluation": "evaluation.csv", "data.n_records": N, "teachers.count": None, "mechanism.queries": None}
    root = make_run(**{"data.images": "scans", "budget.epsilon": 8.0, **more})
    folder(root)
    assert json.loads(cli.ok("plan", root, "--json"))["rows"][0]["expected"]["basis"] == "labelled public rows"


@pytest.mark.parametrize("how", [{}, DIRECT], ids=["votes", "direct"])
def test_that_most_private_images_are_missing_is_told_to_the_owner(how, make_run, cli):
    root = make_run(**{"data.images": "scans", "budget.epsilon": 8.0, **how})
    folder(root)
    said = "more than 10% of the rows of private.csv hold 0 alone, as an image does that is missing"
    assert said not in cli("check", root)[1]
    for name in range(7, N):
        (root / "scans" / f"{name}.pgm").unlink()
    out = cli.ok("check", root)
    assert (said in out.words) != bool(how)  # of a direct run nothing is said that depends on private rows
    assert "hold 0 alone" not in cli("check", root, "--json")[1]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda root: (root / "scans" / "205.pgm").unlink(), "public.csv, row 6: the file it names"),
        (lambda root: (root / "scans" / "205.pgm").write_bytes(pgm(IMAGES[0][:8])), "one size is needed"),
        (lambda root: pl.DataFrame({"name": ["1.pgm"]}).write_csv(root / "public.csv"), "no column 'file'"),
        (lambda root: pl.DataFrame({"file": ["1.pgm"], "age": [3]}).write_csv(root / "public.csv"), "[data] drop"),
        (lambda root: (root / "scans").rename(root / "other"), "there is no such folder"),
    ],
)
def test_what_is_wrong_with_public_images_is_one_line(change, told, make_run, cli):
    root = make_run(**{"data.images": "scans"})
    folder(root)
    change(root)
    code, _, err = cli("check", root)
    assert code in (2, 3, 4)
    assert told in err.words

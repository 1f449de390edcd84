"""Digits in small: the images are made upright one by one, and both ways to spend a budget run."""

from dataclasses import replace

import numpy as np
import pytest

from quorate.cli.group import main
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.experiments import mnist, reproduce_mnist, reproduce_writers, torch_models, writers
from quorate.experiments.measurement import scored
from quorate.experiments.mnist import (
    DEFAULT,
    KERNEL,
    LABELLED,
    METHODS,
    NETWORK,
    NO_TORCH,
    PATCHES,
    VALUES,
    VOTE,
    upright,
)
from quorate.experiments.noisy_gradient_descent import PLAIN
from quorate.experiments.sources import Split
from quorate.experiments.torch_models import convolutional, torch_is_there
from quorate.experiments.writers import BEST, FIXED
from quorate.types import FloatArray


def stroke(lean: float, shift: float = 0.0) -> FloatArray:
    image = np.zeros((28, 28))
    for row in range(4, 24):
        column = 13.5 + shift + lean * (row - 13.5)
        left = int(np.floor(column))
        image[row, left], image[row, left + 1] = 1 - (column - left), column - left
    return image.reshape(1, -1)


@pytest.mark.parametrize(("lean", "shift"), [(0.4, 0.0), (-0.5, 0.0), (0.0, 3.0), (0.3, -2.0)])
def test_a_leaning_or_shifted_stroke_comes_out_upright_and_in_the_middle(lean, shift):
    made = upright(stroke(lean, shift)).reshape(28, 28)
    columns = made.sum(axis=0) / made.sum()
    centre = float(columns @ np.arange(28))
    assert abs(centre - 13.5) < 0.2
    assert float(columns @ (np.arange(28) - centre) ** 2) < 0.8  # all ink within about a pixel of the middle


def test_an_image_is_made_upright_by_itself():
    images = np.vstack([stroke(lean) for lean in (0.1, -0.3, 0.5)])
    np.testing.assert_allclose(upright(images)[1], upright(images[1:2])[0], atol=1e-9)


def test_an_empty_image_stays_empty():
    assert not upright(np.zeros((1, 784))).any()


def test_both_ways_run_on_made_up_digits(folder, monkeypatch):
    monkeypatch.setattr(mnist, "N_TEACHERS", 30)
    monkeypatch.setattr(mnist, "LABELS", 60)
    monkeypatch.setattr(torch_models, "torch_is_there", lambda: False)
    found = reproduce_mnist(epsilons=(8.0,), files=folder, methods=(VALUES, LABELLED, VOTE, PLAIN))
    told = {row.method: row for row in found.rows}
    assert set(told) == {VALUES, LABELLED, VOTE, PLAIN}
    assert told[VOTE].accuracy_mean > 0.9
    assert told[VALUES].accuracy_mean > 0.6
    assert told[VALUES].n_queries == 300
    more = told[LABELLED].more
    assert more["with_sanitising"] > 8.0 - 1e-6
    assert more["data_dependent_epsilon"] > 0
    assert told[PLAIN].accuracy_mean > 0.5


@pytest.mark.faults
def test_direct_methods_run_on_made_up_digits(folder):
    found = reproduce_mnist(epsilons=(8.0,), files=folder, methods=(KERNEL, PATCHES))
    told = {row.method: row for row in found.rows}
    assert min(told[name].accuracy_mean for name in (KERNEL, PATCHES)) > 0.5
    assert told[KERNEL].more["cpu_seconds"] > 0


def test_every_line_has_a_name(folder, monkeypatch):
    monkeypatch.setattr(mnist.Division, "score", lambda *_: scored([0], [0]))
    monkeypatch.setattr(torch_models, "torch_is_there", lambda: False)
    monkeypatch.setattr(mnist, "_data_dependent_notes", lambda rows: ())
    found = reproduce_mnist(epsilons=(8.0,), files=folder)
    assert {row.method for row in found.rows} == set(METHODS) - {NETWORK, torch_models.NET}
    assert NO_TORCH in found.notes


@pytest.mark.parametrize("line", [NETWORK, torch_models.NET])
def test_a_line_that_is_named_and_needs_torch_is_refused_without_it(line, folder, monkeypatch):
    monkeypatch.setattr(torch_models, "torch_is_there", lambda: False)
    with pytest.raises(PreconditionFailed, match=r"quorate\[torch\]"):
        reproduce_mnist(epsilons=(8.0,), files=folder, methods=(line,))


def test_the_network_is_an_extra_that_is_named_where_it_is_missing():
    if torch_is_there():
        images = np.random.default_rng(0).uniform(size=(60, 784)).astype(np.float32)
        labels = np.arange(60) % 3
        network = convolutional(0, n_classes=3).set_params(max_epochs=1).fit(images, labels)
        assert network.predict_proba(images).shape == (60, 3)
    else:
        with pytest.raises(PreconditionFailed, match=r"quorate\[torch\]"):
            convolutional(0)


def test_public_coordinates_of_an_image_hang_on_it_and_the_pool_alone():
    rng = np.random.default_rng(0)
    images = np.vstack(
        [stroke(*each) for each in zip(rng.uniform(-0.4, 0.4, 260), rng.integers(-3, 4, 260), strict=True)]
    )
    parts = Split(
        name="mnist", X_private=images[:60], y_private=np.zeros(60), X_public=images[60:], X_test=images[:1],
        y_test=np.zeros(1),
    )  # fmt: skip
    private, public, test = torch_models.coordinates(parts)
    assert private.shape[1] == public.shape[1] <= 128
    assert len(private) == 60
    assert len(public) == 200
    np.testing.assert_array_equal(private[:1], test)
    np.testing.assert_array_equal(torch_models.coordinates(replace(parts, X_private=images[:2]))[0], private[:2])
    assert np.sqrt(np.mean(public**2)) == pytest.approx(1.0, abs=0.1)


@pytest.mark.faults
@pytest.mark.parametrize("method", [DEFAULT, torch_models.NET])
def test_votes_in_public_coordinates_on_made_up_digits(method, folder, monkeypatch):
    if method == torch_models.NET and not torch_is_there():
        pytest.skip("torch is not installed")
    monkeypatch.setattr(torch_models, "N_TEACHERS", 30)
    found = reproduce_mnist(epsilons=(32.0,), files=folder, methods=(method,))
    assert found.rows[0].accuracy_mean > 0.5


@pytest.mark.faults
def test_every_method_runs_on_made_up_writers(folder):
    found = reproduce_writers(epsilons=(16.0,), files=folder)
    told = {row.method: row for row in found.rows}
    assert tuple(told) == writers.METHODS
    assert told[DEFAULT].n_queries is not None
    assert told[FIXED].accuracy_mean <= told[BEST].accuracy_mean
    assert told[BEST].accuracy_mean > 0.5
    assert told[PLAIN].epsilon == 16.0
    assert "100 writers" in found.title


def test_chosen_lines_alone_are_made_and_the_command_names_them(folder, tmp_path, capsys):
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "writers", "--epsilon", "4", "--method", PLAIN, "--files", str(folder), "--out", str(out)])
    assert stop.value.code == 0
    assert "ε = 4" in capsys.readouterr().out
    assert f"--epsilon=4 '--method={PLAIN}'" in (out / "writers.txt").read_text()


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(PreconditionFailed, match="mnist"):
        reproduce_mnist(files=tmp_path)
    with pytest.raises(PreconditionFailed, match=r"writers\.npz"):
        reproduce_writers(files=tmp_path)
    with pytest.raises(InvalidParameter, match="method"):
        reproduce_writers(methods=("guess",), files=tmp_path)

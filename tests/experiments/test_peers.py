"""Peers side by side: fits are kept cell by cell, differences are paired, and who is first is named."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks import peer_models, peers, peers_page, regression
from benchmarks.peer_tables import bounds

ROOT = Path(__file__).parents[2]
OURS = peers.Contestant("direct", "quorate", None, ({},), public=True)
SHARP = peers.Contestant("sharp", "sharp", None, ({"blurred": 0.9}, {"blurred": 0.0, "standardised": True}))
BROKEN = peers.Contestant("broken", "broken", None, ({},))
MORE = peers.Contestant("two classes alone", "sharp", None, ({"blurred": 0.0},), two_classes=True)


def sign(task: peer_models.Task, epsilon: float, setting: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Predict by the sign of the first column, and of some rows at random."""
    _, scored = task.vectors(setting.get("standardised", False))
    rng = np.random.default_rng(task.seed)
    positive = np.where(
        rng.random(len(scored)) < setting.get("blurred", 0.3), rng.random(len(scored)), scored[:, 0] > 0
    )
    return np.column_stack([1 - positive, positive])


def refuse(task: peer_models.Task, epsilon: float, setting: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    raise ValueError("no such thing")


def in_process(contestant: peers.Contestant, folder: Path) -> Iterator[Mapping[str, Any]]:
    return peer_models.fits(contestant.model, folder)


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """Two toy peers and one that refuses, on two tiny tables; the pool is centred elsewhere than the bounds."""
    rng = np.random.default_rng(0)
    cells = np.column_stack([rng.uniform(-1, 1, 400), rng.integers(0, 3, 400)])
    columns = [{"bounds": [-1, 1]}, {"values": 3}]
    tables = {
        "even": peers.Data(X=cells, codes=(cells[:, 0] > 0).astype(int), columns=columns),
        "three": peers.Data(X=cells, codes=cells[:, 1].astype(int), columns=columns),
    }
    monkeypatch.setenv("QUORATE_PEERS", str(tmp_path / "kept"))
    for module in (peers, peers_page):
        monkeypatch.setattr(module, "CONTESTANTS", (OURS, SHARP, BROKEN, MORE))
        monkeypatch.setattr(module, "table", tables.__getitem__)
        monkeypatch.setattr(module, "TABLES", tables)
    monkeypatch.setattr(peer_models, "MODELS", {"quorate": sign, "sharp": sign, "broken": refuse})
    (tmp_path / "figures").mkdir()
    (tmp_path / "peers.md").write_text(f"before\n{peers_page.BEGIN}\n{peers_page.END}\nafter\n")
    return tmp_path


def written(folder: Path) -> str:
    peers_page.write_page(folder, ["even"], [1.0])
    return (folder / "peers.md").read_text()


def test_a_page_names_who_is_first_and_by_how_much_split_by_split(toys, monkeypatch):
    peers.main(["even", "--splits", "4", "--epsilons", "1"], run=in_process)
    page = written(toys)
    measured = peers_page.lines(peers_page.collect(["even"])["even"], 1.0)
    direct, sharp, _, _, best = (np.array([*line.scores.values()]) for line in measured)
    assert len(direct) == 4
    assert best.min() == 1 > direct.mean() > sharp.mean()
    paired = direct - best
    figure, spread = f"{paired.mean():.3f}".replace("-0", "−"), f"{paired.std(ddof=1) / 2:.3f}".removeprefix("0")
    means = f"1.000 for {direct.mean():.3f}".replace(" 0.", " .")
    assert f"two classes alone by default is first, {means} ({figure} ± {spread}, **beyond the limit**)" in page
    assert f"| even | accuracy | 4 | {means.split()[-1]} ± " in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "broken: ValueError: no such thing (4 fits)" in page
    assert "<svg" in (toys / "figures" / "peers.svg").read_text()

    calls: list[peers.Contestant] = []
    peers.main(["even", "--splits", "4", "--epsilons", "1"], run=lambda who, _: calls.append(who) or [])
    assert calls == [], "a cell that is kept is not measured again"
    monkeypatch.setattr(peers, "code", lambda: "another source")
    peers.main(["even", "--splits", "4", "--epsilons", "1", "--again"], run=lambda who, _: calls.append(who) or [])
    assert {who.name for who in calls} == {"direct"}, "cells of another source are measured again, and a peer's are not"

    for file in (toys / "kept" / "cells").rglob("*.json"):
        file.unlink()
    assert written(toys) == page, "figures that the page's folder holds stay where the cells are gone"
    calls.clear()
    peers_page.keep_published(toys)
    peers.main(["even", "--splits", "4", "--epsilons", "1"], run=lambda who, _: calls.append(who) or [])
    assert calls == [], "what the page holds is not measured again"
    assert written(toys) == page


def test_what_was_fitted_before_a_break_is_kept(toys):
    def broken_off(contestant: peers.Contestant, folder: Path) -> Iterator[Mapping[str, Any]]:
        yield next(in_process(contestant, folder))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        peers.main(["even", "--splits", "1", "--epsilons", "1", "0.5", "3", "--only", "sharp"], run=broken_off)
    assert [*peers_page.collect(["even"])["even"]["cells"]] == ["sharp, 0, 0.5", "sharp, 0, 1", "sharp, 1, 1"]


def test_rows_of_a_split_are_apart_and_who_knows_two_classes_is_asked_of_no_more(toys):
    private, public, scored = peers.parts(peers.table("even"), 3)
    assert sorted([*private, *public, *scored]) == list(range(400))
    assert len(public) == 40
    assert len(scored) == 100
    planned = [cell for cells in peers.plan(["three"], peers.CONTESTANTS, [1.0, 3.0], 2) for cell in cells]
    assert len({cell.file for cell in planned}) == len(planned) == 2 * 2 * 4
    assert all(cell.contestant is not MORE for cell in planned)


def test_a_fit_that_failed_counts_as_always_the_commonest_class(toys):
    data = peers.table("three")
    rows = np.arange(400)
    scores = peers.scores_of(np.full((400, 3), np.nan), data, rows)
    assert scores["accuracy"] == max(data.shares)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [([3, 128], [3, 130]), ([-0.123, 0.0451], [-0.13, 0.05]), ([0, 0.5], [0, 0.5]), ([-7, 1234], [-100, 1300])],
)
def test_bounds_are_rounded_outward_and_whole_where_cells_are(cells, expected):
    low, high = bounds(np.array(cells, dtype=float))
    assert low <= min(cells) <= max(cells) <= high + 1e-12
    assert high == pytest.approx(expected[1])
    assert isinstance(high, int) == all(cell == int(cell) for cell in cells)


def test_marginals_are_priced_by_zero_concentrated_privacy():
    """By the general order of Rényi: ε(α) of ρ-zCDP is αρ, turned into (ε, δ) by dp-accounting."""
    from dp_accounting.rdp import compute_epsilon

    orders = np.concatenate([np.linspace(1.01, 20, 2_000), np.geomspace(20, 2_000, 500)])
    for epsilon in (0.5, 1.0, 3.0):
        rho = peer_models._rho(epsilon, 1e-5)
        assert compute_epsilon(orders, rho * orders, 1e-5)[0] == pytest.approx(epsilon, rel=2e-3)


def test_the_page_says_what_its_figures_hold():
    figures = json.loads((ROOT / "docs" / "figures" / "peers.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    part = peers_page.measured_part(figures, [0.5, 1.0, 3.0], peers_page.REASONS)
    assert f"{peers_page.BEGIN}\n\n{part}\n\n{peers_page.END}" in page, "python -m benchmarks peers --page"
    assert len(figures) >= 14
    assert sum(held["facts"]["rarest"] < 0.15 for held in figures.values()) >= 5


def test_of_a_number_a_peer_is_told_bounds_and_lists_and_scored_within_the_range(monkeypatch):
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 1, 400)
    rows = pl.DataFrame({"word": rng.choice(["b", "a", "c"], 400), "place": place, "target": 40 * place})
    splits = [regression.Split.of(rows, 400, seed) for seed in (0, 1)]

    def told(task: peer_models.Task, epsilon: float, setting: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        """Predict by the column that tells the target, and much too much at ε = 3."""
        assert task.columns == [{"values": 3}, {"bounds": [0.0, 1.0]}]
        assert set(task.private[:, 0]) == {0.0, 1.0, 2.0}
        return np.where(epsilon == 3, 1e9, 40 * task.test[:, 1])

    monkeypatch.setattr(peer_models, "MODELS", {"told": told, "broken": refuse})
    monkeypatch.setattr(regression, "in_its_environment", in_process)
    figures = regression.peer_figures(rows, splits, peers.Contestant("told", "told", None, ({},)))
    assert figures[1.0] == [(1.0, 0.0), (1.0, 0.0)]
    held = [split.held["target"].to_numpy() for split in splits]
    assert [error for _, error in figures[3.0]] == pytest.approx([1 - own.mean() / 40 for own in held])
    refused = regression.peer_figures(rows, splits, BROKEN)
    assert [error for _, error in refused[0.5]] == pytest.approx([np.abs(own / 40 - 0.5).mean() for own in held])


@pytest.mark.parametrize(("third", "first"), [((0.85,), 2), ((0.75,), 0), ((0.85, 0.5), 0)])
def test_a_line_of_fewer_splits_is_first_where_it_is_ahead_on_these(third, first):
    scores = [(0.8, 0.6), (0.7, 0.65), third]
    lines = [
        peers_page.Line(contestant=SHARP, setting=0, scores={str(split): one for split, one in enumerate(each)})
        for each in scores
    ]
    assert peers_page.best(lines) is lines[first]
    assert peers_page.best([]) is None

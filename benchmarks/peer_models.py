"""One peer on splits of one table, in an environment of its own: ``python peer_models.py PEER FOLDER``.

``FOLDER/SPLIT.npz`` holds ``X_private``, ``y_private``, ``X_pool`` and ``X_test``: numbers, and codes of categories;
``FOLDER/task.json`` the columns, the number of classes, δ, and fits: ``[split, epsilon, setting]``. For each fit a line
of JSON says what it cost, and ``FOLDER/fit-FIT.npy`` holds probabilities of the scored rows, ``(n_rows, n_classes)``.
Where the target is a number the task has its ``target_range`` and 0 classes, and the file holds numbers, ``(n_rows,)``.
Only numpy and the peer itself are imported. A peer is told what a schema tells: bounds of numbers, and how many values
a category has, and the shares of two classes where one is rare, which quorate alone has a place for; a setting that is
standardised reads the public pool too.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

BINS = 16  # of a number, where marginals are released


class Task:
    """A split, and what is public about it."""

    def __init__(self, folder: Path, facts: dict, split: int) -> None:
        self.columns, self.n_classes, self.delta = facts["columns"], facts["n_classes"], facts["delta"]
        self.seed, self.target_range = split, facts.get("target_range")
        self.class_shares = facts.get("class_shares")
        rows = np.load(folder / f"{split}.npz")
        self.private, self.codes, self.pool, self.test = (
            rows[name] for name in ("X_private", "y_private", "X_pool", "X_test")
        )

    def vectors(self, standardised: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return private and scored rows: categories as indicators, numbers by bounds or by the pool, in [-1, 1]."""
        return tuple(np.column_stack(self._columns(rows, standardised)) for rows in (self.private, self.test))

    def _columns(self, rows: np.ndarray, standardised: bool) -> list[np.ndarray]:
        parts = []
        for at, column in enumerate(self.columns):
            cells = rows[:, at]
            if "values" in column:
                parts.append(np.eye(column["values"])[cells.astype(int)])
            elif standardised:
                spread = self.pool[:, at].std() or 1.0
                parts.append(np.clip((cells - self.pool[:, at].mean()) / spread, -3, 3)[:, None] / 3)
            else:
                low, high = column["bounds"]
                parts.append((2 * (np.clip(cells, low, high) - low) / (high - low) - 1)[:, None])
        return parts


def ebm(task: Task, epsilon: float, setting: dict) -> np.ndarray:
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    bounds = {at: tuple(column["bounds"]) for at, column in enumerate(task.columns) if "bounds" in column}
    kinds = ["nominal" if "values" in column else "continuous" for column in task.columns]
    how = {
        "feature_types": kinds, "privacy_bounds": bounds, "epsilon": epsilon, "delta": task.delta, "n_jobs": 1,
        "random_state": task.seed, **setting,
    }  # fmt: skip

    def cells(rows: np.ndarray) -> np.ndarray:
        mixed = rows.astype(object)
        for at, column in enumerate(task.columns):
            if "values" in column:
                mixed[:, at] = rows[:, at].astype(int).astype(str)
        return mixed

    if task.target_range is not None:
        low, high = task.target_range
        number = DPExplainableBoostingRegressor(privacy_target_min=low, privacy_target_max=high, **how)
        return number.fit(cells(task.private), task.codes).predict(cells(task.test))
    model = DPExplainableBoostingClassifier(**how).fit(cells(task.private), task.codes)
    return _all_classes(model.predict_proba(cells(task.test)), model.classes_, task)


def diffprivlib_line(task: Task, epsilon: float, setting: dict) -> np.ndarray:
    """Least squares of a number; its noise is for replacing a record, which is twice ε of adding one at most.

    Its solver needs columns that are not collinear and targets that are not large: an indicator of each category is
    left out, or all with the setting `numbers`, and targets are places in their range.
    """
    from diffprivlib.models import LinearRegression

    widths = [column.get("values", 1) for column in task.columns]
    of_number = np.repeat(["bounds" in column for column in task.columns], widths)
    kept = of_number | (
        np.isin(np.arange(sum(widths)), np.cumsum([0, *widths]), invert=True) & ("numbers" not in setting)
    )
    private, test = (rows[:, kept] for rows in task.vectors(standardised=False))
    model = LinearRegression(
        epsilon=2 * epsilon, bounds_X=(np.where(of_number[kept], -1.0, 0.0), np.ones(kept.sum())), bounds_y=(-1.0, 1.0),
        random_state=task.seed,
    )  # fmt: skip
    middle, half = np.mean(task.target_range), np.ptp(task.target_range) / 2
    return np.asarray(model.fit(private, (task.codes - middle) / half).predict(test)) * half + middle


def diffprivlib(task: Task, epsilon: float, setting: dict) -> np.ndarray:
    from diffprivlib.models import GaussianNB, LogisticRegression, RandomForestClassifier

    model = setting.get("model", "logistic")
    private, test = task.vectors(setting.get("standardised", False))
    if model == "bayes":
        made = GaussianNB(epsilon=epsilon, bounds=(-1, 1), random_state=task.seed)
    elif model == "forest":
        made = RandomForestClassifier(
            n_estimators=10, epsilon=epsilon, bounds=(-1, 1), classes=list(range(task.n_classes)),
            random_state=task.seed,
        )  # fmt: skip
    else:
        numbers = sum("bounds" in column for column in task.columns)
        norm = math.sqrt(numbers + len(task.columns) - numbers)  # an indicator of each category is 1
        made = LogisticRegression(epsilon=epsilon, data_norm=norm, C=setting.get("C", 1.0), random_state=task.seed)
    made.fit(private, task.codes)
    return _all_classes(made.predict_proba(test), made.classes_, task)


def opacus(task: Task, epsilon: float, setting: dict) -> np.ndarray:
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(task.seed)
    torch.set_num_threads(1)
    private, test = task.vectors(setting.get("standardised", False))
    width = private.shape[1]
    hidden = setting.get("hidden")
    layers = [torch.nn.Linear(width, task.n_classes)]
    if hidden:
        layers = [torch.nn.Linear(width, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, task.n_classes)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=setting.get("lr", 0.05))
    rows = torch.utils.data.TensorDataset(
        torch.tensor(private, dtype=torch.float32), torch.tensor(task.codes, dtype=torch.int64)
    )
    batches = torch.utils.data.DataLoader(rows, batch_size=setting.get("batch", 256))
    epochs = setting.get("epochs", 20)
    model, optimizer, batches = PrivacyEngine().make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=batches, epochs=epochs, target_epsilon=epsilon,
        target_delta=task.delta, max_grad_norm=1.0,
    )  # fmt: skip
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(epochs):
        for cells, codes in batches:
            optimizer.zero_grad()
            if len(cells):
                loss(model(cells), codes).backward()
                optimizer.step()
    with torch.no_grad():
        return torch.softmax(model(torch.tensor(test, dtype=torch.float32)), dim=1).numpy()


def marginals(task: Task, epsilon: float, setting: dict) -> np.ndarray:
    """MST: noisy counts of columns, a tree of pairs chosen privately, rows by `mbi`; then boosting on these rows."""
    from mbi import Domain, estimation
    from mbi.marginal_loss import LinearMeasurement
    from sklearn.ensemble import HistGradientBoostingClassifier

    bins = setting.get("bins", BINS)
    rng = np.random.default_rng(task.seed)
    sizes = [column.get("values", bins) for column in task.columns] + [task.n_classes]
    cells = np.column_stack([_binned(task.private, task.columns, bins), task.codes])
    rho = _rho(epsilon, task.delta)
    d = len(sizes)
    sigma = math.sqrt(d / (2 * rho / 3))
    counts = [np.bincount(cells[:, at], minlength=size) + rng.normal(0, sigma, size) for at, size in enumerate(sizes)]
    pairs_sigma = math.sqrt((d - 1) / (2 * rho / 3))
    tree = _tree(cells, sizes, counts, epsilon=math.sqrt(8 * rho / 3 / (d - 1)), rng=rng)
    names = [f"c{at}" for at in range(d)]
    measured = [LinearMeasurement(noisy, (names[at],), stddev=sigma) for at, noisy in enumerate(counts)]
    for one, other in tree:
        table = np.bincount(cells[:, one] * sizes[other] + cells[:, other], minlength=sizes[one] * sizes[other])
        noisy = table + rng.normal(0, pairs_sigma, len(table))
        measured.append(LinearMeasurement(noisy, (names[one], names[other]), stddev=pairs_sigma))
    model = estimation.MirrorDescent().estimate(Domain(names, sizes), measured, iters=setting.get("iters", 1_000))
    np.random.seed(task.seed)  # noqa: NPY002, mbi draws rows by it
    drawn = model.synthetic_data(rows=len(cells)).to_dict()
    rows = np.column_stack([np.asarray(drawn[name]) for name in names])
    boosting = HistGradientBoostingClassifier(
        categorical_features=["values" in column for column in task.columns], random_state=task.seed
    )
    if len(np.unique(rows[:, -1])) < 2:
        return np.tile(np.eye(task.n_classes)[rows[0, -1]], (len(task.test), 1))
    boosting.fit(rows[:, :-1], rows[:, -1])
    test = _binned(task.test, task.columns, bins)
    return _all_classes(boosting.predict_proba(test), boosting.classes_, task)


def _binned(rows: np.ndarray, columns: list[dict], bins: int) -> np.ndarray:
    parts = []
    for at, column in enumerate(columns):
        cells = rows[:, at]
        if "bounds" in column:
            low, high = column["bounds"]
            cells = np.clip((cells - low) / (high - low) * bins, 0, bins - 1)
        parts.append(cells.astype(int))
    return np.column_stack(parts)


def _tree(cells: np.ndarray, sizes: list[int], counts: list, *, epsilon: float, rng) -> list[tuple[int, int]]:
    """Choose a spanning tree of pairs by the exponential mechanism: those that independence tells least of."""
    n = max(1.0, float(np.mean([noisy.sum() for noisy in counts])))
    shares = [np.maximum(noisy, 0) / max(np.maximum(noisy, 0).sum(), 1e-9) for noisy in counts]
    miss = {}
    for one in range(len(sizes)):
        for other in range(one + 1, len(sizes)):
            table = np.bincount(cells[:, one] * sizes[other] + cells[:, other], minlength=sizes[one] * sizes[other])
            miss[one, other] = float(np.abs(table - n * np.outer(shares[one], shares[other]).ravel()).sum())
    part = list(range(len(sizes)))
    chosen = []
    while len(chosen) < len(sizes) - 1:
        open_pairs = [pair for pair in miss if part[pair[0]] != part[pair[1]]]
        scores = np.array([miss[pair] for pair in open_pairs]) * epsilon / 2
        one, other = open_pairs[int(np.argmax(scores + rng.gumbel(size=len(scores))))]
        chosen.append((one, other))
        gone = part[other]
        part = [part[one] if which == gone else which for which in part]
    return chosen


def _rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ for which ρ-zCDP is (ε, δ)-DP (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    orders = 1 + np.geomspace(1e-3, 1e4, 4_000)

    def price(rho: float) -> float:
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return float(np.exp(min(0.0, float(logs.min()))))

    low, high = 0.0, epsilon + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if price(middle) <= delta else (low, middle)
    return low


def gradient_descent(task: Task, epsilon: float, setting: dict) -> np.ndarray:
    """Full-batch noisy gradient descent on the rows as they are: quorate's yardstick, which reads no public row."""
    from quorate.experiments.noisy_gradient_descent import noisy_gradient_descent, unit_rows

    private, test = task.vectors(setting.get("standardised", False))
    rule = noisy_gradient_descent(
        private, task.codes, epsilon=epsilon, delta=task.delta, rng=np.random.default_rng(task.seed),
        neighbours="add or remove", n_classes=task.n_classes, steps=setting.get("steps", 100),
    )  # fmt: skip
    scores = np.asarray(unit_rows(test) @ rule.weights + rule.intercept)
    if scores.ndim == 1:
        return np.column_stack([-scores, scores]) / 2 + 0.5  # order and sign are what is read
    return scores


def quorate(task: Task, epsilon: float, setting: dict) -> np.ndarray:
    """Quorate's methods by default, at adding or removing one record; with the pool or with a schema alone."""
    import warnings

    import polars as pl

    from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool

    warnings.simplefilter("ignore")  # the noise has a seed, so that a cell can be measured again
    names = [f"x{at}" for at in range(len(task.columns))]

    def frame(rows: np.ndarray) -> pl.DataFrame:
        cells = {}
        for at, (name, column) in enumerate(zip(names, task.columns, strict=True)):
            cells[name] = rows[:, at].astype(int).astype(str) if "values" in column else rows[:, at]
        return pl.DataFrame(cells)

    schema = {
        name: [str(code) for code in range(column["values"])] if "values" in column else tuple(column["bounds"])
        for name, column in zip(names, task.columns, strict=True)
    }
    facts = {
        "classes": list(range(task.n_classes)), "epsilon": epsilon, "delta": task.delta,
        "n_records": len(task.codes), "unsafe_noise_seed": task.seed,
        "class_shares": None if task.class_shares is None else dict(enumerate(task.class_shares)),
    }  # fmt: skip
    where = {"schema": schema} if setting["rows"] == "schema" else {"public": PublicPool(frame(task.pool))}
    if setting["method"] == "direct":
        model = PrivateLogisticRegression(
            **facts, neighbours="add-or-remove", feature_map=setting.get("feature_map", "auto")
        )
    else:
        neighbours = {"neighbours": "add-or-remove"} if setting["rows"] == "schema" else {}
        model = PrivateClassifier(**facts, **neighbours, n_jobs=1)
        if "method" in model.get_params():
            model.set_params(method="votes")
    model.fit(frame(task.private), task.codes, **where)
    return model.predict_proba(frame(task.test))


def _all_classes(probabilities: np.ndarray, classes: np.ndarray, task: Task) -> np.ndarray:
    """Return a column for each class; 0 for one that a model has not seen."""
    full = np.zeros((len(probabilities), task.n_classes))
    full[:, np.asarray(classes, dtype=int)] = probabilities
    return full


def most_memory() -> float:
    """Return the most bytes that this process has held; that of resource counts what the parent held at the fork."""
    status = Path("/proc/self/status")
    if not status.exists():
        return math.nan
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return 1024 * float(line.split()[1])


MODELS = {
    "ebm": ebm, "diffprivlib": diffprivlib, "line": diffprivlib_line, "opacus": opacus, "mlp": opacus,
    "marginals": marginals, "descent": gradient_descent, "quorate": quorate,
}  # fmt: skip


def fits(peer: str, folder: Path) -> Iterator[dict]:
    """Fit as ``task.json`` says; yield the cost of each fit when it has ended."""
    facts = json.loads((folder / "task.json").read_text())
    for at, (split, epsilon, setting) in enumerate(facts["fits"]):
        task, failed = Task(folder, facts, split), None
        began = time.process_time()
        try:
            probabilities = MODELS[peer](task, epsilon, setting)
        except Exception as error:  # noqa: BLE001, a fit that a peer refuses is a cell too
            probabilities, failed = (
                np.full((len(task.test), task.n_classes), np.nan),
                f"{type(error).__name__}: {error}",
            )
        seconds = time.process_time() - began
        np.save(folder / f"fit-{at}.npy", probabilities)
        yield {"seconds": seconds, "megabytes": most_memory() / 2**20, "failed": failed}


if __name__ == "__main__":
    for cost in fits(sys.argv[1], Path(sys.argv[2])):
        print(json.dumps(cost), flush=True)

"""The table of docs/reference/models.md: which kind of model takes which kind of data, each cell tried.

A cell is tried as a run would: the tables are checked, the model is tried on public rows, and one teacher learns a
shard of private rows as it would see them, and votes. ``python -m tests.voting.test_model_kinds`` writes the table.
"""

import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate import PublicPool
from quorate.ensemble import CommandTeacher
from quorate.ensemble.workers.isolation import seed_global_generators
from quorate.errors import QuorateError
from quorate.noise import SeededNoise
from quorate.types import Secret
from quorate.voting.config import RunConfig
from quorate.voting.inputs import _takes_missing
from quorate.voting.models import built_in
from quorate.voting.prepare import prepare

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "models.md"
MARKS = ("<!-- cells -->\n", "<!-- end of cells -->\n")
CLASSES = ["no", "yes"]
N_PRIVATE, N_PUBLIC = 160, 120
WORDS = (["fever", "cough", "pain"], ["well", "fine", "rest"])


def truth(rng, n):
    return np.where(rng.random(n) < 0.5, 1, 0)


def numbers(rng, y):
    return np.column_stack([2.0 * y + rng.normal(0, 0.4, len(y)), rng.normal(size=len(y))])


def holes(rng, y):
    rows = numbers(rng, y)
    rows[rng.random(len(y)) < 0.2, 1] = np.nan
    return rows


def table(rng, y):
    ward = np.where(y == 1, "west", rng.choice(["north", "south"], len(y)))
    age = [None if hole else float(value) for value, hole in zip(40 + 20 * y, rng.random(len(y)) < 0.1, strict=True)]
    return pl.DataFrame({"age": age, "ward": ward})


def texts(rng, y):
    said = [" ".join([*rng.choice(WORDS[1 - code], 3), f"note{rng.integers(10**6)}"]) for code in y]
    return pl.DataFrame({"letter": said})


def images(rng, y):
    pixels = rng.integers(0, 4, (len(y), 8, 8)).astype(np.float64)
    pixels[:, 2:6, 2:6] += 8.0 * y[:, None, None]
    return pixels.reshape(len(y), 64)


def sparse(rng, y):
    dense = (rng.random((len(y), 30)) < 0.05).astype(np.float64)
    dense[:, 3] = y
    return scipy.sparse.csr_array(dense)


DATA = {
    "numbers": numbers,
    "numbers, some missing": holes,
    "table of numbers and words": table,
    "texts": texts,
    "images, a row of pixels each": images,
    "sparse rows": sparse,
}


class NearestMean:
    def fit(self, X, y):
        self.means = np.array([X[y == each].mean(axis=0) for each in (0, 1)])

    def predict(self, X):
        return np.argmin([((X - mean) ** 2).sum(axis=1) for mean in self.means], axis=0)


def pipeline(data):
    if data == "texts":
        return make_pipeline(ColumnTransformer([("words", CountVectorizer(), "letter")]), LogisticRegression())
    if data == "table of numbers and words":
        words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        columns = ColumnTransformer([("words", words, ["ward"])], remainder="passthrough")
        return make_pipeline(columns, HistGradientBoostingClassifier(min_samples_leaf=5, max_iter=5))
    if data == "sparse rows":
        return make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    return make_pipeline(StandardScaler(), HistGradientBoostingClassifier(min_samples_leaf=5, max_iter=5))


def commonest_of_nearest(X, y, X_new):
    """A function that reads whatever it is given."""
    if isinstance(X, pl.DataFrame):
        column = X.columns[-1]
        first = dict(zip(X[column], y, strict=True))
        if column == "letter":
            first = {text.split()[0]: label for text, label in first.items()}
            return [first.get(text.split()[0]) for text in X_new[column]]
        return [first.get(text) for text in X_new[column]]
    X, X_new = (rows.toarray() if scipy.sparse.issparse(rows) else np.nan_to_num(rows) for rows in (X, X_new))
    return [y[((X - row) ** 2).sum(axis=1).argmin()] for row in X_new]


SCRIPT = """
import csv, sys
train, questions, votes = sys.argv[1:]
rows = list(csv.reader(open(train)))[1:]
def number(text):
    return float(text or 0)
def apart(row, other):
    if row[-1][:1].isalpha():
        return row[-1].split()[0] != other[-1].split()[0]
    return sum((number(a) - number(b)) ** 2 for a, b in zip(row, other))
with open(votes, "w") as file:
    for question in list(csv.reader(open(questions)))[1:]:
        file.write(min(rows, key=lambda row: apart(row[:-1], question))[-1] + "\\n")
"""


def command(_):
    return CommandTeacher([sys.executable, "-S", "-E", "-c", SCRIPT])


def trees_of(library):
    pytest.importorskip(library)
    return built_in(library, "teacher").set_params(n_estimators=5)


def net(data):
    torch, skorch = pytest.importorskip("torch"), pytest.importorskip("skorch")
    return skorch.NeuralNetClassifier(
        lazy_net(), criterion=torch.nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=0.05, max_epochs=12,
        batch_size=32, train_split=None, verbose=0,
    )  # fmt: skip


@cache
def lazy_net():
    """A class of nets that take as many columns as there are; made here, so that torch is imported when it is used."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.LazyLinear(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

        def forward(self, X):
            return self.layers((X.to_dense() if X.is_sparse else X).float())

    return Net


MODELS = {
    "scikit-learn, linear": lambda _: LogisticRegression(),
    "scikit-learn, tree": lambda _: DecisionTreeClassifier(),
    "scikit-learn, dense rows alone": lambda _: GaussianNB(),
    "scikit-learn, boosting": lambda _: HistGradientBoostingClassifier(min_samples_leaf=5, max_iter=5),
    "Pipeline made for the data": pipeline,
    "plain class, by arithmetic": lambda _: NearestMean(),
    "XGBoost": lambda _: trees_of("xgboost"),
    "LightGBM": lambda _: trees_of("lightgbm"),
    "torch through skorch": net,
    "function that reads the data": lambda _: commonest_of_nearest,
    "command that reads the data": command,
}


def tried(model, data):
    """``"yes"``, or what is said where a cell cannot work."""
    rng = np.random.default_rng(7)
    y, shown = truth(rng, N_PRIVATE), truth(rng, N_PUBLIC)
    rows, public = DATA[data](rng, y), DATA[data](rng, shown)
    made = MODELS[model](data)
    student = {"texts": pipeline("texts"), "sparse rows": LogisticRegression()}.get(data, DecisionTreeClassifier())
    asked = {"classes": CLASSES, "epsilon": 8.0, "delta": 1e-3, "n_teachers": 4, "allow_hopeless": True}
    config, key = RunConfig(teacher=made, student=student, **asked), Secret(bytes(32))
    try:
        task = prepare(
            config, rows, np.array(CLASSES)[y], public=PublicPool(public), groups=None, key=key, fingerprint_key=key,
            noise=SeededNoise(1),
        )  # fmt: skip
    except QuorateError as refused:
        return str(refused)
    half = N_PRIVATE // 2
    see = task.views.teacher
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in a teacher's process
        seed_global_generators(1)  # likewise
        votes = task.trainer.train(see(rows[:half]), y[:half], 1).vote(see(rows[half:]))
    right = float((votes == y[half:]).mean())
    said = "; ".join(each.words for each in task.recipe.considered if each.words)
    return "yes" if right > 0.8 else f"learns nothing: {right:.2f}; {said}"


HOLES = "no: it takes no missing values, a Pipeline that imputes does"
DENSE, NO_FILE = "no: it takes dense rows alone", "no: a file has a cell for every value"
#: What is said where a cell cannot work.
SAID = {
    HOLES: "cannot take; fill or drop the column, or give a Pipeline that imputes",
    DENSE: "fails on the public rows (sparse)",
    NO_FILE: "a command is given files with a cell for every value, and these rows are sparse",
}
EXCEPTIONS = {
    **{(name, "numbers, some missing"): HOLES for name in (
        "scikit-learn, linear", "scikit-learn, dense rows alone", "plain class, by arithmetic", "torch through skorch",
    )},
    **{(name, "sparse rows"): DENSE for name in (
        "scikit-learn, dense rows alone", "scikit-learn, boosting", "torch through skorch",
    )},
    ("command that reads the data", "sparse rows"): NO_FILE,
    **{(name, "texts"): DENSE for name in (
        "scikit-learn, dense rows alone", "scikit-learn, boosting", "plain class, by arithmetic",
    )},
}  # fmt: skip


# Every model, every kind of data and every exception; the other half of the cells that say "yes" is tried by hand.
CELLS = [
    pytest.param(
        model, data, marks=pytest.mark.faults if (model, data) not in EXCEPTIONS and (row + column) % 2 else ()
    )
    for row, model in enumerate(MODELS)
    for column, data in enumerate(DATA)
]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("model", "data"), CELLS)
def test_a_cell(model, data):
    expected = EXCEPTIONS.get((model, data), "yes")
    assert SAID.get(expected, "yes") in tried(model, data)


@pytest.mark.parametrize(
    ("steps", "takes"),
    [
        ([SimpleImputer(), LogisticRegression()], True),
        ([StandardScaler(), SimpleImputer(), NearestMean()], True),
        ([StandardScaler(), HistGradientBoostingClassifier()], True),
        ([StandardScaler(), LogisticRegression()], False),
        ([PCA(1), SimpleImputer(), LogisticRegression()], False),
        ([NearestMean()], False),
    ],
)
def test_a_pipeline_takes_missing_values_where_its_steps_do(steps, takes):
    assert _takes_missing(make_pipeline(*steps)) == takes


def rendered():
    lines = ["| model | " + " | ".join(DATA) + " |", "| --- " * (len(DATA) + 1) + "|"]
    lines += [
        f"| {model} | " + " | ".join(EXCEPTIONS.get((model, data), "yes") for data in DATA) + " |" for model in MODELS
    ]
    return "\n".join(lines) + "\n"


def test_the_page_holds_these_cells_and_names_this_test():
    text = PAGE.read_text(encoding="utf-8")
    assert MARKS[0] + "\n" + rendered() + "\n" + MARKS[1] in text
    assert "tests/voting/test_model_kinds.py::test_a_cell" in text


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(MARKS[0])[0], page.split(MARKS[1])[1]
    PAGE.write_text(before + MARKS[0] + "\n" + rendered() + "\n" + MARKS[1] + after, encoding="utf-8")

"""The demo's run: Adult, whose public rows play the private ones, written as files that any run could have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from quorate.data import load_adult, public_encoder
from quorate.report import Score
from quorate.run.scores import score_predictions
from quorate.voting.models import built_in

SETTINGS = """\
# The demo's run: income above 50K in Adult (UCI, CC BY 4.0). The rows are public; they play the private ones here.
[data]
private = "private.csv"
public = "public.csv"
evaluation = "evaluation.csv"
label = "income"
classes = ["<=50K", ">50K"]
n_records = 32561

[method]
by = "votes"

[budget]
epsilon = 1.0
delta = 1e-5
"""

DIRECT = """\
# The demo's rows once more, by the direct method. Its ledger is its own, so that the two can be compared at the same ε:
# on private data both runs would be charged to one ledger, and cost twice that.
[data]
private = "../private.csv"
public = "../public.csv"
evaluation = "../evaluation.csv"
label = "income"
classes = ["<=50K", ">50K"]
n_records = 32561

[method]
by = "direct"
feature_map = "linear"

[budget]
epsilon = 1.0
delta = 1e-5
"""


#: What UCI's description of Adult says of its columns: a public statement, and nothing was read off the rows.
SCHEMA = """
[schema]                       # in place of public rows: what the published description says of each column
age = [0, 120]
workclass = ["Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
             "Never-worked"]
fnlwgt = "drop"
education = "drop"             # education-num says the same as a number
education-num = [1, 16]
marital-status = ["Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
                  "Married-AF-spouse"]
occupation = ["Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
              "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
              "Priv-house-serv", "Protective-serv", "Armed-Forces"]
relationship = ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]
race = ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]
sex = ["Female", "Male"]
capital-gain = [0, 100000]
capital-loss = [0, 10000]
hours-per-week = [0, 168]
native-country = "drop"
"""


def write_direct(folder: Path, *, public: bool = True) -> Path:
    """Write the settings of a direct run on the demo's tables, in a folder of its own; return that."""
    direct = folder / "direct"
    direct.mkdir()
    (direct / "quorate.toml").write_text(DIRECT if public else _without_public(DIRECT), encoding="utf-8")
    return direct


def _without_public(settings: str) -> str:
    """Return settings with a schema in the place of the public rows, and the default feature map."""
    lines = (line for line in settings.splitlines() if not line.startswith(("public", "feature_map")))
    return "\n".join(lines) + "\n" + SCHEMA


def write_inputs(folder: Path, *, public: bool = True) -> Score:
    """Write the demo's tables and its settings; return the score of the same student without privacy.

    `public`: whether there are public rows; else a schema says what columns hold.
    """
    adult = load_adult()
    shuffled = np.random.default_rng().permutation(adult.test.height)
    half = adult.test.height // 2
    pool, held_out = shuffled[:half], shuffled[half:]
    folder.mkdir(parents=True, exist_ok=True)
    labelled = adult.test.with_columns(pl.Series("income", adult.test_labels))
    adult.train.with_columns(pl.Series("income", adult.train_labels)).write_csv(folder / "private.csv")
    if public:
        adult.test[pool].write_csv(folder / "public.csv")
    labelled[held_out].write_csv(folder / "evaluation.csv")
    (folder / "quorate.toml").write_text(SETTINGS if public else _without_public(SETTINGS), encoding="utf-8")

    encoder = public_encoder(adult.test[pool])
    model = built_in("logistic", "student").fit(encoder.transform(adult.train), adult.train_labels)
    predicted = model.predict(encoder.transform(adult.test[held_out]))
    return score_predictions(predicted, np.asarray(adult.test_labels)[held_out], list(adult.classes))

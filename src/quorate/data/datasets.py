"""Bundled public data: Adult and Mushroom of the UCI repository (CC BY 4.0; see ``bundled/CITATION.md``)."""

from __future__ import annotations

import lzma
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.deferred import pl
from quorate.errors import PreconditionFailed
from quorate.types import FloatArray

ADULT_CLASSES = ("<=50K", ">50K")
MUSHROOM_CLASSES = ("edible", "poisonous")

_SHA256 = {
    "adult.data.xz": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test.xz": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "agaricus-lepiota.data.xz": "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
}
_ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
)  # fmt: skip
_ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
# The indicators of a9a (Platt 1998): where each bin of a number begins, and the values of a text, in its order.
_A9A_COLUMNS: dict[str, tuple[int, ...] | tuple[str, ...]] = {
    "age": (0, 26, 33, 41, 50),
    "workclass": (
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
        "Never-worked",
    ),
    "fnlwgt": (0, 106_648, 158_662, 196_338, 259_873),
    "education": (
        "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th", "7th-8th",
        "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
    ),
    "education-num": (0, 9, 10, 11, 13),
    "marital-status": (
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
        "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
        "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
        "Priv-house-serv", "Protective-serv", "Armed-Forces",
    ),
    "relationship": ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    "capital-gain": (0, 1),
    "capital-loss": (0, 1),
    "hours-per-week": (0, 35, 40, 41, 48),
    "native-country": (
        "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany", "Outlying-US(Guam-USVI-etc)",
        "India", "Japan", "Greece", "South", "China", "Cuba", "Iran", "Honduras", "Philippines", "Italy", "Poland",
        "Jamaica", "Vietnam", "Mexico", "Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador",
        "Taiwan", "Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand", "Yugoslavia",
        "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
    ),
}  # fmt: skip
_MUSHROOM_LETTERS = {  # in the order in which the repository describes them; those that no row has are left out
    "cap-shape": "bcxfks", "cap-surface": "fgys", "cap-color": "nbcgrpuewy", "bruises": "tf", "odor": "alcyfmnps",
    "gill-attachment": "af", "gill-spacing": "cw", "gill-size": "bn", "gill-color": "knbhgropuewy",
    "stalk-shape": "et", "stalk-root": "bcer", "stalk-surface-above-ring": "fyks",
    "stalk-surface-below-ring": "fyks", "stalk-color-above-ring": "nbcgopewy", "stalk-color-below-ring": "nbcgopewy",
    "veil-type": "p", "veil-color": "nowy", "ring-number": "not", "ring-type": "eflnp",
    "spore-print-color": "knbhrouwy", "population": "acnsvy", "habitat": "glmpuwd",
}  # fmt: skip
_UNKNOWN = "?"


@dataclass(frozen=True, kw_only=True, slots=True)
class Adult:
    """Adult: whether a person earns more than 50,000 dollars a year (United States census of 1994).

    Parameters
    ----------
    train, test : polars.DataFrame
        32,561 and 16,281 rows of 14 columns, six of them numbers; an unknown value is null.
    train_labels, test_labels : (n_rows,) arrays of str
        ``"<=50K"`` or ``">50K"``.
    classes : tuple of str

    Examples
    --------
    >>> load_adult()
    Adult(train=32561 rows, test=16281 rows, 14 columns)
    """

    train: pl.DataFrame = field(repr=False)
    train_labels: NDArray[Any] = field(repr=False)
    test: pl.DataFrame = field(repr=False)
    test_labels: NDArray[Any] = field(repr=False)
    classes: tuple[str, ...] = ADULT_CLASSES

    def __repr__(self) -> str:
        return f"Adult(train={self.train.height} rows, test={self.test.height} rows, {self.train.width} columns)"

    def a9a(self) -> FloatArray:
        """Encode all rows, train before test, as the 123 indicators of the LIBSVM collection's a9a.

        Returns
        -------
        (48842, 123) array of float64
            The six numbers are cut into bins, the eight texts stand one indicator a value; an unknown value has
            none.

        References
        ----------
        J. C. Platt, "Fast training of support vector machines using sequential minimal optimization", in Advances in
        Kernel Methods, MIT Press (1998).

        Examples
        --------
        >>> load_adult().a9a().sum(axis=0)[:5].tolist()
        [9627.0, 8744.0, 10260.0, 9537.0, 10674.0]
        """
        blocks = []
        for name, parts in _A9A_COLUMNS.items():
            column = np.concatenate([self.train[name].to_numpy(), self.test[name].to_numpy()])
            if name in _ADULT_NUMBERS:
                place = np.searchsorted(np.array(parts), column, side="right")[:, None] - 1
                blocks.append(place == np.arange(len(parts))[None, :])
            else:
                blocks.append(column.astype(str)[:, None] == np.array(parts)[None, :])
        return np.concatenate(blocks, axis=1).astype(np.float64)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mushroom:
    """Mushroom: whether a gilled mushroom is poisonous.

    Parameters
    ----------
    X : polars.DataFrame
        8,124 rows of 22 columns of letters; an unknown value (stalk-root only) is null.
    labels : (8124,) array of str
        ``"edible"`` or ``"poisonous"``.
    classes : tuple of str

    Examples
    --------
    >>> load_mushroom()
    Mushroom(8124 rows, 22 columns)
    """

    X: pl.DataFrame = field(repr=False)
    labels: NDArray[Any] = field(repr=False)
    classes: tuple[str, ...] = MUSHROOM_CLASSES

    def __repr__(self) -> str:
        return f"Mushroom({self.X.height} rows, {self.X.width} columns)"

    def one_hot(self) -> FloatArray:
        """Encode as the 112 indicators of the literature: each observed value of each attribute but stalk-root.

        Returns
        -------
        (8124, 112) array of float64
            Attributes in the order of the columns, the letters of each in the order in which the repository
            describes them; 21 ones a row.

        Examples
        --------
        >>> load_mushroom().one_hot().shape
        (8124, 112)
        """
        blocks = [
            self.X[name].to_numpy().astype(str)[:, None] == np.array(list(letters))[None, :]
            for name, letters in _MUSHROOM_LETTERS.items()
            if name != "stalk-root"
        ]
        return np.concatenate(blocks, axis=1).astype(np.float64)


def load_adult() -> Adult:
    """Load Adult, in its published split.

    Returns
    -------
    Adult

    Raises
    ------
    PreconditionFailed
        If the installed file is not the published one.

    References
    ----------
    B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository (1996), doi:10.24432/C5XW20. CC BY 4.0.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult.train["workclass"].null_count(), str(adult.test_labels[2])
    (1836, '>50K')
    """
    train, train_labels = _adult("adult.data.xz")
    test, test_labels = _adult("adult.test.xz")
    return Adult(train=train, train_labels=train_labels, test=test, test_labels=test_labels)


def load_mushroom() -> Mushroom:
    """Load Mushroom; it has no published split.

    Returns
    -------
    Mushroom

    Raises
    ------
    PreconditionFailed
        If the installed file is not the published one.

    References
    ----------
    J. Schlimmer, Mushroom, UCI Machine Learning Repository (1981), doi:10.24432/C5959T. CC BY 4.0.

    Examples
    --------
    >>> str(load_mushroom().labels[0])
    'poisonous'
    """
    rows = [line for line in _lines("agaricus-lepiota.data.xz") if line]
    table = _frame(rows, ("edible", *_MUSHROOM_LETTERS), numbers=())
    labels = np.where(table["edible"].to_numpy() == "e", *MUSHROOM_CLASSES)
    return Mushroom(X=table.drop("edible"), labels=labels)


def _adult(name: str) -> tuple[pl.DataFrame, NDArray[Any]]:
    rows = [line for line in _lines(name) if line.count(",") == len(_ADULT_COLUMNS)]
    table = _frame(rows, (*_ADULT_COLUMNS, "income"), numbers=_ADULT_NUMBERS)
    return table.drop("income"), table["income"].str.strip_suffix(".").to_numpy().astype(str)


def _frame(rows: list[str], names: tuple[str, ...], *, numbers: tuple[str, ...]) -> pl.DataFrame:
    """Return lines of values between commas as a frame, ``?`` as missing."""
    table = pl.read_csv(
        "\n".join(rows).encode("ascii"), has_header=False, new_columns=names, infer_schema=False, quote_char=None
    ).with_columns(pl.all().str.strip_chars().replace(_UNKNOWN, None))
    return table.with_columns(pl.col(numbers).cast(pl.Int64))


def _lines(name: str) -> list[str]:
    packed = resources.files("quorate.data.bundled").joinpath(name).read_bytes()
    try:
        content = lzma.decompress(packed)
    except lzma.LZMAError:
        content = b""
    if sha256(content).hexdigest() != _SHA256[name]:
        raise PreconditionFailed(f"bundled {name} is not the published file; install the package again")
    return content.decode("ascii").splitlines()

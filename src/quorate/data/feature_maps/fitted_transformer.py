"""A transformer of the user's own, fitted on public rows beforehand, that sees one private row at a time.

A batched product of floats moves last bits, and nothing forbids a transformer to centre a batch. Word counts and TF-IDF
of scikit-learn alone take many rows at once: their numbers follow from the row's own words, as a test holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.ambient import unwarned
from quorate.data.columns import families
from quorate.data.rows import Rows, is_frame, n_rows, take
from quorate.deferred import compose, frozen, pipeline, sparse
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

_WORDS = ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer")
_TESTED = (*_WORDS, "TfidfTransformer")  # of sklearn.feature_extraction.text
_FIT_BEFORE = (
    "fit it on public rows beforehand (where scikit-learn copies estimators, wrap it in FrozenEstimator, or the copy "
    "is not fitted)"
)


@stored_as("quorate.data.feature_maps.fitted_transformer.FittedTransformer")
@dataclass(frozen=True, slots=True, eq=False)
class FittedTransformer:
    """Rows to `n_outputs` numbers, perhaps sparse, by a transformer fitted on public rows, each row by itself.

    `transformer`: of parts that skops loads without being told to trust them. `batched`: whether it is one of those
    that may take many rows at once.
    """

    transformer: Any = field(repr=False)
    n_outputs: int
    sparse: bool
    batched: bool

    @classmethod
    def of(cls, transformer: Any, pool: Rows) -> FittedTransformer:
        """Check a transformer on the public pool ``(n_public, n_columns)``.

        InvalidParameter if it is not fitted, cannot be kept in the published model, or makes no numbers of the public
        rows.
        """
        name = type(transformer).__name__
        refuse_unfitted(transformer)
        transformer = of_one_column(transformer, pool)
        refuse_unstorable(transformer)
        first = _alone(transformer, take(pool, [0]))
        if first is None:
            raise InvalidParameter(
                f"feature_map: {name} makes no row of numbers of a row of the public pool; give the pool the columns "
                "that it was fitted on, and a transformer of one row to one row"
            )
        return cls(transformer, int(first.shape[1]), bool(sparse.issparse(first)), is_by_row(transformer))

    @property
    def name(self) -> str:
        """The name of its class."""
        return str(type(self.transformer).__name__)

    def transform(self, rows: Rows) -> Any:
        """Return ``(n_rows, n_outputs)`` float64 numbers, dense or CSR; a row that it fails on has a NaN.

        A failure says nothing, and a warning is not heard: it would be an answer about the row.
        """
        with np.errstate(all="ignore"), unwarned():
            if self.batched and n_rows(rows):
                try:
                    return _numbers(self.transformer.transform(rows))
                except Exception:  # noqa: BLE001, S110 - row by row finds which; the numbers of the others are the same
                    pass
            parts = [self._row(take(rows, [i])) for i in range(n_rows(rows))]
        if self.sparse:
            return sparse.vstack(parts, format="csr") if parts else sparse.csr_matrix((0, self.n_outputs))
        return np.vstack(parts) if parts else np.empty((0, self.n_outputs))

    def _row(self, row: Rows) -> Any:
        output = _alone(self.transformer, row)
        if output is not None and output.shape[1] == self.n_outputs:
            if self.sparse == bool(sparse.issparse(output)):
                return output
            return sparse.csr_matrix(output) if self.sparse else output.toarray()
        nothing = np.full((1, self.n_outputs), np.nan)
        if not self.sparse:
            return nothing
        return sparse.csr_matrix(([np.nan], ([0], [0])), shape=(1, self.n_outputs))


def _alone(transformer: Any, row: Rows) -> Any:
    """Return what a transformer makes of one row, ``(1, n)`` numbers; None where that is something else."""
    try:
        output = _numbers(transformer.transform(row))
    except Exception:  # noqa: BLE001 - of any kind: it is about the row, and must not be heard
        return None
    return output if len(output.shape) == 2 and output.shape[0] == 1 and output.shape[1] else None


def _numbers(output: Any) -> Any:
    if bool(sparse.issparse(output)):
        return sparse.csr_matrix(output, dtype=np.float64)
    return np.ascontiguousarray(output, dtype=np.float64)


def refuse_unfitted(transformer: Any) -> None:
    """Refuse what is no fitted transformer: it has no ``transform``, or was not fitted."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if isinstance(transformer, type) or not callable(getattr(transformer, "transform", None)):
        raise InvalidParameter(
            parameter="feature_map",
            got=transformer,
            expected="a name or a fitted transformer",
            advice="a transformer has transform",
        )
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        raise InvalidParameter(f"feature_map: {type(transformer).__name__} is not fitted; {_FIT_BEFORE}") from None
    except TypeError:  # it has no fit: whether it was fitted is not for scikit-learn to say
        pass


def refuse_unstorable(transformer: Any) -> None:
    """Refuse a transformer that a published model could not hold; its class and the types that skops would have to
    trust are named.
    """
    from quorate.deferred import skops

    name = type(transformer).__name__
    try:
        untrusted = skops.io.get_untrusted_types(data=skops.io.dumps(transformer))
    except Exception as error:  # noqa: BLE001 - whatever skops raises
        raise InvalidParameter(
            f"feature_map: {name} cannot be written by skops ({type(error).__name__}), so no published model could "
            "hold it; transform the rows beforehand, one by one, and give the numbers"
        ) from None
    if untrusted:
        raise InvalidParameter(
            f"feature_map: {name} holds {', '.join(sorted(untrusted))}, which skops opens only where it is told to "
            "trust that, so no published model could hold it; transform the rows beforehand, one by one, and give the "
            "numbers"
        )


def of_one_column(transformer: Any, pool: Rows) -> Any:
    """Return a transformer of tables: one of texts takes the only text column of a frame."""
    if not hasattr(transformer, "build_analyzer") or not is_frame(pool):
        return transformer
    texts = [name for name, family in families(pool).items() if family == "text"]
    if len(texts) != 1:
        raise InvalidParameter(
            f"feature_map: {type(transformer).__name__} takes one column of text, and the public pool has "
            f"{len(texts)}; give a fitted ColumnTransformer that says which"
        )
    first = take(pool, [0])
    try:
        words = ("words", frozen.FrozenEstimator(transformer), texts[0])
        return compose.ColumnTransformer([words], sparse_threshold=1.0).fit(first)
    except Exception:  # noqa: BLE001 - whatever the vectorizer raises
        raise InvalidParameter(
            f"feature_map: {type(transformer).__name__} fails on the text of the public pool's first row; give every "
            "public row a text"
        ) from None


def is_by_row(transformer: Any) -> bool:
    """Tell whether what a transformer makes of a row is known not to depend, by a bit, on the rows beside it."""
    return all(_is_tested(part) for part in _parts(transformer))


def _parts(transformer: Any) -> Iterator[Any]:
    if type(transformer) is frozen.FrozenEstimator:
        yield from _parts(transformer.estimator)
    elif type(transformer) is pipeline.Pipeline:
        for _, step in transformer.steps:
            yield from _parts(step)
    elif type(transformer) is compose.ColumnTransformer and hasattr(transformer, "transformers_"):
        for _, part, _ in transformer.transformers_:
            yield from () if isinstance(part, str) and part == "drop" else _parts(part)
    else:
        yield transformer


def _is_tested(part: Any) -> bool:
    from sklearn.feature_extraction import text

    tested = any(type(part) is getattr(text, name) for name in _TESTED)
    options = part.get_params(deep=False) if tested else {}
    steps = (options.get(name) for name in ("tokenizer", "preprocessor", "analyzer"))
    return tested and not any(callable(step) for step in steps) and options.get("dtype", np.float64) is not np.float32

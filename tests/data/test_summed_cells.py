"""What a sparse row's cells sum to is a matter of that row, also where cells are stored in parts."""

import numpy as np
import pytest
from scipy import sparse

from quorate.data.identity import is_same_object
from quorate.data.rows import as_rows, summed_cells
from quorate.run.schema import Schema

WIDTH, PARTS = 6, 60
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def in_parts(neighbour, as_format):
    """A row of cells in ten parts each, in order, above a row of two cells in an order of choice."""
    rng = np.random.default_rng(0)
    where = np.concatenate([np.sort(rng.integers(0, WIDTH, PARTS)), neighbour])
    values = np.concatenate([rng.normal(size=PARTS) * 10.0 ** rng.integers(-8, 9, PARTS), [1.0, 1.0]])
    if as_format == "csr":
        return sparse.csr_matrix((values, where, [0, PARTS, PARTS + 2]), shape=(2, WIDTH))
    return sparse.coo_matrix((values, (np.repeat([0, 1], [PARTS, 2]), where)), shape=(2, WIDTH))


def first_rows(read, as_format):
    return [read(in_parts(neighbour, as_format))[[0]].toarray().tobytes() for neighbour in ([0, 1], [1, 0])]


def by_scipy(rows):
    summed = rows.tocsr(copy=True)
    summed.sum_duplicates()
    return summed


def by_schema(rows):
    pool = sparse.random(30, WIDTH, 0.5, format="csr", random_state=0)
    return Schema.of(pool).parsed(rows)[0]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("read", [summed_cells, by_schema])
@pytest.mark.parametrize("as_format", ["csr", "coo"])
def test_a_row_is_the_same_whatever_the_order_of_the_next(read, as_format):
    one, other = first_rows(read, as_format)
    assert one == other


def test_so_are_the_rows_that_teachers_get():
    one, other = first_rows(as_rows, "coo")
    assert one == other


def test_which_scipy_does_not_do():
    one, other = first_rows(by_scipy, "csr")
    assert one != other


def test_parts_are_summed_as_they_are_stored():
    parts = sparse.coo_array(([1.0, 1e16, 3.0, -1e16], ([0, 0, 0, 0], [1, 1, 0, 1])), shape=(1, 2))
    assert summed_cells(parts).toarray().tolist() == [[3.0, (1.0 + 1e16) - 1e16]]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("as_format", FORMATS)
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("number", [np.float64, np.float32, np.int64, np.bool_])
def test_every_format_keeps_its_values_and_type(as_format, form, number):
    told = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]]).astype(number)
    made = summed_cells(form(told).asformat(as_format))
    assert made.dtype == number
    assert made.has_canonical_format
    assert isinstance(made, form)
    assert (made.toarray() == told).all()


def test_an_index_that_is_no_column_is_infinite():
    rows = sparse.csr_matrix(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2))
    rows.indices[1] = 7
    assert summed_cells(rows).toarray().tolist() == [[1.0, 0.0], [np.inf, 0.0]]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("as_format", FORMATS)
def test_a_private_table_of_any_format_is_told_from_the_pool(as_format):
    pool = sparse.eye(4, format="csr")
    assert not is_same_object(pool.asformat(as_format, copy=True), pool)
    assert is_same_object(pool, pool)

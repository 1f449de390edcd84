"""Sources of words: fresh ones from the operating system, and streams that can be repeated."""

import ast
import pickle
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import quorate
from quorate.errors import InvalidParameter
from quorate.noise import OSNoise, SeededNoise

FALSE_ALARM = 1e-6
SOURCE = Path(quorate.__file__).parent


@pytest.mark.parametrize("source", [OSNoise(), SeededNoise(3), SeededNoise(3).at("answer", 1)])
def test_words_are_uniform_in_every_byte(source):
    words = source.words(50_000)

    assert words.dtype == np.uint64
    counts = np.bincount(words.view(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(axis=0)
    assert stats.chi2.sf(((ones - 25_000) ** 2 / 12_500).sum(), 64) > FALSE_ALARM


def test_real_noise_never_repeats_and_has_no_state():
    a, b = OSNoise(), OSNoise()

    assert a == b
    assert not set(a.words(1000).tolist()) & set(deepcopy(a).words(1000).tolist())
    assert a.at("answer", 3) is a
    assert not a.seeded
    assert not set(pickle.loads(pickle.dumps(a)).words(9).tolist()) & set(a.words(9).tolist())  # noqa: S301


FORK = """
import os
from quorate.noise import OSNoise, SeededNoise, discrete_gaussian
source = {source}
discrete_gaussian(40.0, 5, source)  # tables and any state exist before the fork
for _ in range(2):
    if not (child := os.fork()):
        print(discrete_gaussian(1e6, 8, source).tolist(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
print(discrete_gaussian(1e6, 8, source).tolist())
"""


@pytest.mark.heavy
@pytest.mark.parametrize(("source", "different"), [("OSNoise()", 3), ("SeededNoise(1)", 1)])
def test_forked_children_and_their_parent_draw_differently(source, different):
    """The seeded twin shows that the test sees a shared state: it repeats in every process."""
    done = subprocess.run(
        [sys.executable, "-c", FORK.format(source=source)], capture_output=True, text=True, check=True
    )

    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == different


def test_a_seed_repeats_and_another_seed_does_not():
    assert SeededNoise(5).words(9).tolist() == SeededNoise(5).words(9).tolist()
    assert SeededNoise(5).words(9).tolist() != SeededNoise(6).words(9).tolist()
    assert SeededNoise(5).seeded
    assert repr(SeededNoise(5).at("answer", 2)) == "SeededNoise(5).at('answer', 2)"


@given(cuts=st.lists(st.integers(0, 40), max_size=6))
def test_a_stream_read_in_pieces_is_the_stream_read_at_once(cuts):
    pieces, whole = SeededNoise(1), SeededNoise(1)

    assert [w for n in cuts for w in pieces.words(n).tolist()] == whole.words(sum(cuts)).tolist()


@pytest.mark.heavy
@given(
    a=st.tuples(st.integers(0, 3), st.text(min_size=1, max_size=3), st.integers(0, 3)),
    b=st.tuples(st.integers(0, 3), st.text(min_size=1, max_size=3), st.integers(0, 3)),
)
def test_streams_are_equal_exactly_where_seed_and_address_are(a, b):
    def words(seed, purpose, index):
        return SeededNoise(seed).at(purpose, index).words(2).tolist()

    assert (words(*a) == words(*b)) == (a == b)


def test_an_address_does_not_depend_on_what_was_read_and_nests():
    used, fresh = SeededNoise(4), SeededNoise(4)
    used.words(1234)

    assert used.at("answer", 7).words(4).tolist() == fresh.at("answer", 7).words(4).tolist()
    nested = fresh.at("answer", 7).at("threshold", 0).words(4).tolist()
    assert nested != fresh.at("threshold", 0).words(4).tolist()
    assert nested == SeededNoise(4).at("answer", 7).at("threshold", 0).words(4).tolist()


def test_neighbouring_addresses_are_unrelated():
    bits = np.array([SeededNoise(0).at("answer", i).words(4) for i in range(500)]).view(np.uint8)
    apart = np.unpackbits(bits[1:] ^ bits[:-1])  # two unrelated streams differ in half their bits

    assert stats.binomtest(int(apart.sum()), apart.size).pvalue > FALSE_ALARM


@pytest.mark.parametrize("source", [OSNoise(), SeededNoise(0)])
def test_seeds_and_numbers_of_words_are_whole_and_an_address_is_a_name_and_a_number(source):
    addresses = [("", 0), (3, 0), (None, 0), ("answer", -1), ("answer", 1.0), ("answer", True)]
    for act, wrong, name in (
        (SeededNoise, [(seed,) for seed in (-1, 1.0, True, "3", None, float("nan"))], "seed"),
        (source.words, [(n,) for n in (-1, 1.5, True, "3")], "n"),
        (source.at, addresses, "(purpose|index)"),
    ):
        for arguments in wrong:
            with pytest.raises(InvalidParameter, match=f"^{name} must be "):
                act(*arguments)


def generators_of(code: str) -> set[str]:
    """Return every use of a generator that is not the operating system's."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith(("np.random.", "numpy.random.", "random.")):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in {"random", "numpy.random"}}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("random", "numpy.random")):
            found.add(node.module)
        elif isinstance(node, ast.Name) and node.id == "SeededNoise":
            found.add("SeededNoise")
    return found


@pytest.mark.parametrize("room", ["noise", "mechanisms"])
def test_no_generator_and_no_seed_in_production(room):
    """Philox stands behind SeededNoise alone, which only the check of an owner's mechanism, on made-up votes, uses."""
    allowed = {"source.py": {"np.random.Philox", "SeededNoise"}, "own.py": {"SeededNoise"}}
    for file in (SOURCE / room).glob("*.py"):
        assert generators_of(file.read_text()) <= allowed.get(file.name, set()), file.name


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "code",
    [
        "np.random.seed(1)",
        "np.random.default_rng()",
        "import random",
        "from numpy.random import Generator",
        "SeededNoise(0)",
    ],
)
def test_that_test_sees_a_generator(code):
    assert generators_of(code)

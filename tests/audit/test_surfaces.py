"""A fact planted on a public surface is found, on every kind of surface; a clean surface gives nothing."""

import base64
import bz2
import functools
import gzip
import io
import json
import logging
import lzma
import pickle
import sqlite3
import sys
import tarfile
import warnings
import zipfile
import zlib
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.audit import Forbidden, Leak, Surface, Surfaces, find_leaks
from quorate.errors import InvalidParameter, QuorateError
from quorate.types import Secret

NAME = "Grace Müller <7>"
N = 30_977
EPSILON = 0.731_294_553
VOTES = np.random.default_rng(5).multinomial(250, [0.6, 0.3, 0.1], size=40)

FACTS = [
    Forbidden("person", texts=[NAME]),
    Forbidden("n", numbers=[N]),
    Forbidden("data-dependent epsilon", numbers=[EPSILON]),
    Forbidden("votes", arrays=[VOTES]),
]


def found(seen: Surfaces) -> set[str]:
    return {leak.fact for leak in find_leaks(seen, FACTS)}


class Shown:
    """An object that tells its secret by one display only."""

    def __init__(self, method: str, told: str) -> None:
        self._method = method
        self.told = Secret(told)

    def _tell(self, method: str) -> str:
        return self.told.reveal() if method == self._method else "nothing"

    def __repr__(self) -> str:
        return self._tell("repr")

    def __str__(self) -> str:
        return self._tell("str")

    def __format__(self, spec: str) -> str:
        return self._tell("format")

    def _repr_html_(self) -> str:
        return f"<b>{self._tell('html')}</b>"


def an_error(message: str = "", *, note: str = "", **attributes: Any) -> QuorateError:
    error = QuorateError(message)
    if note:
        error.add_note(note)
    vars(error).update(attributes)
    return error


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("method", ["repr", "str", "format", "html"])
@pytest.mark.parametrize(
    ("told", "fact"),
    [(NAME, "person"), (f"n={N}", "n"), ("ε = 0.7313", "data-dependent epsilon"), (str(VOTES.tolist()), "votes")],
)
def test_every_fact_is_found_on_every_display_of_an_object(method, told, fact):
    seen = Surfaces()
    seen.add_object("object", Shown(method, told))
    leaks = find_leaks(seen, FACTS)
    assert {leak.fact for leak in leaks} == {fact}
    assert {leak.surface for leak in leaks} == {"object._repr_html_" if method == "html" else f"object.{method}"}


def test_an_object_that_tells_nothing_gives_no_leak():
    seen = Surfaces()
    seen.add_object("object", Shown("none", NAME + str(N) + str(VOTES.tolist())))
    assert find_leaks(seen, FACTS) == []


LOG = logging.getLogger("quorate.test.surfaces")


def logs_an_exception() -> None:
    try:
        raise ValueError(NAME)  # noqa: TRY301
    except ValueError:
        LOG.exception("failed")


SAID: dict[str, tuple[Any, str]] = {
    "an argument of a log": (lambda: LOG.debug("rows: %d", N), "n"),
    "an extra of a log": (lambda: LOG.info("answered", extra={"votes": VOTES}), "votes"),
    "an exception in a log": (logs_an_exception, "person"),
    "a warning": (lambda: warnings.warn(f"{NAME} has no label", stacklevel=1), "person"),
    "standard output": (lambda: print(f"{N:,} rows"), "n"),
    "standard error": (lambda: print(VOTES.ravel(), file=sys.stderr), "votes"),
}


@pytest.mark.parametrize(("say", "fact"), SAID.values(), ids=SAID)
def test_logs_of_every_level_warnings_and_both_streams_are_searched(say, fact):
    with Surfaces() as seen:
        say()
    assert found(seen) == {fact}


def test_a_logger_that_was_set_to_errors_only_is_opened_and_set_back():
    log = logging.getLogger("quorate.test.quiet")
    log.setLevel(logging.ERROR)
    before = logging.getLogger().handlers.copy()
    with Surfaces() as seen:
        log.debug("rows: %d", N)
    assert found(seen) == {"n"}
    assert log.level == logging.ERROR
    assert logging.getLogger().handlers == before


def test_loggers_that_keep_to_themselves_or_were_switched_off_are_heard():
    log = logging.getLogger("quorate.test.apart")
    log.propagate = False
    logging.disable(logging.CRITICAL)
    try:
        with Surfaces() as seen:
            log.info("rows: %d", N)
        assert found(seen) == {"n"}
        assert logging.Logger.manager.disable == logging.CRITICAL
        assert log.handlers == []
    finally:
        logging.disable(logging.NOTSET)
        log.propagate = True


def test_a_display_that_fails_shows_its_error():
    class Failing:
        def __repr__(self) -> str:
            raise ValueError(NAME)

    seen = Surfaces()
    seen.add_object("object", Failing())
    assert found(seen) == {"person"}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "error",
    [
        an_error(f"row of {NAME} refused"),
        an_error("row refused", who=NAME),
        an_error("row refused", rows=[{"id": NAME}]),
        an_error("row refused", note=f"it was {NAME}"),
        KeyError(NAME),
    ],
    ids=["message", "attribute", "nested attribute", "note", "args"],
)
def test_messages_attributes_notes_and_args_of_an_exception_are_searched(error):
    seen = Surfaces()
    seen.add_error("error", error)
    assert found(seen) == {"person"}


def test_the_causes_of_an_exception_are_searched_unless_they_were_cut_off():
    def fails(*, cut: bool) -> None:
        try:
            raise ValueError(VOTES.tolist())  # noqa: TRY301
        except ValueError as error:
            if cut:
                raise QuorateError("the labelling stopped") from None
            raise QuorateError("the labelling stopped") from error

    seen = Surfaces()
    assert seen.attempt("labelling", fails, cut=False) is None
    assert found(seen) == {"votes"}
    seen = Surfaces()
    seen.attempt("labelling", fails, cut=True)
    assert found(seen) == set()


def test_an_exception_that_leaves_the_block_is_recorded_and_goes_on():
    seen = Surfaces()
    with pytest.raises(KeyError), seen:
        raise KeyError(NAME)
    assert found(seen) == {"person"}


def test_json_is_searched_also_where_it_escapes():
    seen, escaped = Surfaces(), Surfaces()
    seen.add_json("guarantee", {"for": NAME, "eps": EPSILON})
    escaped.add_text("body", json.dumps({"for": NAME}))  # ASCII only: ü is written as an escape
    assert (found(seen), found(escaped)) == ({"person", "data-dependent epsilon"}, {"person"})


def test_attributes_are_walked_but_never_into_a_secret():
    class Model:
        def __init__(self, votes: object) -> None:
            self._inner = {"list": [(1, votes)]}

    seen = Surfaces()
    seen.add_object("model", Model(Secret(VOTES)))
    assert found(seen) == set()
    seen.add_object("model", Model(VOTES))
    leaks = find_leaks(seen, FACTS)
    assert [leak.surface for leak in leaks] == ["model._inner.list[0][1]"]


def test_properties_slots_partials_closures_and_frames_are_walked():
    class Slotted:
        __slots__ = ("kept",)

        def __init__(self) -> None:
            self.kept = NAME

    class Computed:
        @property
        def n_rows(self) -> int:
            return N

        @property
        def broken(self) -> int:
            raise RuntimeError("not today")

    def closed() -> int:
        return int(VOTES.sum())

    def closing(votes: object) -> Any:
        return lambda: votes

    class Deep:
        def __init__(self, inner: object) -> None:
            self.inner = inner

    for planted, fact in [
        (Slotted(), "person"),
        (Computed(), "n"),
        (Deep(functools.partial(closed, NAME)), "person"),
        (Deep(closing(VOTES)), "votes"),
        (Deep(pl.DataFrame({"id": range(40), "votes": VOTES[:, 0], "z": [0.5] * 40})), "votes"),
    ]:
        seen = Surfaces()
        seen.add_object("object", planted)
        # A column of the votes is another array than the histogram; it is looked for as such.
        assert {leak.fact for leak in find_leaks(seen, [*FACTS, Forbidden("votes", arrays=[VOTES[:, 0]])])} == {fact}


def test_pickles_are_searched_without_being_run_and_a_refusal_is_searched_too():
    seen = Surfaces()
    seen.add_dump("state", {"who": [NAME], "n": N}, pickle.dumps)
    assert found(seen) == {"person", "n"}
    seen = Surfaces()
    seen.add_dump("state", Secret(NAME), pickle.dumps)
    assert found(seen) == set()
    assert any("does not travel" in each.content for each in seen.surfaces if isinstance(each.content, str))


def zipped(data: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("inner/data.bin", data)
    return buffer.getvalue()


def tarred(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("data.bin")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def saved(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


PACKINGS = {
    "plain": lambda data: data,
    "in the middle": lambda data: b"\x00\x01\x02" + data + b"\xff",
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zlib": zlib.compress,
    "zip": zipped,
    "tar.gz": tarred,
    "zip in xz": lambda data: lzma.compress(zipped(data)),
    "base64 in a page": lambda data: b'<img src="data:image/png;base64,' + base64.b64encode(data) + b'">',
    "hexadecimal": lambda data: b"digest: " + data.hex().encode(),
}
WRITINGS = {
    "utf-8": (NAME.encode(), "person"),
    "json": (json.dumps({"x": VOTES.tolist()}).encode(), "votes"),
    "csv": (pl.DataFrame(VOTES, schema=["a", "b", "c"]).write_csv().encode(), "votes"),
    "int64": (VOTES.astype("<i8").tobytes(), "votes"),
    "int32": (VOTES.astype("<i4").tobytes(), "votes"),
    "uint8": (VOTES.astype("u1").tobytes(), "votes"),
    "float64": (VOTES.astype("<f8").tobytes(), "votes"),
    "float32": (VOTES.astype("<f4").tobytes(), "votes"),
    "npy": (saved(VOTES), "votes"),
    "a number in npy": (saved(np.array([1, N])), "n"),
}


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("packing", "writing"),
    # One number in raw bytes cannot be told from chance.
    [each for each in product(PACKINGS, WRITINGS) if each != ("in the middle", "a number in npy")],
)
def test_what_is_packed_in_a_file_is_found(packing, writing, tmp_path):
    data, fact = WRITINGS[writing]
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file.bin").write_bytes(PACKINGS[packing](data))
    (tmp_path / f"of_{EPSILON}.txt").write_text("")  # a name is a surface; an underscore is a border of a token
    seen = Surfaces()
    seen.add_files(tmp_path)
    assert found(seen) == {fact, "data-dependent epsilon"}


@pytest.mark.heavy
def test_saved_models_tables_and_databases_are_opened(tmp_path):
    from sklearn.linear_model import LogisticRegression

    from quorate.deferred import skops  # without PyTorch, which skops would load

    model = LogisticRegression()
    model.votes_ = VOTES
    skops.io.dump(model, tmp_path / "student.skops")
    pl.DataFrame({"id": range(40), "eps": np.full(40, EPSILON)}).write_parquet(tmp_path / "table.parquet")
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE charges (id INTEGER, note TEXT)")
    connection.execute("INSERT INTO charges VALUES (?, ?)", (N, "teachers"))
    connection.commit()
    seen = Surfaces()
    seen.add_files(tmp_path)
    connection.close()
    by_file = {(leak.surface.split("!")[0].split("/")[-1], leak.fact) for leak in find_leaks(seen, FACTS)}
    assert by_file == {("student.skops", "votes"), ("table.parquet", "data-dependent epsilon"), ("ledger.db", "n")}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (f"{N}", True), (f"n={N}.", True), (f"{N}.0", True), (f"{N:,}", True), ("3.0977e4", True), ("-30977", True),
        ("30 977", True), ("30_977", True), ("30\u202f977", True), ("(30977)", True), ("rows_30977", True),
        ("130977", False), ("309770", False), ("30977.5", False), ("a30977", False), ("30977f", False),
        ("1.30977", False), ("30978", False), ("3097", False), ("0x30977", False), ("30.977", False),
    ],
)  # fmt: skip
def test_a_whole_number_is_matched_as_a_whole_token(text, is_one):
    assert bool(find_leaks([Surface("x", text)], [Forbidden("n", numbers=[N])])) is is_one


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("0.731294553", True), ("0.73129", True), ("0.7312", True), ("0.7313", True), ("7.313e-1", True),
        ("73.13 %", True), ("73.13", False), ("0.73", False), ("0.731", False), ("0.7314", False), ("0.7311", False),
        ("10.7313", False),
    ],
)  # fmt: skip
def test_a_fraction_is_matched_when_four_digits_of_it_are_told(text, is_one):
    assert bool(find_leaks([Surface("x", f"is {text}!")], [Forbidden("ε", numbers=[EPSILON])])) is is_one


@pytest.mark.heavy
@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(-300, 300), min_size=12, max_size=60).filter(lambda v: len(set(v)) > 8),
    cut=st.integers(0, 40),
    between=st.sampled_from([", ", " ", "\n", ";", "</td><td>"]),
)
def test_a_piece_of_twice_the_run_length_is_always_found(values, cut, between):
    fact = Forbidden("values", arrays=[values])
    length = fact.reveal().runs[0].length
    piece = values[cut : cut + 2 * length]
    probes = {tuple(map(int, probe)) for probe in fact.reveal().runs[0].probes}
    holds_one = any(tuple(piece[start : start + length]) in probes for start in range(len(piece)))
    leaks = find_leaks([Surface("x", f"see: {between.join(map(str, piece))} end")], [fact])
    assert bool(leaks) is holds_one
    if len(piece) == 2 * length and len(set(piece)) == len(piece):
        assert leaks


def test_rounded_fractions_in_a_row_and_a_column_among_others_are_found():
    losses = np.random.default_rng(1).uniform(0.1, 2, 50)
    fact = [Forbidden("losses", arrays=[losses])]
    rounded = "\n".join(f"{i},{value:.4f},{i % 3}" for i, value in enumerate(losses))
    assert find_leaks([Surface("csv", rounded)], fact)
    assert not find_leaks([Surface("csv", rounded.replace("0", "9"))], fact)


@pytest.mark.heavy
def test_private_labels_of_two_values_need_a_longer_run_than_chance_gives():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 2_000)
    fact = Forbidden("labels", arrays=[labels])
    assert fact.reveal().runs[0].length >= 48
    others = Surface("public labels", str(rng.integers(0, 2, 20_000).tolist()))
    zeros = Surface("zeros", bytes(10_000))
    assert find_leaks([others, zeros], [fact]) == []
    assert find_leaks([Surface("labels", labels[100:400].astype(np.uint8).tobytes())], [fact])


def test_numpys_shortened_print_is_found():
    values = np.random.default_rng(3).integers(0, 10**6, 5_000)
    assert find_leaks([Surface("log", f"votes {values}")], [Forbidden("votes", arrays=[values])])


@pytest.mark.heavy
def test_random_bytes_and_digests_hold_no_votes():
    rng = np.random.default_rng(4)
    noise = [
        Surface("bytes", rng.bytes(300_000)),
        Surface("digests", "\n".join(rng.bytes(32).hex() for _ in range(3_000))),
    ]
    assert find_leaks(noise, FACTS) == []


def test_neither_the_fact_nor_the_leak_prints_what_it_knows():
    seen = Surfaces()
    seen.add_text("page", f"{NAME}, {N}, {EPSILON}, {VOTES.tolist()}")
    leaks = find_leaks(seen, FACTS)
    again = Surfaces()
    again.add_object("facts", FACTS)
    again.add_object("leaks", leaks)
    again.add_text("recorder", repr(seen))
    assert {leak.fact for leak in leaks} == {fact.name for fact in FACTS}
    assert NAME in leaks[0].excerpt.reveal()
    assert isinstance(leaks[0], Leak)
    assert find_leaks(again, FACTS) == []


def test_a_search_of_nothing_or_for_nothing_is_refused(tmp_path):
    odd: Any = Surfaces()
    for act, said in (
        (lambda: find_leaks(Surfaces(), FACTS), "surfaces"),
        (lambda: find_leaks([Surface("x", "y")], []), "forbidden"),
        (lambda: odd.add_files(tmp_path / "absent"), "exists"),
        (lambda: odd.add_text("x", b"y"), "must be a string"),
        (lambda: odd.add_bytes("x", "y"), "must be bytes"),
        (odd.__enter__, "already capturing"),
    ):
        with odd, pytest.raises(InvalidParameter, match=said):
            act()


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "given",
    [
        {}, {"texts": ["ab"]}, {"texts": [5]}, {"numbers": [True]}, {"numbers": [float("nan")]}, {"numbers": ["5"]},
        {"arrays": [[1, 2]]}, {"arrays": [[1, 1, 1]]}, {"arrays": [["a", "b", "c"]]},
    ],
)  # fmt: skip
def test_a_fact_that_would_be_found_everywhere_is_refused(given):
    with pytest.raises(InvalidParameter):
        Forbidden("fact", **given)

"""A teacher that is a prompt: examples out of its own shard, and a model behind an endpoint that labels public rows.

A prompt is a conversation. A *system* message has the instruction and the list of labels; each example is a *user*
message, the row, and an *assistant* message, the name of its class; a last *user* message is the row to be labelled.

Which rows of a shard stand in a prompt is a function of the shard, the teacher's seed and the public row alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from quorate.arguments import count, one_of
from quorate.data.cell_text import is_missing
from quorate.data.fixed_types import fixed_types
from quorate.data.rows import kind
from quorate.ensemble.teachers.prompted.endpoint import ChatEndpoint, Unanswered
from quorate.ensemble.teachers.teacher import ABSTAINED, AbstainingVoter, Voter
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, named
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.types import IntArray

INSTRUCTION = "Label the last row. Rows before it are examples, each with its label."
_CHOOSE = "Answer with exactly one of these labels and nothing else: {labels}"


@stored_as("quorate.ensemble.prompted.prompt.Prompt")
@dataclass(frozen=True, slots=True)
class Prompt:
    """The template, with all that is the same in every prompt.

    `classes`: the names of the classes, in their order; a reply is the class whose name it is, but for surrounding
    blanks and the case of letters, so that two names that differ by these alone, and an empty one, are an
    InvalidParameter. `instruction`: what the model is told first. `text`: the column whose text stands for the row;
    None shows every column as a line ``name: value``, and the only column of a table by its text alone.
    """

    classes: tuple[str, ...]
    instruction: str = INSTRUCTION
    text: str | None = None

    def __post_init__(self) -> None:
        folded = [_folded(name) for name in self.classes]
        if len(set(folded)) != len(folded) or "" in folded:
            raise InvalidParameter(
                "classes must have names that differ by more than blanks and the case of letters, since a reply is "
                "read without regard to them"
            )
        if not isinstance(self.instruction, str) or not self.instruction.strip():
            raise InvalidParameter("instruction must be a text, got an empty one or none")

    def messages(self, examples: Sequence[tuple[str, int]], row: str) -> list[dict[str, str]]:
        """Return the conversation in which a text `row` is to be labelled; `examples`: texts and class codes."""
        task = f"{self.instruction}\n{_CHOOSE.format(labels=', '.join(self.classes))}"
        said = [{"role": "system", "content": task}]
        for text, code in examples:
            said.append({"role": "user", "content": text})
            said.append({"role": "assistant", "content": self.classes[code]})
        return [*said, {"role": "user", "content": row}]

    def code_of(self, reply: str) -> int:
        """Return the code of the class that a reply names, and -1 where it is any other text."""
        folded = _folded(reply)
        return next((code for code, name in enumerate(self.classes) if _folded(name) == folded), -1)

    @property
    def most_tokens(self) -> int:
        """How long a reply may be: no token is shorter than a byte."""
        return 16 + max(len(name.encode("utf-8")) for name in self.classes)


def names_of(classes: Sequence[Any]) -> tuple[str, ...]:
    """Return the names under which classes stand in a prompt."""
    return tuple(_cell_text(label) for label in classes)


def row_texts(X: Any, *, text: str | None = None) -> list[str]:
    r"""Return the text that stands for each row: a function of that row and the names of the columns.

    `X`: rows ``(n_rows, n_features)``; columns of an array are called x1, x2 and so on. `text`: the column whose text
    stands for the row, or DataRefused.
    """
    names, rows = _cells(fixed_types(X))
    if text is not None:
        if text not in names:
            raise DataRefused(f"{named('text')} names {text!r}, and the public rows have no such column to prompt with")
        place = names.index(text)
        return [_cell_text(row[place]) for row in rows]
    if len(names) == 1:
        return [_cell_text(row[0]) for row in rows]
    return [
        "\n".join(f"{name}: {' '.join(_cell_text(value).split())}" for name, value in zip(names, row, strict=True))
        for row in rows
    ]


def _cells(X: Any) -> tuple[list[str], list[Sequence[Any]]]:
    match kind(X):
        case "polars":
            return [str(name) for name in X.columns], X.rows()
        case "pandas":
            return [str(name) for name in X.columns], list(X.itertuples(index=False, name=None))
        case "sparse":
            rows = X.toarray().tolist()
        case _:
            rows = np.asarray(X).tolist()
    return [f"x{number + 1}" for number in range(X.shape[1])], rows


def _cell_text(value: Any) -> str:
    """Write one cell, the same whichever type its column has: a whole number without a fraction, nothing for a gap."""
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | float | np.integer | np.floating):
        number = float(value)
        return str(int(value)) if math.isfinite(number) and number.is_integer() else repr(number)
    return str(value)


def _folded(name: str) -> str:
    return name.strip().casefold()


#: "random": the same rows in every prompt of a teacher; "similar": those most like the row that is asked about.
Choice = Literal["random", "similar"]
_WORDS = 2**18  # places that words are hashed to
_WORD = r"(?u)\b\w+\b"


def spread_over_classes(codes: IntArray, shots: int, seed: int) -> IntArray:
    """Choose at most `shots` rows at random, one class after the other while each has some left, in random order."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(codes))
    rank = np.empty(len(codes), dtype=np.int64)  # of a row among those of its class, in the shuffled order
    for code in np.unique(codes):
        mine = shuffled[codes[shuffled] == code]
        rank[mine] = np.arange(len(mine))
    chosen = shuffled[np.argsort(rank[shuffled], kind="stable")][:shots]
    return np.asarray(rng.permutation(chosen), dtype=np.int64)


def most_similar(texts: Sequence[str], asked: Sequence[str], shots: int) -> IntArray:
    """Choose for each asked row the rows of a shard that share most words with it, the likest last, ties to the first.
    Words and pairs of words are hashed, so nothing is fitted on any row.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    words = HashingVectorizer(n_features=_WORDS, alternate_sign=False, ngram_range=(1, 2), token_pattern=_WORD)
    likeness = (words.transform(asked) @ words.transform(texts).T).toarray()
    order = np.argsort(-likeness, axis=1, kind="stable")[:, :shots]
    return np.asarray(order[:, ::-1], dtype=np.int64)


ENDPOINT_IS_STATED = (
    "the teachers are prompts to an endpoint: that its reply to a prompt depends on that prompt alone, with no cache, "
    "state or load between prompts that changes a reply, and that its model never learned from the private rows, is "
    "the owner's statement and was not checked; the endpoint sees the rows that stand in prompts, which no guarantee "
    "covers"
)
_LABEL_ALONE = "Say in instruction that a label alone is wanted, give other names of classes, or take another model"
REHEARSED = 8  # public rows that a rehearsal asks about
# How long an endpoint may be silent before it counts as gone: the same whatever it was asked before. It may still be
# busy with prompts that hold private rows, or have been started anew after one; that must not decide a refusal.
PATIENCE = 300.0  # seconds for the reply to a public row, at least
PAUSES = (1.0, 5.0, 15.0)  # seconds before it is asked about once more


@stored_as("quorate.ensemble.prompted.teacher.ChatTeacher")
class ChatTeacher:
    """Train a teacher by showing a few rows of its shard to a language model.

    Parameters
    ----------
    endpoint : str
        Where the model is, up to and without ``/chat/completions``: ``"http://127.0.0.1:8000/v1"``.
    model : str
        Its name there.
    shots : int, default 8
        Rows of the shard in a prompt, at most.
    choose : {"random", "similar"}, default "random"
        "random" takes rows of each class in turn, by the run's key and the teacher's number, the same in every prompt
        of the teacher. "similar" takes those rows of the shard that share most words with the row asked about.
    instruction : str, optional
        What the model is told first; the list of classes follows it.
    text : str, optional
        The column whose text stands for a row. None shows every column as a line ``name: value``.
    timeout, retries, connections, hosts, api_key_env, ca_file
        As :class:`~quorate.ensemble.teachers.prompted.ChatEndpoint` has them.
    classes : sequence, optional
        Their names; a run fills in its own.

    Raises
    ------
    InvalidParameter
        If an argument is of the wrong kind, or the endpoint is on a machine that `hosts` does not name.

    Notes
    -----
    Privacy: a prompt holds rows of one shard and one public row. So a vote is a function of that shard, the public
    side, the teacher's seed and the endpoint. That the endpoint keeps nothing from one prompt that changes the reply
    to another cannot be seen from here, and :attr:`caveats` say so. A reply that is late, refused, too long or no
    class of the list is an abstention, told to nobody.

    Examples
    --------
    >>> ChatTeacher("http://127.0.0.1:8000/v1", "some-model", shots=4)
    ChatTeacher('http://127.0.0.1:8000/v1', 'some-model', shots=4, choose='random')
    """

    keeps_no_global_state: ClassVar[bool] = True  # a shard becomes texts, and nothing else happens
    takes_missing: ClassVar[bool] = True
    reads_frames: ClassVar[bool] = True
    caveats: ClassVar[tuple[str, ...]] = (ENDPOINT_IS_STATED,)

    def __init__(
        self,
        endpoint: str,
        model: str,
        *,
        shots: int = 8,
        choose: Choice = "random",
        instruction: str | None = None,
        text: str | None = None,
        timeout: float = 60.0,
        retries: int = 2,
        connections: int = 4,
        hosts: Sequence[str] = (),
        api_key_env: str | None = None,
        ca_file: str | Path | None = None,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.endpoint = ChatEndpoint(
            endpoint,
            model,
            timeout=timeout,
            retries=retries,
            connections=connections,
            hosts=hosts,  # type: ignore[arg-type]  # made a tuple there
            api_key_env=api_key_env,
            ca_file=None if ca_file is None else str(ca_file),
        )
        self.shots = count("shots", shots, at_least=1)
        self.choose = cast("Choice", one_of("choose", choose, ("random", "similar")))
        if text is not None and not (isinstance(text, str) and text):
            raise InvalidParameter(f"text must name a column of the rows, got {text!r}")
        self.text = text
        self.instruction = INSTRUCTION if instruction is None else instruction
        self.prompt = None if classes is None else Prompt(names_of(classes), self.instruction, text)

    def with_classes(self, classes: Sequence[Any]) -> ChatTeacher:
        """Return the teacher for these classes; InvalidParameter if made for others, or their names are alike."""
        prompt = Prompt(names_of(classes), self.instruction, self.text)
        if self.prompt is not None and self.prompt != prompt:
            raise InvalidParameter("ChatTeacher was made for other classes than the task has; leave out classes= there")
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, prompt=prompt)
        return other

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Turn one shard into texts; see :class:`~quorate.ensemble.Teacher`. An empty shard abstains."""
        if not len(y):
            return AbstainingVoter()
        prompt, codes = self._prompt(), np.asarray(y, dtype=np.int64)
        texts = row_texts(X, text=self.text)
        if self.choose == "random":
            kept = spread_over_classes(codes, self.shots, seed)
            texts, codes = [texts[row] for row in kept], codes[kept]
        sent = int.from_bytes(blake2b(b"sent", key=seed.to_bytes(8, "big"), digest_size=4).digest(), "big") >> 1
        return ChatVoter(self.endpoint, prompt, tuple(texts), tuple(codes.tolist()), self.choose, self.shots, sent)

    def try_prompt(self, X: Any, y: IntArray) -> None:
        """Ask about a few public rows, with others of them as examples and made-up codes `y`, and refuse a useless
        endpoint.

        PreconditionFailed if half of the rows or more get no class; the message tells why, and holds nothing of a
        reply.
        """
        voter = self.train(X, y, 0)
        assert isinstance(voter, ChatVoter)  # noqa: S101 - there are rows
        rows = row_texts(X, text=self.text)[:REHEARSED]
        replies = voter.replies(rows)
        failed = [reply for reply in replies if isinstance(reply, Unanswered)]
        if 2 * len(failed) >= len(replies):
            raise PreconditionFailed(
                f"the endpoint {self.endpoint.url} gave no class for {len(failed)} of {len(replies)} public rows: "
                f"{failed[0]}. On private rows such teachers abstain. {failed[0].remedy}"
            )

    def probe(self, X: Any) -> None:
        """Ask about one public row without any example, several times and with patience; or Unanswered."""
        prompt = self._prompt()
        messages = prompt.messages([], row_texts(X[:1], text=self.text)[0])
        patient = replace(self.endpoint, timeout=max(PATIENCE, self.endpoint.timeout))
        for pause in (*PAUSES, None):
            try:
                patient.complete(messages, seed=0, most_tokens=prompt.most_tokens)
            except Unanswered:
                if pause is None:
                    raise
                time.sleep(pause)
            else:
                return

    def _prompt(self) -> Prompt:
        if self.prompt is None:
            raise InvalidParameter("ChatTeacher needs the names of the classes; pass classes=")
        return self.prompt

    def __repr__(self) -> str:
        return (
            f"ChatTeacher({self.endpoint.url!r}, {self.endpoint.model!r}, shots={self.shots}, choose={self.choose!r})"
        )


@stored_as("quorate.ensemble.prompted.teacher.ChatVoter")
@dataclass(frozen=True)
class ChatVoter:
    """One teacher: texts of its shard with their codes ``(n_rows,)``, and how to ask.

    `texts`: those in every prompt, or all where `choose` is by similarity. `shots`: rows in a prompt, at most. `seed`:
    sent with each request.
    """

    endpoint: ChatEndpoint
    prompt: Prompt
    texts: tuple[str, ...] = field(repr=False)
    codes: tuple[int, ...] = field(repr=False)
    choose: Choice
    shots: int
    seed: int = field(repr=False)

    def vote(self, X: Any, /) -> IntArray:
        """Ask about each row, ``connections`` at a time, and return one class code a row, -1 where no class came."""
        replies = self.replies(row_texts(X, text=self.prompt.text))
        return np.array([ABSTAINED if isinstance(reply, Unanswered) else reply for reply in replies], dtype=np.int64)

    def replies(self, rows: Sequence[str]) -> list[int | Unanswered]:
        """Return for the text of each row the code of a class, or why there is none."""
        if not len(rows):
            return []
        chosen: Sequence[Sequence[int]] = [range(len(self.texts))] * len(rows)
        if self.choose == "similar":
            chosen = most_similar(self.texts, rows, self.shots).tolist()
        threads = ThreadPoolExecutor(min(self.endpoint.connections, len(rows)))
        try:
            return list(threads.map(self._reply, rows, chosen))
        finally:
            threads.shutdown(
                cancel_futures=True
            )  # where it is interrupted, what is under way is all that is waited for

    def _reply(self, row: str, chosen: Sequence[int]) -> int | Unanswered:
        messages = self.prompt.messages([(self.texts[example], self.codes[example]) for example in chosen], row)
        try:
            said = self.endpoint.complete(messages, seed=self.seed, most_tokens=self.prompt.most_tokens)
        except Unanswered as failed:
            return failed
        code = self.prompt.code_of(said)
        return code if code >= 0 else Unanswered("the reply is none of the classes", _LABEL_ALONE)

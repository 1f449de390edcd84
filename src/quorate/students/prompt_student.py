"""A student that is a prompt: public rows with released labels, shown to any language model. Nothing is fitted.

It is text: whoever has an endpoint that speaks the chat-completions protocol can use it, and see all that is in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import Guarantee
from quorate.arguments import count
from quorate.data import check_classes, take
from quorate.data.labels import Label
from quorate.ensemble.teachers.prompted import ChatEndpoint, ChatVoter, Prompt, Unanswered, row_texts
from quorate.ensemble.teachers.prompted.teacher import INSTRUCTION, names_of, spread_over_classes
from quorate.errors import InvalidParameter, PreconditionFailed, SeededNoiseRefused
from quorate.labelling import Released
from quorate.mechanisms import NoisyHalfLeads, NoisyVotes
from quorate.release.keys import file_to_write, told_as_typed
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

FORMAT = "quorate prompt 1"


@stored_as("quorate.students.prompt_student.PromptStudent")
@dataclass(frozen=True)
class PromptStudent:
    """A prompt that may be published.

    Parameters
    ----------
    prompt : Prompt
        The template.
    classes : tuple
        The declared classes.
    examples : tuple of (str, int)
        Texts of public rows, and the codes of their released labels.
    guarantee : Guarantee
        What was promised of the labels. It holds for the prompt too, which is made of them and of public rows.

    Examples
    --------
    >>> import polars
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> no = np.zeros(2, dtype=bool)
    >>> released = Released(np.array([0, 1]), no, no, GaussianNoisyMax(sigma=5.0, form="binary"))
    >>> promised = Guarantee(
    ...     epsilon=1.0, delta=1e-5, unit="person", neighbours="add, remove or replace one person",
    ...     mechanism="2 answers", accounting="exact discrete Gaussian",
    ... )
    >>> pool = polars.DataFrame({"review": ["dull", "fun"]})
    >>> student = PromptStudent.of_answers(
    ...     pool, np.array([0, 1]), released, classes=["no", "yes"], guarantee=promised
    ... )
    >>> sorted(student.examples)
    [('dull', 0), ('fun', 1)]
    >>> PromptStudent.from_json(student.to_json()) == student
    True
    """

    prompt: Prompt
    classes: tuple[Label, ...]
    examples: tuple[tuple[str, int], ...]
    guarantee: Guarantee

    @classmethod
    def of_answers(
        cls,
        X_public: Any,
        queries: IntArray,
        released: Released,
        *,
        classes: Sequence[Any],
        guarantee: Guarantee,
        shots: int = 8,
        instruction: str | None = None,
        text: str | None = None,
    ) -> PromptStudent:
        """Choose examples among released answers: of each class in turn, the surest first where votes were released.

        Parameters
        ----------
        X_public : (n_public, n_features)
            The public pool.
        queries : IntArray, (n_queries,)
            Which of its rows were asked: ``clf.queries_``.
        released : Released
            Their answers: ``clf.released_``.
        classes : sequence
            ``clf.classes_``.
        guarantee : Guarantee
            ``clf.guarantee_``.
        shots : int, default 8
            Examples in the prompt, at most.
        instruction, text : str, optional
            As :class:`~quorate.ensemble.ChatTeacher` has them.

        Raises
        ------
        InvalidParameter
            If an argument is of the wrong kind.

        Notes
        -----
        Privacy: public rows and released answers alone go in, so this costs nothing.
        """
        named = check_classes(np.asarray(classes).tolist())
        prompt = Prompt(names_of(named), INSTRUCTION if instruction is None else instruction, text)
        answered = np.flatnonzero(released.answered)
        codes = np.asarray(released.codes)[answered]
        chosen = _chosen(codes, _lead(released), answered, count("shots", shots, at_least=1))
        texts = row_texts(take(X_public, np.asarray(queries)[answered[chosen]]), text=text) if len(chosen) else []
        return cls(prompt, named, tuple(zip(texts, codes[chosen].tolist(), strict=True)), guarantee)

    def predict(self, X: Any, endpoint: ChatEndpoint) -> NDArray[Any]:
        """Ask a model about rows.

        Parameters
        ----------
        X : (n_rows, n_features)
            Rows with the columns of the public pool. Whoever runs the endpoint sees them.
        endpoint : ChatEndpoint
            Which model, and where.

        Returns
        -------
        (n_rows,) array of objects
            A class for each row, or None where no class came back.

        Raises
        ------
        PreconditionFailed
            If none came back for any row; the message says why.
        """
        texts, codes = zip(*self.examples, strict=True) if self.examples else ((), ())
        asking = ChatVoter(endpoint, self.prompt, texts, codes, "random", len(texts), 0)
        replies = asking.replies(row_texts(X, text=self.prompt.text))
        failed = [reply for reply in replies if isinstance(reply, Unanswered)]
        if failed and len(failed) == len(replies):
            raise PreconditionFailed(f"the endpoint {endpoint.url} gave no class for any row: {failed[0]}")
        classes = np.empty(len(replies), dtype=object)
        classes[:] = [None if isinstance(reply, Unanswered) else self.classes[reply] for reply in replies]
        return classes

    def to_json(self) -> str:
        """Return it as JSON, with its guarantee."""
        content = {
            "format": FORMAT,
            "instruction": self.prompt.instruction,
            "text": self.prompt.text,
            "classes": list(self.classes),
            "examples": [{"row": text, "label": self.classes[code]} for text, code in self.examples],
            "guarantee": json.loads(self.guarantee.to_json()),
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> PromptStudent:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        InvalidParameter
            If it is something else.
        """
        try:
            content = json.loads(text)
            if content["format"] != FORMAT:
                raise ValueError  # noqa: TRY301
            classes = check_classes(content["classes"])
            place = {label: code for code, label in enumerate(classes)}
            examples = tuple((str(example["row"]), place[example["label"]]) for example in content["examples"])
            prompt = Prompt(names_of(classes), content["instruction"], content["text"])
            return cls(prompt, classes, examples, Guarantee.from_json(json.dumps(content["guarantee"])))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidParameter('this is no prompt of quorate: a file of the form "quorate prompt 1"') from None

    def save(self, path: str | Path) -> Path:
        """Write it as JSON.

        Raises
        ------
        SeededNoiseRefused
            If the noise of its labels was seeded: they carry no guarantee, and do not leave.
        """
        if self.guarantee.seeded:
            raise SeededNoiseRefused(
                "seeded noise: these labels are reproducible, therefore not private; a prompt of them is not written"
            )
        file = file_to_write(path, "prompt.json")
        with told_as_typed(file):
            file.write_text(self.to_json() + "\n", encoding="utf-8")
        return file

    @classmethod
    def load(cls, path: str | Path) -> PromptStudent:
        """Read a file that :meth:`save` wrote."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def _lead(released: Released) -> FloatArray | None:
    """How far released votes for the winning class lead, ``(n_queries,)``; None where classes alone were released."""
    answers = np.asarray(released.answers, dtype=np.float64)
    if isinstance(released.mechanism.answers, NoisyHalfLeads):
        return np.abs(answers)
    if isinstance(released.mechanism.answers, NoisyVotes):
        ordered = np.sort(answers, axis=1)
        return np.asarray(ordered[:, -1] - ordered[:, -2])
    return None


def _chosen(codes: IntArray, lead: FloatArray | None, answered: IntArray, shots: int) -> IntArray:
    """Choose places in `codes`: each class in turn."""
    if lead is None:
        return spread_over_classes(codes, shots, seed=0)
    surest = np.argsort(-lead[answered], kind="stable")
    rank = np.empty(len(codes), dtype=np.int64)
    for code in np.unique(codes):
        mine = surest[codes[surest] == code]
        rank[mine] = np.arange(len(mine))
    return np.asarray(surest[np.argsort(rank[surest], kind="stable")][:shots], dtype=np.int64)

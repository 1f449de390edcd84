"""A classifier whose fit was one of votes or of the direct method: which it is, and what it does by each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, cast

from quorate.ambient import own_switches
from quorate.arguments import one_of, truth
from quorate.errors import BudgetExhausted, InvalidParameter, PreconditionFailed
from quorate.estimators.private_logistic_regression import PrivateLogisticRegression
from quorate.estimators.resumable import charged_methods
from quorate.estimators.voted import VotedClassifier
from quorate.release import GivenLedger, ledger_location
from quorate.report import Facts
from quorate.run.chosen_method import WAYS, ChosenMethod, asked_for, choose_method
from quorate.stored_names import stored_as

NO_TEACHERS = (
    "there is nothing to ask: this fit was direct, and has no teachers. predict() asks its model, and is free; for "
    "teachers that can be asked give online_answers= before fit"
)
_OF_VOTES: Mapping[str, Any] = {  # arguments that ask for votes by being given, and their defaults
    "teacher": None,
    "student": None,
    "n_teachers": "auto",
    "queries": "auto",
    "mechanism": "auto",
    "online_answers": 0,
    "partition": "auto",
    "declined": "drop",
    "prior_matching": False,
    "batched": True,
    "preprocessing": "inside",
}


def is_default(value: object, default: object) -> bool:
    """Whether an argument is its default, whatever it compares equal to."""
    return value is default or (type(value) is type(default) and value == default)


def _declared(value: object) -> int | None:
    """Return a declared number; what is none is refused where it is used."""
    return value if isinstance(value, int) else None


@stored_as("quorate.estimators.either_method.EitherMethod")
class EitherMethod(VotedClassifier):
    """What :class:`~quorate.PrivateClassifier` does by whichever method its fit had."""

    _rounds: PrivateLogisticRegression | None = None  # what a fit by the direct method was made by

    def _chosen(self, *, grouped: bool) -> ChosenMethod:
        """Return the method of a fit, by arguments and declared numbers alone."""
        of_votes = [name for name, default in _OF_VOTES.items() if not is_default(getattr(self, name), default)]
        way, paid = one_of("method", self.method, WAYS), truth("private_temperature", self.private_temperature)
        if way == "direct" and of_votes:
            *most, last = of_votes
            names, are = (f"{', '.join(most)} and {last}", "are") if most else (last, "is")
            raise InvalidParameter(
                f'{names} {are} for votes of teachers, and method="direct" has none; leave {"them" if most else "it"} '
                'out, or set method="votes"'
            )
        if paid and (way == "votes" or of_votes):
            given = " and ".join(of_votes) or 'method="votes"'
            _refuse_temperature(f"{given} asks for votes of teachers")
        if way != "auto":
            return asked_for(cast("Literal['votes', 'direct']", way))
        chosen = choose_method(
            of_votes=of_votes,
            of_direct=["private_temperature"] if paid else (),
            grouped=grouped,
            n_records=_declared(self.n_records),
            n_rows=_declared(self.n_rows),
            unit=self.unit if isinstance(self.unit, str) else "person" if grouped else "record",
        )
        assert chosen is not None  # noqa: S101 - a fit has no labelled public rows to rehearse on
        return chosen

    def _begun(self, chosen: ChosenMethod) -> ChosenMethod:
        """Return the method of what goes on: where it was left open, the one that the ledger was charged for."""
        if self.method != "auto":
            return chosen
        charged = charged_methods(self.ledger)
        if chosen.by in charged or not charged:
            return chosen
        if self.private_temperature:
            _refuse_temperature("the ledger was charged for a fit by votes")
        return ChosenMethod(charged[-1], "the fit was begun so")

    def _of_begun_votes(self, refusal: BudgetExhausted) -> BudgetExhausted:
        """Say what goes on with fits by votes that a spent ledger was charged for, by an earlier version's default."""
        if self.method != "auto" or ledger_location(self.ledger) is None or "votes" not in charged_methods(self.ledger):
            return refusal
        return refusal.reworded(
            advice="the ledger was charged for a fit by votes: resume(...) goes on with it, and charges nothing. "
            "Otherwise give a smaller epsilon=, or raise the budget with a reason"
        )

    def _direct(self) -> PrivateLogisticRegression:
        """Return the direct method with these arguments."""
        names = PrivateLogisticRegression().get_params()
        rounds = PrivateLogisticRegression(**{name: getattr(self, name) for name in names if hasattr(self, name)})
        rounds._called = type(self).__name__
        return rounds

    def _keep(self, method: ChosenMethod, rounds: PrivateLogisticRegression | None = None) -> Self:
        """Keep what a fit was made by, and of the direct method what it made."""
        if rounds is not None:
            self._forget()
            skip = ("model_", "plan_")
            attributes = {
                name: value for name, value in vars(rounds).items() if name.endswith("_") and name not in skip
            }
            for name, value in {**attributes, "student_": rounds.model_, "_standing": rounds._standing}.items():
                setattr(self, name, value)
            self._calibrated, self._held_sets = rounds._calibrated, rounds._held_sets
        self._paid_temperature = None if rounds is None else rounds._paid_temperature
        self.method_, self._rounds = method, rounds
        return self

    def _forget(self) -> None:
        """Let go of what an earlier fit made."""
        for name in [name for name in vars(self) if name.endswith("_")] + ["_kept"]:
            self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        if (
            name in ("released_", "queries_", "recipe_", "n_teachers_", "mechanism_", "asked_")
            and vars(self).get("_rounds") is not None
        ):
            raise AttributeError(f'{name} is of votes, and this fit was direct; set method="votes" before fit')
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @own_switches()
    def ask(self, X: Any) -> list[Any]:
        """Ask the ensemble: charged to the answers kept back at ``fit``, then to those that a strategy left unasked.

        `X`: points to classify, with the columns of the public pool. Returns: a class for each point, or None where
        there is no answer; `asked_` then has the status of each: "answered", "declined" or "never asked". A point that
        was answered before gets the same answer and costs nothing. Raises PreconditionFailed if no answers were kept
        back, or the fit was direct; BudgetExhausted if fewer answers are left than there are new points; nothing is
        drawn then.
        """
        if self._rounds is not None:
            raise PreconditionFailed(NO_TEACHERS)
        return super().ask(X)

    @property
    def ex_post_epsilon_(self) -> float | None:
        """What the answers drawn so far cost, read after the fact and never a guarantee; None for no less than it."""
        return None if self._rounds is not None else super().ex_post_epsilon_

    @property
    def ledger_(self) -> GivenLedger:
        """Where the fit was charged: the ledger or path that was given, else the ledger in memory."""
        return super().ledger_ if self._rounds is None else self._as_now(self._rounds).ledger_

    @property
    def plan_(self) -> Any:
        """What was expected, from public facts, beside what came; of the direct method, what its rounds follow from."""
        return super().plan_ if self._rounds is None else self._rounds.plan_

    def facts(self, *, evaluation: tuple[Any, Any] | None = None, scoring: str | None = None) -> Facts:
        """Gather what a report says.

        `evaluation`: *Public* rows with labels, to score the model on. `scoring`: what it is judged by, as for
        :meth:`score`; by default what suits how rare the classes are: "roc_auc" where the rarer of two has below 20 %,
        "balanced_accuracy" where one of more has below 5 %, else "accuracy". Where private records are among the
        evaluation, by votes DataRefused is raised, and by the direct method the report has no score.
        """
        if self._rounds is None:
            return super().facts(evaluation=evaluation, scoring=scoring)
        return self._as_now(self._rounds).facts(evaluation=evaluation, scoring=scoring)

    def export(self, path: str | Path) -> Path:
        """Write the model with skops, for anybody who has scikit-learn; as ONNX where `path` ends in ``.onnx``.

        Raises SeededNoiseRefused if the noise was seeded: such a model carries no guarantee and does not leave;
        PreconditionFailed if there is no such folder, the name says that the file is a pickle, or the model cannot be
        converted.
        """
        return super().export(path) if self._rounds is None else self._as_now(self._rounds).export(path)

    def _as_now(self, rounds: PrivateLogisticRegression) -> PrivateLogisticRegression:
        """Return the direct method with the threshold and ledger of now, which may be set after a fit."""
        for name in ("decision_threshold", "class_shares", "ledger"):
            setattr(rounds, name, getattr(self, name))
        return rounds

    @own_switches()
    def calibrate(self, X: Any, y: Any) -> Self:
        """Divide the model's scores by the temperature under which labels of public rows are most likely: free.

        As :meth:`~quorate.PrivateLogisticRegression.calibrate` has it, by whichever method the fit was.
        """
        if self._rounds is None:
            return super().calibrate(X, y)
        return self._keep(self.method_, self._as_now(self._rounds).calibrate(X, y))

    def _model_rows(self, X: Any) -> Any:
        self._student()
        return super()._model_rows(X) if self._rounds is None else self._rounds._model_rows(X)

    def _published(self) -> tuple[Any, Any]:
        return super()._published() if self._rounds is None else self._rounds._published()


def _refuse_temperature(why: str) -> NoReturn:
    raise InvalidParameter(
        f"private_temperature is of the direct method, and {why}; leave one of them out. Public rows with labels "
        "calibrate a student: calibrate(X, y)"
    )

"""The built-in models, by the names that ``quorate.toml`` uses, and a user's own by ``package.module:factory``.

A mechanism of a user's own is named likewise: ``package.module:Class``. Nothing else imports a user's code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quorate.arguments import nearest
from quorate.errors import InvalidParameter, PreconditionFailed, named

if TYPE_CHECKING:
    from quorate.mechanisms import Mechanism
    from quorate.students import Student

Role = Literal["teacher", "student"]

#: Models of ``[teachers] model`` by name.
DEFAULT_TEACHER = "auto"
EARLIER_TEACHER = "logistic"  # which was the default before
TEACHER_MODELS = ("auto", "logistic", "tree", "forest", "boosting", "xgboost", "lightgbm")
#: The extra that brings a library, by what is imported.
EXTRAS = {"xgboost": "xgboost", "lightgbm": "lightgbm", "torch": "torch", "skorch": "torch"}

#: ``[student] method``, and the student that each stands for.
METHODS = (
    "auto", "labels", "noisy-labels", "values", "self-training", "label-spreading", "label-propagation", "voting-class",
)  # fmt: skip
SHARES = ("linear", "kernel", "gaussian-process", "trees", "smooth", "auto")

TEACHER_C = 100.0  # weak regularisation: voting averages a teacher's variance away, but never its bias
IMAGES_ALPHA = 0.1  # of ridge teachers, whose images have the typical length one
MAX_ITERATIONS = 1_000


def built_in(name: str, role: Role) -> Any:
    """Return an unfitted classifier; those of teachers, who see a few dozen rows each, are small."""
    if name == "logistic":
        from sklearn.linear_model import LogisticRegression

        C = TEACHER_C if role == "teacher" else 1.0
        return LogisticRegression(C=C, max_iter=MAX_ITERATIONS)
    if name == "tree" and role == "teacher":  # grown in full: the vote of many is a forest, and averages them
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier()
    if name == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(n_estimators=25 if role == "teacher" else 200, min_samples_leaf=2)
    if name == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(min_samples_leaf=5 if role == "teacher" else 20)
    if name in ("xgboost", "lightgbm") and role == "teacher":
        return _boosting_library(name)
    own = '"logistic", "tree", "forest"' if role == "teacher" else '"logistic", "forest"'
    raise InvalidParameter(f'{role} model {name!r} is not built in; use {own} or "boosting"')


def default_teacher(*, images: bool) -> Any:
    """Return the classifier that votes where nothing is said and rows are seen in no coordinates of length one. With a
    handful of images of each class, squares of ten targets are learned better than a softmax of ten scores: on training
    images of MNIST by .014 where a teacher has one writer's 111 digits (``benchmarks/image_votes.py``).
    """
    if not images:
        return built_in(EARLIER_TEACHER, "teacher")
    from sklearn.linear_model import RidgeClassifier

    return RidgeClassifier(alpha=IMAGES_ALPHA)


def regressor_of(name: str, *, folder: Path) -> Any:
    """Return the unfitted teacher of a number that a name in ``quorate.toml`` stands for; None where it is open."""
    if ":" in name:
        return model_of(name, "teacher", folder=folder)
    from sklearn import ensemble, tree

    regressors: dict[str, Callable[[], Any]] = {
        DEFAULT_TEACHER: lambda: None,
        "tree": tree.DecisionTreeRegressor,
        "forest": lambda: ensemble.RandomForestRegressor(n_estimators=25, min_samples_leaf=2),
        "boosting": lambda: ensemble.HistGradientBoostingRegressor(min_samples_leaf=5),
    }
    if name not in regressors:
        raise InvalidParameter(
            f'[teachers] model = "{name}" votes for classes, and [data] target is a number; use "tree", "forest" or '
            '"boosting", your own as "package.module:factory", or leave it out'
        )
    return regressors[name]()


def teacher_named(given: Any) -> Any:
    """Return the teacher that a name stands for, None for "auto"; anything else as it is."""
    if given == DEFAULT_TEACHER:
        return None
    return built_in(given, "teacher") if isinstance(given, str) else given


def is_linear(teacher: Any) -> bool:
    """Whether a teacher of quorate's own is linear: those see a wide table in its leading directions."""
    from sklearn.linear_model import LogisticRegression, RidgeClassifier

    return isinstance(teacher, LogisticRegression | RidgeClassifier)


def _boosting_library(name: str) -> Any:
    """Return small boosted trees of another library."""
    try:
        library = import_module(name)
    except ImportError as error:
        missing = error.name if error.name in EXTRAS else name
        raise PreconditionFailed(f"{named('teacher')} {name!r}: {_how_to_install(missing)}") from None
    if name == "xgboost":
        return library.XGBClassifier(n_estimators=40, max_depth=3, learning_rate=0.3)
    return library.LGBMClassifier(n_estimators=40, num_leaves=8, min_child_samples=5, verbosity=-1)


def _how_to_install(library: str) -> str:
    """Say what is missing, and the command that brings it."""
    return f'{library} is not installed; install it with: pip install "quorate[{EXTRAS[library]}]"'


def model_of(name: str, role: Role, *, folder: Path) -> Any:
    """Return the classifier that a name in ``quorate.toml`` stands for; with a colon, of a factory that is imported."""
    if ":" not in name:
        return built_in(name, role)
    module_name, _, factory_name = name.partition(":")
    try:
        model = getattr(imported(module_name, folder=folder), factory_name)()
    except Exception as error:  # noqa: BLE001 - the user's own code, before any row is there
        if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
            raise PreconditionFailed(f"{named(role)} {name!r}: {_how_to_install(error.name)}") from None
        raise InvalidParameter(
            f"{named(role)} {name!r} could not be made ({error}); expected an importable package.module:factory that "
            "takes no arguments and returns a scikit-learn classifier, or for a number a regressor"
        ) from None
    return model


def teacher_of(name: str, given: Mapping[str, Any], *, folder: Path) -> Any:
    """Return the teacher that ``[teachers]`` stands for; None where that is left open. `given`: what prompts or a
    command are made with beside; files of a command lie on the private side of the run's folder.
    """
    if not given:
        return None if name == DEFAULT_TEACHER else model_of(name, "teacher", folder=folder)
    if "command" in given:
        from quorate.ensemble import CommandTeacher

        return CommandTeacher(**given, folder=folder, place=folder / "private")
    from quorate.ensemble import ChatTeacher

    return ChatTeacher(**given, model=name)


def imported(module: str, *, folder: Path) -> Any:
    """Import a user's module; one that lies in `folder` is found too."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return import_module(module)


def import_events(module: str, *, audited: Path) -> None:
    """Import an installed module for the events that it registers. Nothing in the folder of the ledger is imported:
    whoever wrote it could have put a price rule beside it by which every charge is right.
    """
    with nothing_from(audited):
        try:
            import_module(module)
        except Exception as error:  # noqa: BLE001 - another's code, before the ledger is read
            raise InvalidParameter(
                f"module {module!r} cannot be imported: "
                + (
                    f"no installed module has this name, and none of the folder that is verified is imported "
                    f"({audited.resolve()}); install it, or put a copy that you have read elsewhere and name that "
                    "place in PYTHONPATH"
                    if _is_missing(error, module)
                    else _raised(module, error)
                )
            ) from None


@contextmanager
def nothing_from(folder: Path) -> Iterator[None]:
    """Have no module found in a folder meanwhile, whether it is the current one or named in PYTHONPATH."""
    before, place = list(sys.path), folder.resolve()
    sys.path[:] = [entry for entry in before if Path(entry).resolve() != place]
    try:
        yield
    finally:
        sys.path[:] = before


def mechanism_of(name: str, *, folder: Path) -> str | type[Mechanism]:
    """Return the mechanism that a name stands for: quorate's as its name, a user's own, imported, as its class."""
    from quorate.mechanisms import check_declared, is_own

    if ":" not in name:
        return name
    module_name, _, class_name = name.partition(":")
    module = _import(module_name, folder=folder, told=f"{named('mechanism')} {name!r}")
    kind = getattr(module, class_name, None)
    if kind is None:
        classes = [attribute for attribute, value in vars(module).items() if isinstance(value, type)]
        raise InvalidParameter(
            f"{named('mechanism')} {name!r}: the module has no class {class_name!r}{nearest(class_name, classes)}"
        )
    if isinstance(kind, type) and not is_own(kind):
        return kind.__name__
    return check_declared(kind)


def _import(module: str, *, folder: Path, told: str) -> Any:
    try:
        return imported(module, folder=folder)
    except Exception as error:  # noqa: BLE001 - the user's own code, before any row is there
        if _is_missing(error, module):
            why = f"there is no module {module!r}, installed or in {folder.resolve()}"
        else:
            why = _raised(module, error)
        raise InvalidParameter(f"{told} cannot be imported: {why}") from None


def _is_missing(error: Exception, module: str) -> bool:
    return isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")


def _raised(module: str, error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"{module!r} raises {type(error).__name__}: {said}" if said else f"{module!r} raises {type(error).__name__}"


def student_of(model: str, *, method: str, shares: str, folder: Path) -> Student:
    """Return the student that the names in ``[student]`` stand for, or refuse names that do not go together."""
    from quorate import students

    if shares not in {"values": SHARES, "noisy-labels": ("linear", "kernel")}.get(method, ("linear",)):
        raise InvalidParameter(
            f'[student] shares = "{shares}" does not go with method = "{method}"; "values" takes any, "noisy-labels" '
            '"linear" or "kernel", and no other method models shares'
        )
    if model == "shares" and method not in ("values", "noisy-labels"):
        raise InvalidParameter(
            f'[student] model = "shares" is what method = "values" or "noisy-labels" fits, got method = "{method}"'
        )
    estimator = None if model in ("auto", "shares") else model_of(model, "student", folder=folder)
    if isinstance(estimator, students.Student):
        if method != "auto":
            raise InvalidParameter(
                f"[student] model {model!r} returns a student, which has a method of its own; leave out method"
            )
        return estimator
    students_by_method: dict[str, Any] = {
        "auto": lambda: students.AutoStudent(estimator),
        "labels": lambda: students.LabelStudent(estimator),
        "noisy-labels": lambda: students.NoiseAwareStudent(estimator, shares=shares),  # type: ignore[arg-type]
        "values": lambda: students.VoteShareStudent(estimator, shares=shares),  # type: ignore[arg-type]
        "self-training": lambda: students.SelfTraining(estimator),
        "label-spreading": lambda: students.SpreadLabels(estimator),
        "label-propagation": lambda: students.SpreadLabels(estimator, method="propagation"),
        "voting-class": lambda: students.VotingClass(estimator),
    }
    student: students.Student = students_by_method[method]()
    return student


def scores_asked_for(mechanism: Any, *, prior_matching: bool) -> Callable[[Any, Any], Any] | None:
    """Return how scores of a fitted teacher are asked for; None where a run looks at its classes alone."""
    from quorate.ensemble.teachers.prior_matching import positive_scores
    from quorate.mechanisms import for_runs

    if prior_matching:
        return positive_scores
    chosen = for_runs().get(mechanism) if isinstance(mechanism, str) else mechanism
    takes = None if chosen is None else chosen.takes
    return (lambda model, rows: model.predict_proba(rows)) if takes == "scores" else None

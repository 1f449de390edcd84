"""Every sentence about privacy that people read, for a table of what may be guaranteed.

One combination says which estimator was fitted, which neighbours its partition covers, what one unit is, whether the
noise was seeded, and what else its ledger holds. None of the sentences may depend on private rows, so teachers are
replaced by votes that are made up; ``pytest -m heavy`` trains them, and must read the same.
"""

import re
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from sklearn.base import clone
from tests.golden import folders
from tests.golden.fits import CODES, ONLINE, PEOPLE, POOL, SEED, K, N, X
from tests.golden.learned import CUTS, UNLABELLED
from tests.golden.learned import X as POINTS
from tests.golden.printed import rows_of, sentences_of_card, sentences_of_page, settled

from quorate import (
    Budget,
    LabelPrivateClassifier,
    Ledger,
    PrivateClassifier,
    PrivateLogisticRegression,
    PublicPool,
    SubsampleAggregate,
)
from quorate.accounting import Guarantee
from quorate.errors import PrivacyWarning
from quorate.learners import AgnosticPrediction, ExponentialLearner, SubSampling
from quorate.report import Facts, InternalFacts, model_card, render_html, render_text
from quorate.types import Secret
from quorate.voting import kept_votes

session = import_module("quorate.release.session")  # the room has a function of that name

EPSILON, DELTA = 1.0, 1e-5
EARLIER = 5.0  # ε of the other fit, where a ledger is shared
LARGE = Budget(100.0, 1e-2)  # of a ledger that several share

ADDED, REPLACED, LABELS = "add, remove or replace", "replace only", "labels only"
STATED = "add, remove or replace, as the owner states"
EITHER = "add or remove, and replace at a price of its own"
OWN, IN_MEMORY, SHARED = "a file of its own", "in memory, not the first fit", "shared with an earlier one"
AFTER_SEEDED, MIXED = "shared with an earlier, seeded one", "shared with one of the other neighbours"
OTHER = {ADDED: REPLACED, REPLACED: ADDED, EITHER: REPLACED}


@dataclass(frozen=True, order=True)
class Combination:
    """What a guarantee may be about."""

    estimator: str
    neighbours: str
    unit: str
    noise: str
    ledger: str

    @property
    def seeded(self):
        return self.noise == "seeded"

    @property
    def title(self):
        return f"{self.estimator} · {self.neighbours} · {self.unit} · {self.noise} noise · ledger {self.ledger}"


# --- what is fitted ---------------------------------------------------------------------------------------------------


def _groups(unit):
    return PEOPLE if unit.startswith("person") else None


def _classifier(neighbours, unit, seed, ledger, epsilon=EPSILON):
    partition = "hash" if neighbours == ADDED else "balanced"
    made = PrivateClassifier(
        classes=["no", "yes"], epsilon=epsilon, delta=DELTA, n_teachers=K, queries="all", partition=partition,
        online_answers=ONLINE, n_records=N if unit == "record" else None, ledger=ledger, unsafe_noise_seed=seed,
        n_jobs=1,
    )  # fmt: skip
    return made.fit(X, np.array(["no", "yes"])[CODES % 2], public=PublicPool(POOL), groups=_groups(unit))


def _label_private(neighbours, unit, seed, ledger, epsilon=EPSILON):
    classes = "public" if unit == "label" else ["no", "yes"]
    made = LabelPrivateClassifier(
        classes=classes, epsilon=epsilon, delta=DELTA, n_teachers=K, queries=24, ledger=ledger,
        unsafe_noise_seed=seed, n_jobs=1,
    )  # fmt: skip
    return made.fit(X, np.array(["no", "yes"])[CODES % 2], groups=_groups(unit))


def _aggregate(neighbours, unit, seed, ledger, epsilon=4 * EPSILON):
    made = SubsampleAggregate(
        epsilon=epsilon, delta=1e-3, n_shards=100, cutoff=2, n_queries=12, ledger=ledger, unsafe_noise_seed=seed,
        n_jobs=1, partition="hash" if neighbours == ADDED else "balanced",
    )  # fmt: skip
    return made.fit(X, CODES, groups=_groups(unit))


def _direct(neighbours, unit, seed, ledger, epsilon=EPSILON):
    made = PrivateLogisticRegression(
        classes=[0, 1], epsilon=epsilon, delta=DELTA, feature_map="linear", ledger=ledger, unsafe_noise_seed=seed,
        n_records=N if neighbours == EITHER else None,
    )  # fmt: skip
    return made.fit(X, CODES % 2, public=PublicPool(POOL), groups=_groups(unit))


def _learner(learner):
    def fit(neighbours, unit, seed, ledger, epsilon=EPSILON):
        made = clone(learner).set_params(ledger=ledger, unsafe_noise_seed=seed, epsilon=epsilon)
        labels = np.where(np.arange(len(POINTS)) < 400, (POINTS[:, 0] < 9).astype(int), UNLABELLED)
        return made.fit(POINTS, (POINTS[:, 0] < 9).astype(int) if isinstance(made, SubSampling) else labels)

    return fit


DIRECT = "PrivateLogisticRegression"
ESTIMATORS = {
    "PrivateClassifier": _classifier,
    "LabelPrivateClassifier": _label_private,
    "SubsampleAggregate": _aggregate,
    DIRECT: _direct,
    "ExponentialLearner": _learner(ExponentialLearner(concepts=CUTS, epsilon=EPSILON)),
    "SubSampling": _learner(
        SubSampling(concepts=CUTS, base=ExponentialLearner(concepts=CUTS, epsilon=1.0), epsilon=EPSILON, n_labels=60)
    ),
    "AgnosticPrediction": _learner(AgnosticPrediction(concepts=CUTS, epsilon=EPSILON, n_queries=2)),
}
LEARNERS = tuple(ESTIMATORS)[4:]
RUN, VOTES = "quorate run", "quorate votes release"


def combinations():
    scopes = [
        *(
            (name, *scope)
            for name in ("PrivateClassifier", "SubsampleAggregate", RUN)
            for scope in product((ADDED, REPLACED), ("record", "person"))
        ),
        *((DIRECT, *scope) for scope in product((EITHER, REPLACED), ("record", "person"))),
        *(("LabelPrivateClassifier", LABELS, unit) for unit in ("label", "person's labels")),
        *((name, REPLACED, "record") for name in LEARNERS),
        *((VOTES, STATED, unit) for unit in ("record", "patient")),
    ]
    order = (*ESTIMATORS, RUN, VOTES)
    made = []
    for name, neighbours, unit in sorted(scopes, key=lambda scope: order.index(scope[0])):
        ledgers = {VOTES: [OWN], RUN: [OWN, SHARED]}.get(name, [OWN, IN_MEMORY, SHARED])
        made += [Combination(name, neighbours, unit, noise, kept) for noise in ("secret", "seeded") for kept in ledgers]
        if SHARED in ledgers:
            made.append(Combination(name, neighbours, unit, "secret", AFTER_SEEDED))
        refused = (name, neighbours) == (DIRECT, REPLACED)  # after what holds for adding or removing alone
        if neighbours in OTHER and name not in (RUN, *LEARNERS) and not refused:
            made.append(Combination(name, neighbours, unit, "secret", MIXED))
    return tuple(made)


# --- what is said -----------------------------------------------------------------------------------------------------


@contextmanager
def made_up_votes(*, trained):
    """Answer for the teachers, where they are not to be trained."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(session, "IN_THIS_PROCESS", session.UncountedFits()))
        if not trained:
            stack.enter_context(patch.object(kept_votes, "teachers", lambda *_, **__: _NoTeachers()))
            stack.enter_context(
                patch.object(kept_votes, "votes_of", lambda _task, _ensemble, asked, **__: _votes(len(asked)))
            )
            stack.enter_context(patch("quorate.folder.batch.teachers", lambda *_, **__: _NoTeachers()))
            stack.enter_context(patch("quorate.voting.ask.votes_of", lambda _t, _e, asked: _votes(len(asked))))
        yield


class _NoTeachers:
    """Stands where an ensemble would."""


def _votes(n):
    yes = np.arange(n) % (K + 1)
    return Secret(np.column_stack([K - yes, yes]))


def spoken(combination, *, trained=False):
    """Fit what a combination says, and gather every sentence about privacy."""
    with made_up_votes(trained=trained), TemporaryDirectory() as place:
        if combination.estimator in (RUN, VOTES):
            return _spoken_by_commands(combination, Path(place))
        return _spoken_by_estimator(combination, Path(place) / "ledger.db")


def _spoken_by_estimator(combination, path):
    fit, seed = ESTIMATORS[combination.estimator], SEED if combination.seeded else None
    neighbours, unit = combination.neighbours, combination.unit
    with ExitStack() as stack, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyWarning)
        ledger = path
        if combination.ledger == IN_MEMORY:
            ledger = None
            fit(neighbours, unit, seed, ledger)
        elif combination.ledger != OWN:
            ledger = stack.enter_context(Ledger(path, budget=LARGE))
            earlier = OTHER[neighbours] if combination.ledger == MIXED else neighbours
            fit(earlier, unit, SEED + 1 if combination.ledger == AFTER_SEEDED else None, ledger, epsilon=EARLIER)
            if combination.ledger == SHARED:
                ledger.raise_budget(Budget(LARGE.epsilon + 1, LARGE.delta), "approved by the board")
        made = fit(neighbours, unit, seed, ledger)
        said = said_of_guarantee(made.guarantee_)
        facts = made.facts() if hasattr(made, "facts") else getattr(made, "_facts", None)
        if facts is not None:
            said |= said_of_facts(facts)
        elif hasattr(made, "summary"):
            said["summary()"] = rows_of(made.summary())
    if caught:
        said["warning"] = [str(each.message) for each in caught if each.category is PrivacyWarning]
    return {where: [settled(each, path.parent) for each in lines] for where, lines in said.items()}


def said_of_guarantee(guarantee):
    return {
        "guarantee: str": [str(guarantee)],
        "guarantee: for the data subject": [guarantee.for_data_subject()],
        "guarantee: for a reviewer": [guarantee.for_reviewer()],
        "guarantee: for an engineer": [guarantee.for_engineer()],
        "guarantee: caveats": list(guarantee.caveats),
    }


def said_of_facts(facts):
    """Return the sentences of the report's two editions, the model card and the table that a run ends with.

    Those that a guarantee says of itself stand there once.
    """
    public = sentences_of_page(render_html(facts))
    internal = sentences_of_page(render_html(facts, "internal", Secret(InternalFacts())))
    promised = facts.guarantee
    once = {
        promised.odds: "(the odds, as the guarantee says them)",
        promised.promise: "(the promise, as the guarantee says it)",
        promised.for_reviewer(): "(for a reviewer, as the guarantee says it)",
    }
    return {
        "report": [once.get(line, line) for line in public],
        "report, internal edition": [line for line in internal if line not in public],
        "model card": [once.get(line, line) for line in sentences_of_card(model_card(facts))],
        "summary()": rows_of(render_text(facts)),
    }


def _spoken_by_commands(combination, place):
    commands = _run if combination.estimator == RUN else _votes_made_elsewhere
    seeds = {SHARED: (None, SEED if combination.seeded else None), AFTER_SEEDED: (SEED + 1, None)}
    said = {}
    for seed in seeds.get(combination.ledger, (SEED if combination.seeded else None,)):
        said = commands(combination, place / "my-run", seed, first=not said)
    return {where: [settled(each, place) for each in lines] for where, lines in said.items()}


def _run(combination, root, seed, *, first):
    """Go through the commands of a run; once more, with other settings, where the ledger is shared."""
    folders.write(
        root,
        mechanism="online_answers = 3" if first else "online_answers = 2",
        run=f"epsilon = {EPSILON}\ndelta = 1e-6" + ("" if seed is None else f"\nunsafe_noise_seed = {seed}"),
    )
    settings = root / "quorate.toml"
    text = settings.read_text(encoding="utf-8")
    if combination.unit == "person":
        private = (root / "private.csv").read_text(encoding="utf-8").splitlines()
        ids = ["person_id", *map(str, PEOPLE)]
        (root / "private.csv").write_text(
            "".join(f"{line},{who}\n" for line, who in zip(private, ids, strict=True)), encoding="utf-8"
        )
        text = text.replace("n_records = 240", 'unit = "person_id"')
    if combination.neighbours == REPLACED:
        text = text.replace("[teachers]", '[teachers]\npartition = "balanced"')
    settings.write_text(text, encoding="utf-8")
    said = {f"quorate {name}": _said_by(name, root) for name in ("check", "run", "status", "report")}
    said["quorate check"] = _unbroken(said["quorate check"])
    said["quorate run"] = rows_of("\n".join(said["quorate run"]))
    facts = Facts.from_json((root / "public" / "facts.json").read_text(encoding="utf-8"))
    said |= said_of_guarantee(facts.guarantee) | said_of_facts(facts)
    said["quorate ask"] = [line for line in _said_by("ask", root, root / "public.csv") if ":" in line or "left" in line]
    said["quorate ledger show"] = _said_by("ledger", "show", root)
    return said


def _votes_made_elsewhere(combination, root, seed, *, first):
    """Release counts of votes, in a folder of their own."""
    assert first
    counts = root.with_name("counts.csv")
    rows = _votes(24).reveal().tolist()
    counts.write_text("no,yes\n" + "".join(f"{no},{yes}\n" for no, yes in rows), encoding="utf-8")
    said = _said_by(
        "votes", "release", counts, "--classes", "no,yes", "--out", root, "--unit", combination.unit,
        "--epsilon", EPSILON, "--delta", DELTA,
        *([] if seed is None else ["--unsafe-noise-seed", seed]),
    )  # fmt: skip
    guarantee = Guarantee.from_json((root / "public" / "guarantee.json").read_text(encoding="utf-8"))
    return said_of_guarantee(guarantee) | {
        "quorate votes release": [line for line in said if line.startswith(("guarantee", "caveat"))],
        "quorate ledger show": _said_by("ledger", "show", root),
    }


def _said_by(*arguments):
    code, said = folders.command(*arguments)
    if code:
        raise AssertionError(said)
    return [line.rstrip() for line in said.splitlines() if line.strip()]


def _unbroken(lines):
    """Put together what a check breaks at 80 columns, so that a sentence is read as one."""
    whole = []
    for line in lines:
        if line.startswith(" " * 13) and whole:
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line)
    return whole


# --- the file ---------------------------------------------------------------------------------------------------------

HEAD = """\
Every sentence about privacy that people read, by where it is said. Before a sentence stand the combinations of which it
is said, by their number in the table. "all" stands for all those whose numbers are in the heading.

"""


def table():
    return {each: spoken(each) for each in combinations()}


def written(said):
    number = {each: i for i, each in enumerate(said, 1)}
    text = HEAD + "\n".join(f"{number[each]:>3}  {each.title}" for each in said) + "\n"
    for where in dict.fromkeys(where for lines in said.values() for where in lines):
        speakers = [number[each] for each, lines in said.items() if where in lines]
        text += f"\n\n# {where} [{shown(speakers)}]\n"
        sentences = dict.fromkeys(line for lines in said.values() for line in lines.get(where, ()))
        for sentence in sentences:
            whose = [number[each] for each, lines in said.items() if sentence in lines.get(where, ())]
            text += f"\n[{'all' if whose == speakers else shown(whose)}]\n{sentence}\n"
    return text


def shown(numbers):
    """Return rising numbers, with a dash for those that follow on each other."""
    runs = []
    for each in numbers:
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(map(str, run)) for run in runs)


def sentences(said):
    """Return what is said, without the order."""
    return {where: set(lines) for where, lines in said.items() if lines}


def read(text):
    """Return what the file says of each combination, by its title."""
    top, *places = re.split(r"^# ", text, flags=re.MULTILINE)
    titles = dict(re.findall(r"^ *(\d+)  (.*)$", top, flags=re.MULTILINE))
    said = {title: {} for title in titles.values()}
    for place in places:
        head, _, body = place.partition("\n")
        where, _, speakers = head.rstrip("]").rpartition(" [")
        for whose, line in re.findall(r"^\[(.+)\]\n(.*)$", body, re.MULTILINE):
            for each in _numbers(speakers if whose == "all" else whose):
                said[titles[each]].setdefault(where, set()).add(line)
    return said


def _numbers(whose):
    for part in whose.split():
        first, _, last = part.partition("-")
        yield from (str(each) for each in range(int(first), int(last or first) + 1))

"""Nothing secret on anything that somebody outside can see; and the walk that says so finds every planted secret."""

import contextlib
import logging
import os
import pickle
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from quorate import PrivateClassifier, PublicPool
from quorate.audit import Forbidden, Surfaces, find_leaks
from quorate.cli import main
from quorate.data import encode_labels
from quorate.deferred import skops
from quorate.estimators import either_method, resumable
from quorate.export import package
from quorate.folder import loaded, methods
from quorate.report import render_html, render_json
from quorate.voting import flow, kept_votes
from quorate.voting import method as voting_method

N, M, K = 1397, 60, 8  # an n that nothing else is likely to be


@dataclass
class Secrets:
    """What a run knew and nobody else may, overheard at the private side while it ran."""

    counts: Any = None
    coefficients: list[Any] = field(default_factory=list)

    @property
    def margins(self):
        ordered = np.sort(self.counts, axis=1)
        return ordered[:, -1] - ordered[:, -2]

    def forbidden(self):
        return [
            Forbidden("votes", arrays=[self.counts, self.counts[:, 0], self.counts[:, 1]]),
            Forbidden("margins", arrays=[self.margins]),
            Forbidden("teachers", arrays=self.coefficients, numbers=[float(self.coefficients[0][0])]),
            Forbidden("n", numbers=[N]),
            Forbidden("a person", texts=["Quorinda Überall"]),
        ]


@pytest.fixture
def secrets(monkeypatch):
    found = Secrets()
    votes, train = flow.votes, kept_votes.train_chunk

    def overheard_votes(*args, **how):
        ensemble, counts = votes(*args, **how)
        found.counts = counts.reveal().copy()
        return ensemble, counts

    def overheard_teachers(*args, **how):
        voters = train(*args, **how)
        found.coefficients += [voter.estimator.coef_.ravel() for voter in voters.reveal()]
        return voters

    monkeypatch.setattr(flow, "votes", overheard_votes)
    monkeypatch.setattr(kept_votes, "train_chunk", overheard_teachers)
    return found


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 5)), 4)
    return X, (X[:, 0] + rng.normal(0, 0.8, n) > 0).astype(np.int64)


def walk_an_estimator(folder, secrets):
    """Fit, use and write everything; return ``"fact on surface"`` for every leak."""
    X, y = rows(N, 1)
    groups = [f"person {number}" for number in range(N)]
    groups[3] = "Quorinda Überall"
    points = rows(5, 3)[0]
    with Surfaces() as seen:
        clf = PrivateClassifier(
            LogisticRegression(), classes=[0, 1], epsilon=4.0, delta=1e-5, n_teachers=K, online_answers=10, n_jobs=1
        )
        clf.fit(X, y, public=PublicPool(rows(M, 2)[0]), groups=groups)
        seen.add_object("clf", clf)
        for name in ("student_", "released_", "queries_", "recipe_", "guarantee_"):
            seen.add_object(f"clf.{name}", getattr(clf, name))
        seen.add_json("guarantee", clf.guarantee_.to_json())
        seen.add_object("answers", clf.ask(points))
        seen.add_object("predictions", [clf.predict(points), clf.predict_proba(points)])
        seen.add_text("summary", clf.summary(evaluation=rows(100, 4)))
        facts = clf.facts()
        seen.add_object("facts", facts)
        seen.add_text("facts.json", render_json(facts))
        seen.add_text("report", render_html(facts))
        seen.add_dump("pickle", clf, pickle.dumps)
        seen.add_dump("skops", clf, skops.io.dumps)
        clf.report(folder / "report.html")
        clf.export(folder / "student.skops")
        seen.add_files(folder, name="public")
        seen.attempt("spent", clf.ask, rows(50, 5)[0])
        seen.attempt("narrow", clf.predict, points[:, :2])
        seen.attempt("other label", clf.fit, X, y + 1, public=PublicPool(points))
        seen.attempt("too many", clf.set_params(n_teachers=N + 1).fit, X, y, public=PublicPool(points))
    return sorted({f"{leak.fact} on {leak.surface}" for leak in find_leaks(seen, secrets.forbidden())})


def walk_a_run(root, secrets):
    """Go through every command of the command line; return the leaks on what they print and on the public side."""
    X, y = rows(N, 1)
    names = [f"person {number}" for number in range(N)]
    names[3] = "Quorinda Überall"
    columns = [f"x{number}" for number in range(5)]
    private = pl.DataFrame(X, schema=columns).with_columns(y=pl.Series(y), person_id=pl.Series(names))
    private.write_csv(root / "private.csv")
    pl.DataFrame(rows(M, 2)[0], schema=columns).write_csv(root / "public.csv")
    (root / "quorate.toml").write_text(
        '[data]\nprivate = "private.csv"\npublic = "public.csv"\nlabel = "y"\nclasses = [0, 1]\nunit = "person_id"\n'
        f"[budget]\nepsilon = 4.0\ndelta = 1e-5\n[teachers]\ncount = {K}\n[run]\nn_jobs = 1\n"
    )
    run = str(root)
    with Surfaces() as seen:
        for command in (
            ["check", run], ["run", run], ["status", run], ["report", run], ["ledger", "show", run],
            ["ledger", "verify", run], ["export", run, "--to", str(root / "outbox")],
            ["export", run, "--format", "tre", "--model", "both", "--to", str(root / "airlock.zip")],
            ["export", run, "--format", "registry", "--to", str(root / "registry")],
            ["check-export", str(root / "airlock.zip")],
            ["check", run, "--json"], ["run", run, "--json"], ["status", run, "--json"], ["report", run, "--json"],
            ["ledger", "show", run, "--json"], ["export", run, "--to", run],
        ):  # fmt: skip
            with contextlib.suppress(SystemExit):
                main(command)
    for side in ("public", "outbox", "airlock.zip", "registry"):
        seen.add_files(root / side)
    seen.add_text("private: file names", "\n".join(path.name for path in (root / "private").iterdir()))
    seen.add_files(root / "ledger.db")
    return sorted({f"{leak.fact} on {leak.surface}" for leak in find_leaks(seen, secrets.forbidden())})


@pytest.mark.heavy
def test_a_fitted_estimator_shows_nothing_secret_anywhere(tmp_path, secrets):
    assert walk_an_estimator(tmp_path, secrets) == []
    assert secrets.counts.shape == (M, 2)
    assert len(secrets.coefficients) == K


@pytest.mark.heavy
def test_the_command_line_and_its_files_show_nothing_secret(tmp_path, secrets):
    assert walk_a_run(tmp_path, secrets) == []
    assert {path.name for path in (tmp_path / "public").iterdir()} >= {"labels.csv", "student.skops", "report.html"}


def test_no_message_about_a_label_outside_classes_shows_the_label():
    with Surfaces() as seen:
        seen.attempt("labels", encode_labels, ["no", "Quorinda Überall"], ["no", "yes"])
    assert find_leaks(seen, [Forbidden("a person", texts=["Quorinda"])]) == []


# What takes long is to walk, so several are planted for one walk: on different surfaces, of which none shows another's
# secret too. Without any, the walks above find nothing.


def _conduct(monkeypatch, plant, secrets):
    """Let `plant` do its mischief with what a journey brings home."""
    for module in (resumable, voting_method):
        real = module.run_pipeline

        def planted(*args, real=real, **how):
            return plant(secrets, real(*args, **how))

        monkeypatch.setattr(module, "run_pipeline", planted)


def conducted(act):
    """Do this with what a journey brings home."""

    def home(found, outcome):
        act(found, outcome)
        return outcome

    return lambda monkeypatch, secrets: _conduct(monkeypatch, home, secrets)


def altered(holder, name, change):
    """Make this of what a function returns."""

    def plant(monkeypatch, secrets):
        real = getattr(holder, name)
        monkeypatch.setattr(holder, name, lambda *args, **how: change(secrets, real(*args, **how)))

    return plant


def plant_in_repr(monkeypatch, secrets):
    monkeypatch.setattr(PrivateClassifier, "__repr__", lambda self: f"PrivateClassifier(fitted on {N} rows)")


def plant_in_html(monkeypatch, secrets):
    monkeypatch.setattr(PrivateClassifier, "_repr_html_", lambda self: f"<b>{N:,} rows</b>", raising=False)


def plant_in_an_error(monkeypatch, secrets):
    real = either_method.FittedRun.public_rows

    def fail(self, X, **how):
        if X.shape[1] != 5:
            raise ValueError(f"a model that saw {N} rows is asked about {X.shape[1]} columns")
        return real(self, X, **how)

    monkeypatch.setattr(either_method.FittedRun, "public_rows", fail)


def with_votes(secrets, fitted):
    fitted.votes_ = secrets.counts
    return fitted


log = conducted(lambda found, _: logging.getLogger("quorate.run").debug("margins %s", found.margins.tolist()))
warning = conducted(lambda found, _: warnings.warn(f"close votes: {found.margins.tolist()}", stacklevel=2))
stdout = conducted(lambda found, _: print(found.counts[:, 1].tolist()))
student = conducted(lambda found, outcome: setattr(outcome.model, "start_", found.coefficients[4]))
told_guarantee = altered(either_method, "guarantee", lambda _, made: replace(made, caveats=(f"n = {N}",)))
told_facts = altered(either_method, "facts", lambda _, made: replace(made, setup=replace(made.setup, n_records=N)))
attribute = altered(PrivateClassifier, "fit", with_votes)

ESTIMATOR_PLANTS = [
    {
        plant_in_repr: "n on clf.repr",
        plant_in_html: "n on clf._repr_html_",
        log: "margins on log",
        warning: "margins on warning",
        stdout: "votes on stdout",
        plant_in_an_error: "n on narrow",
        told_facts: "n on report",  # not beside a guarantee that says it, which a report quotes
        attribute: "votes on clf",
    },
    {told_guarantee: "n on guarantee.json", student: "teachers on public/student.skops"},
]


def not_found(plants, leaks):
    return [where for where in plants.values() if not any(leak.startswith(where) for leak in leaks)]


@pytest.mark.heavy
@pytest.mark.parametrize("plants", ESTIMATOR_PLANTS, ids=["shown", "kept"])
def test_secrets_planted_on_surfaces_of_an_estimator_are_found_on_each(tmp_path, secrets, monkeypatch, plants):
    for plant in plants:
        plant(monkeypatch, secrets)
    assert not_found(plants, walk_an_estimator(tmp_path, secrets)) == []


def labels_with_votes(secrets, written):
    votes = ["votes", *map(str, secrets.counts[:, 1])]
    return "".join(f"{line},{vote}\n" for line, vote in zip(written.splitlines(), votes, strict=True))


def plant_in_progress(monkeypatch, secrets):
    real = kept_votes.teachers

    def told(task, stages, see, **how):
        see(f"training on {len(task.inputs.private.reveal().codes)} rows", 0, 1)
        return real(task, stages, see, **how)

    monkeypatch.setattr(kept_votes, "teachers", told)


def plant_a_stray_file(monkeypatch, secrets):
    real = methods.publish_run

    def publish(folder, *args, **how):
        facts = real(folder, *args, **how)
        np.save(folder.public / "debug.npy", secrets.counts)
        return facts

    monkeypatch.setattr(methods, "publish_run", publish)


def plant_the_private_side_in_a_package(monkeypatch, secrets):
    """The mistake that matters most: a package takes a file from the other side of the boundary along."""
    real = package.published_files

    def taken_along(root, **how):
        return {**real(root, **how), "audit.json": (root / "private" / "votes.stage").read_bytes()}

    monkeypatch.setattr(package, "published_files", taken_along)


labels = altered(loaded, "labels_csv", labels_with_votes)
why = {"why": ["Quorinda Überall is in it"]}
checked = altered(voting_method.VOTES, "check", lambda _, made: ({**made[0], **why}, made[1]))

RUN_PLANTS = [
    {
        plant_the_private_side_in_a_package: "votes on airlock.zip",
        plant_in_progress: "n on stderr",
        checked: "a person on stdout",
    },
    {  # which a package takes along
        labels: "votes on public/labels.csv",
        plant_a_stray_file: "votes on public/debug.npy",
    },
]


@pytest.mark.heavy
@pytest.mark.parametrize("plants", RUN_PLANTS, ids=["said", "published"])
def test_secrets_planted_on_surfaces_of_a_run_are_found_on_each(tmp_path, secrets, monkeypatch, plants):
    for plant in plants:
        plant(monkeypatch, secrets)
    assert not_found(plants, walk_a_run(tmp_path, secrets)) == []


def test_a_journey_that_ends_in_an_error_says_nothing_secret(secrets, tmp_path):
    """A student that fails does so after the votes were counted; what it raises is seen by everybody."""

    own = os.getpid()

    class Fails(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if os.getpid() == own:  # it is tried in a child
                raise RuntimeError("no licence")
            return super().fit(X, y, sample_weight)

    X, y = rows(N, 1)
    with Surfaces() as seen:
        clf = PrivateClassifier(
            LogisticRegression(), Fails(), classes=[0, 1], epsilon=4.0, delta=1e-5, n_teachers=K, n_jobs=1
        )
        seen.attempt("fit", clf.fit, X, y, public=PublicPool(rows(M, 2)[0]))
        seen.add_object("clf", clf)
    assert "fit.traceback" in seen.names
    assert find_leaks(seen, secrets.forbidden()) == []


@pytest.fixture(autouse=True)
def _own_warnings():
    with warnings.catch_warnings():
        yield

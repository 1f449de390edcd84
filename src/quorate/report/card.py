"""A model card: the report as Markdown, for the place where the student is published."""

from __future__ import annotations

import json
import re
from typing import Any

from quorate.accounting.figures import at_most, several
from quorate.report import of_numbers, sentences
from quorate.report.facts import Facts
from quorate.report.method import words_of
from quorate.report.notation import escaped, percent, shortened, visible, wilson_interval
from quorate.report.sentences import about_the_model, balanced, commonest_class
from quorate.report.student_file import how_to_use
from quorate.report.utility import Score

_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$-])")
_LISTED_CLASSES = 30
_LISTED_COLUMNS = 50

LIMITS = (
    "The model is meant for rows like the public ones. A rare class is learnt badly: see the figures per class in the "
    "report."
)


def model_card(facts: Facts) -> str:
    """Return a model card in Markdown, made from the same facts and sentences as the public report.

    Notes
    -----
    It begins with front matter (YAML) as model hubs read it: library, task, tags, and the student's scores. The
    headings, in order::

        # <title>
        ## The model
        ## How to use it
        ## Privacy guarantee
        ## What the guarantee does not cover
        ## Utility
        ## Intended use and limits
        ## Provenance
    """
    setup, spending, origin = facts.setup, facts.spending, facts.provenance
    unpromised = "no promise; with secret noise " * facts.seeded
    lines = [
        _front_matter(facts),
        f"# {_plain(origin.run)}",
        *([f"> **{sentences.SEEDED.capitalize()}.** {sentences.SEEDED_WHY}"] if facts.seeded else []),
        "## The model",
        _plain(words_of(facts).card(facts)),
        _classes(facts),
        "## How to use it",
        how_to_use(facts.student_file, seeded=facts.seeded),
        *_columns(facts),
        "## Privacy guarantee",
        *([_plain(f"{one_row.capitalize()}.")] if (one_row := facts.guarantee.neighbouring.whose_rows) else []),
        _plain(facts.guarantee.promise),
        *([] if facts.seeded else [_plain(f"{facts.guarantee.odds} {sentences.by_the_exact_price(facts)}".strip())]),
        _table(
            ("", "value"),
            (
                ("ε", f"{unpromised}at most {at_most(facts.guarantee.epsilon)}"),
                ("δ", f"{unpromised}at most {at_most(facts.guarantee.delta)}"),
                ("unit", setup.unit),
                ("neighbouring data sets", facts.guarantee.neighbours),
                *((("ε, by what is compared", facts.guarantee.figures),) if facts.guarantee.also else ()),
                ("mechanism", facts.guarantee.mechanism),
                ("accounting", facts.guarantee.accounting),
                ("charged", f"ε {at_most(spending.spent_epsilon)} of {at_most(spending.budget_epsilon)}"),
                ("left", sentences.left(facts)),
                ("budget", sentences.cap(facts)),
                *(("budget raised", line) for line in sentences.raises(facts)),
            ),
        ),
        "## What the guarantee does not cover",
        "\n".join(f"- {_plain(line)}" for line in (*sentences.not_protected(facts), *sentences.open_questions(facts))),
        "## Utility",
        _utility(facts),
        "## Intended use and limits",
        f"{LIMITS} {_plain(setup.trust_model)}",
        *([f"Data collection: {_plain(setup.data_collection)}"] if setup.data_collection else []),
        "## Provenance",
        _table(
            ("", "value"),
            (
                ("started", origin.started),
                ("noise", f"{origin.noise}; {sentences.SEEDED}" if facts.seeded else origin.noise),
                ("ledger head", f"{origin.ledger_head} ({several(origin.ledger_entries, 'entry')})"),
                *origin.versions,
                *origin.hashes,
                *origin.public_digests,
                *origin.registry,
            ),
        ),
    ]
    return "\n\n".join(lines) + "\n"


def _front_matter(facts: Facts) -> str:
    """What a model hub reads: YAML, of which JSON is a part, so that no name can write YAML of its own."""
    score, guarantee = facts.utility.student, facts.guarantee
    task = "tabular-classification" if facts.student_file is None else facts.student_file.task
    if facts.setup.target_range is not None:
        task = task.replace("classification", "regression")
    tags = ["differential-privacy", "quorate", "seeded-noise-no-guarantee" if facts.seeded else "private-learning"]
    tree: dict[str, Any] = {
        "library_name": "sklearn",
        "pipeline_tag": task,
        "tags": ["sklearn", "skops", task, *tags],
        "privacy": {
            "epsilon": None if facts.seeded else guarantee.epsilon,
            "delta": None if facts.seeded else guarantee.delta,
            "unit": guarantee.unit,
            "neighbours": guarantee.neighbours,
        },
    }
    metrics, n_rows = [], 0
    if (of_number := facts.utility.number) is not None:
        metrics, n_rows = of_numbers.metrics(of_number), of_number.n_rows
    if score is not None:
        n_rows = score.n_rows
        metrics = [{"type": "accuracy", "value": score.accuracy}]
        if score.balanced_accuracy is not None:
            metrics.append({"type": "balanced_accuracy", "value": score.balanced_accuracy})
        if score.chosen is not None and score.chosen.scoring != "balanced_accuracy":
            metrics.append({"type": score.chosen.scoring, "value": score.chosen.value})
    if metrics:
        data = {"name": f"{n_rows} public rows with labels", "type": "public"}
        tree["model-index"] = [
            {"name": facts.provenance.run, "results": [{"task": {"type": task}, "dataset": data, "metrics": metrics}]}
        ]
    lines = [f"{name}: {escaped(json.dumps(value, ensure_ascii=False))}" for name, value in tree.items()]
    return "\n".join(("---", *lines, "---"))


def _classes(facts: Facts) -> str:
    if (predicted := of_numbers.target(facts)) is not None:
        return f"Predicted: {predicted}. Predictions are cut off there by quorate, and not by the file itself."
    names = facts.setup.classes
    more = len(names) - _LISTED_CLASSES
    listed = ", ".join(_plain(shortened(visible(name), 60)) for name in names[:_LISTED_CLASSES])
    return f"Classes: {listed}{f', and {more:,} more' if more > 0 else ''}."


def _columns(facts: Facts) -> list[str]:
    """What each column of a table holds, and how it is written; nothing where rows have no names."""
    columns = () if facts.student_file is None else facts.student_file.known_columns
    if not columns:
        return []
    rows = tuple((shortened(visible(column.name), 60), column.words) for column in columns[:_LISTED_COLUMNS])
    more = len(columns) - _LISTED_COLUMNS
    rest = [f"{more:,} more columns stand in facts.json."] if more > 0 else []
    return ["What a table holds, as quorate.load() and the service read it:", _table(("column", "cells"), rows), *rest]


def _utility(facts: Facts) -> str:
    scores = (
        ("student", facts.utility.student),
        ("released answers", facts.utility.ensemble),
        ("without privacy (not covered by the guarantee)", facts.utility.non_private),
    )
    rows = tuple((name, *_score(score)) for name, score in scores if score is not None)
    name, student = commonest_class(facts, facts.utility.student), facts.utility.student
    if name is not None and student is not None and student.commonest is not None:
        beside = percent(student.commonest), "—", percent(balanced(student)), f"{student.n_rows:,}"
        rows += ((f"always “{name}”, the commonest class", *beside),)
    said = {key: _plain(sentence) for key, sentence in about_the_model(facts).items()}
    figures = f"{scored}." if (scored := of_numbers.scored(facts)) is not None else None
    if figures is None and rows:
        figures = _table(("labels by", "accuracy", "95 % interval", "balanced accuracy", "public rows"), rows)
    else:
        said = {key: sentence for key, sentence in said.items() if key in ("calibrated", "sets")}
    return "\n\n".join((figures or "There are no public labels to measure against.", *said.values()))


def _score(score: Score) -> tuple[str, ...]:
    low, high = wilson_interval(score.accuracy, score.n_rows)
    balanced = "not measured" if score.balanced_accuracy is None else percent(score.balanced_accuracy)
    return (percent(score.accuracy), f"{percent(low)} to {percent(high)}", balanced, f"{score.n_rows:,}")


def _table(heads: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> str:
    lines = ("| " + " | ".join(_plain(cell) for cell in row) + " |" for row in (heads, *rows))
    head, *body = lines
    return "\n".join((head, "|" + "---|" * len(heads), *body))


def _plain(text: str) -> str:
    """Escape what Markdown or HTML would obey."""
    return _MARKS.sub(r"\\\1", visible(text))

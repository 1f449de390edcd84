"""``quorate audit``: claimed against measured, for a finished run or a mechanism; or the auditor on known cheats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.arguments import nearest
from quorate.cli.options import as_json, fields_of, mechanism_class, mechanism_fields, number, print_json, whole
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.run.progress import progress

if TYPE_CHECKING:
    from quorate.audit import ScheduleAudit
    from quorate.audit.cheats import Case
    from quorate.audit.detectable import DetectableSize
    from quorate.folder.audited import RunAudit

WIDTH = 80
EVERY = "every"  # mechanism
CHEATS_CONFIDENCE = 1 - 1e-6  # a correct twin is called a cheat in one of a million audits


@click.command(name="audit")
@click.argument("run", type=click.Path(file_okay=False, path_type=Path), default=Path(), metavar="[RUN|MECHANISM]")
@click.option("--runs", type=whole, help="How often one answer is drawn.  [default: 100000]")
@click.option("--confidence", type=number, help="Of all bounds together.  [default: 0.95; for cheats 0.999999]")
@click.option("--seed", type=whole, help="Of the audit, so that it can be repeated; the run's noise is not touched.")
@click.option("--jobs", "n_jobs", type=whole, default=1, show_default=True, help="Processes.")
@click.option("--show-cheats", is_flag=True, help="Audit broken mechanisms and their correct twins instead of a run.")
@click.option(
    "--sizes",
    is_flag=False,
    flag_value=EVERY,
    metavar="[NAME]",
    help="Show how small a fault is found in a mechanism, by its class name (default: in each), instead of a run.",
)
@click.option(
    "--measure",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --sizes: measure them anew, into this JSON file; what it holds already is kept. Takes minutes.",
)
@mechanism_fields
@click.option("--epsilon", type=number, help="Of a MECHANISM: what all its answers may cost, where no noise is set.")
@click.option("--delta", type=number, default=1e-5, show_default=True, help="Of a MECHANISM: at which ε is told.")
@click.option("--n-teachers", type=whole, default=250, show_default=True, help="Of a MECHANISM: how many would vote.")
@click.option("--n-classes", type=whole, default=2, show_default=True, help="Of a MECHANISM: for how many classes.")
@click.option("--answers", type=whole, default=100, show_default=True, help="Of a MECHANISM: all it would give.")
@as_json
def command(
    run: Path,
    runs: int | None,
    confidence: float | None,
    seed: int | None,
    n_jobs: int,
    show_cheats: bool,
    sizes: str | None,
    measure: Path | None,
    as_json: bool,
    given: tuple[str, ...],
    epsilon: float | None,
    **of_mechanism: Any,
) -> None:
    """Attack the mechanism of a finished RUN (default: here), and compare what that proves with what was claimed.

    The run's own code and noise answer made-up votes on which one changed teacher shows most, once and for all its
    answers together. Its teachers and its partition are tried on public rows. Nothing private is looked at and nothing
    is charged; the result goes to public/audit.json and into the report. A pass is not a proof; how small a fault would
    have been found is said beside it, where that was measured. The exit code is 0 whatever is found; programs read
    "violated".

    A MECHANISM is a name such as GaussianNoisyMax, or package.module:Class of your own, which is imported. It is
    attacked in the same way, as a run would use it; --set gives its fields.
    """
    if show_cheats:
        _show_cheats(runs, CHEATS_CONFIDENCE if confidence is None else confidence, seed, n_jobs, as_json)
        return
    if measure is not None and sizes is None:
        raise InvalidParameter("--measure takes --sizes, and measures these; to audit a run, leave it out")
    if sizes is not None:
        _show_sizes(sizes, measure, as_json)
        return
    from quorate.folder.audited import publish_audit
    from quorate.folder.audits import RUNS
    from quorate.folder.methods import audit, read_run
    from quorate.folder.published import read_facts
    from quorate.mechanisms import for_runs

    how: dict[str, Any] = {
        "runs": RUNS if runs is None else runs,
        "confidence": 0.95 if confidence is None else confidence,
        "seed": seed,
        "n_jobs": n_jobs,
    }
    if _is_mechanism(run):
        _audit_mechanism(str(run), fields_of(given), epsilon, of_mechanism, how, as_json)
        return
    if given or epsilon is not None:
        raise InvalidParameter("--set and --epsilon are for a MECHANISM; a run has its own in quorate.toml")
    if not run.exists():
        near = nearest(run, for_runs()) or "; give the folder of a run"
        raise PreconditionFailed(f"there is no folder and no mechanism called {run}{near}")
    facts = read_facts(run)
    read = read_run(run)
    with progress(quiet=as_json) as watch:
        result = audit(read, watch=watch, **how)
    publish_audit(read.folder, facts, result)
    if as_json:
        print_json(result.tree())
        return
    click.echo("\n".join(_lines(result)))
    click.echo(f"wrote {read.folder.public / 'audit.json'} and the report; that took {result.seconds:.0f} s")


def _is_mechanism(place: Path) -> bool:
    from quorate.mechanisms import for_runs

    return not place.is_dir() and (":" in place.name or str(place) in for_runs())


def _audit_mechanism(
    name: str,
    fields: dict[str, Any],
    epsilon: float | None,
    task: dict[str, Any],
    how: dict[str, Any],
    as_json: bool,
) -> None:
    from quorate.folder.audits import AuditOptions, audit_alone, mechanism_to_audit
    from quorate.voting.method import mechanism_in_words

    mechanism = mechanism_to_audit(mechanism_class(name, "MECHANISM"), fields, epsilon=epsilon, **task)
    with progress(quiet=as_json) as watch:
        result = audit_alone(mechanism, AuditOptions(watch=watch, **how), **task)
    if as_json:
        print_json({"mechanism": mechanism_in_words(mechanism), **result.tree()})
        return
    click.echo("\n".join([*_wrapped(mechanism_in_words(mechanism)), *_lines(result)]))


def _lines(result: RunAudit) -> list[str]:
    """One line an attack, then the shards, then the verdict."""
    from quorate.accounting.figures import at_least, at_most

    wide = WIDTH - 42
    lines = [f"{'attack':<{wide}}{'claimed ε':>11}{'proved ε':>10}{'trials':>9}{'confid.':>12}"]
    for attack in result.attacks:
        name, *rest = _wrapped(attack.name, wide - 1)
        lines.append(
            f"{name:<{wide}}{at_most(attack.claimed):>11}{at_least(attack.proved):>10}{attack.result.trials:>9,}"
            f"{_rounded_down(attack.result.confidence):>12}"
        )
        lines += [f"  {line}" for line in rest]
    return [
        *lines,
        *_compared(result.schedule),
        "",
        *_wrapped(f"{result.beside}: {result.shards_in_words}"),
        *_wrapped(result.verdict),
        *(line for sentence in (*result.sight_sentences, *result.size_sentences) for line in _wrapped(sentence)),
    ]


def _compared(result: ScheduleAudit) -> list[str]:
    """Return a sparse vector's answers beside their exact distribution; nothing for other mechanisms."""
    if not result.comparisons:
        return []
    from quorate.accounting.figures import at_least, at_most

    wide = WIDTH - 42
    lines = ["", f"{'answers':<{wide}}{'observed':>11}{'expected':>10}{'runs':>9}{'confid.':>12}"]
    for row in result.comparisons:
        lines.append(f"{row.name}:")
        event = _wrapped(row.event, wide - 3)
        lines.append(
            f"  {event[0]:<{wide - 2}}{row.observed:>11.4g}{row.expected:>10.4g}{row.trials:>9,}"
            f"{_rounded_down(row.confidence):>12}"
        )
        lines += [f"  {line}" for line in event[1:]]
    if result.stage is not None:
        lines += _wrapped(
            f"One stage was charged ε = {at_most(result.stage.claimed)}; an exact sum over its noise gives a "
            f"privacy loss of {at_least(result.stage.exact)}."
        )
    return lines


def _show_cheats(runs: int | None, confidence: float, seed: int | None, n_jobs: int, as_json: bool) -> None:
    from dataclasses import replace

    from quorate.audit.cheats import CHEATS, HONEST

    cases = [(case if runs is None else replace(case, runs=runs), broken) for broken, group in
             ((True, CHEATS), (False, HONEST)) for case in group]  # fmt: skip
    rows: list[dict[str, Any]] = []
    with progress(quiet=as_json) as watch:
        tell = watch or (lambda stage, done, total: None)
        for case, broken in cases:
            tell("auditing", len(rows), len(cases))
            rows.append(_row(case, broken, case.audit(confidence, seed=seed, n_jobs=n_jobs)))
        tell("auditing", len(rows), len(cases))
    if as_json:
        print_json({"confidence": confidence, "seed": seed, "cases": rows})
        return
    for broken, title in ((True, "Broken"), (False, "Correct twins")):
        of_group = [row for row in rows if row["broken"] == broken]
        click.echo(f"{title:<44}{'claimed':>12}{'proved':>12}{'caught':>8}")
        for row in of_group:
            claimed = f"{row['quantity']} = {row['claimed']:.3g}"
            proved = f"{row['quantity']} ≥ {row['lower_bound']:.3g}"
            click.echo(f"{row['name']:<44}{claimed:>12}{proved:>12}{'yes' if row['caught'] else 'no':>8}")
            _say(row["source"], indent=4)
        click.echo("")
    caught, broken_ones = sum(row["caught"] for row in rows if row["broken"]), sum(row["broken"] for row in rows)
    wrongly = sum(row["caught"] for row in rows if not row["broken"])
    click.echo(f"{caught} of {broken_ones} broken ones caught, {wrongly} of {len(rows) - broken_ones} correct ones.")
    _say(
        f"Each bound holds with confidence {_percent(confidence)}. A mechanism that is not caught is not proved "
        "correct: another attack may find more."
    )


def _show_sizes(name: str, measure: Path | None, as_json: bool) -> None:
    """Print the stored sizes, of one mechanism or of each; or measure them and print those."""
    from quorate.arguments import one_of
    from quorate.audit.detectable import stored_sizes, write_sizes
    from quorate.mechanisms import REGISTERED

    names = tuple(REGISTERED) if name == EVERY else (one_of("--sizes", name, tuple(REGISTERED)),)
    rows = [row for row in stored_sizes() if row.setting.mechanism in names]
    if measure is not None:
        rows = _measured(names, measure, quiet=as_json)
    if as_json:
        click.echo(write_sizes(rows), nl=False)
        return
    for mechanism in names:
        of_one = [row for row in rows if row.setting.mechanism == mechanism]
        if of_one:
            _say(f"{mechanism}: {of_one[0].setting_in_words}")
        for row in of_one:
            words = row.fault_in_words if row.found else f"not even {row.fault_in_words}"
            _say(f"{words} ({row.attack})", indent=2)
    if rows:
        often, surely = min(row.probability for row in rows), min(row.certainty for row in rows)
        _say(
            f"A fault of this size is found with probability {often:g} or more; measured with confidence "
            f"{_percent(surely)}, on copies of the mechanism that have the fault."
        )


def _measured(names: tuple[str, ...], path: Path, *, quiet: bool) -> list[DetectableSize]:
    """Measure the rows that a file does not hold; the file is written after each."""
    from quorate.audit.detectable import read_sizes, write_sizes
    from quorate.audit.measured_sizes import FAULTS, rows_of

    if not path.resolve().parent.is_dir():
        raise InvalidParameter(f"--measure must name a file in a folder that exists, got {path}; make the folder first")
    kept = read_sizes(path.read_text(encoding="utf-8")) if path.exists() else ()
    rows: list[DetectableSize] = []
    with progress(quiet=quiet) as watch:
        for row in rows_of(names, kept):
            rows.append(row)
            done = {(size.setting.mechanism, size.fault) for size in rows}
            others = [old for old in kept if (old.setting.mechanism, old.fault) not in done]
            partly = path.with_name(f"{path.name}.partly")
            partly.write_text(write_sizes([*rows, *others]), encoding="utf-8")
            partly.replace(path)  # at once, so that a file that was stopped at can be gone on with
            if watch is not None:
                watch("measuring", len(rows), len(names) * len(FAULTS))
    return rows


def _row(case: Case, broken: bool, result: Any) -> dict[str, Any]:
    return {
        "name": case.name,
        "source": case.source,
        "broken": broken,
        "quantity": result.claimed.quantity,
        "claimed": result.claimed.bound,
        "lower_bound": result.lower_bound,
        "caught": result.violated,
        "trials": result.trials,
        "seconds": result.seconds,
    }


def _percent(share: float) -> str:
    return f"{100 * share:.10g} %"


def _rounded_down(confidence: float) -> str:
    """Return a confidence in per cent, with two digits of what is missing, never above it.

    >>> _rounded_down(1 - 0.05 / 3), _rounded_down(1 - 1e-6)
    ('98.3 %', '99.9999 %')
    """
    from math import floor, log10

    missing = 100 * (1 - confidence)
    digits = max(0, 1 - floor(log10(missing)))
    return f"{floor((100 - missing) * 10**digits * (1 + 1e-12)) / 10**digits:.10g} %"


def _say(text: str, *, indent: int = 0) -> None:
    for line in _wrapped(text, WIDTH - indent):
        click.echo(f"{'':{indent}}{line}")


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    from textwrap import wrap

    return wrap(text, width, break_long_words=False, break_on_hyphens=False)

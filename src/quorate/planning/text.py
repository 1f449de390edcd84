"""A plan in the terminal: what a budget would buy, best first, in 80 columns."""

from __future__ import annotations

from textwrap import wrap

from quorate.accounting.figures import at_most, plural, several
from quorate.accounting.neighbouring import Neighbouring
from quorate.ambient import own_switches
from quorate.planning.margins import MATTERS, MOST_QUERIES, AnswerProbabilities
from quorate.planning.plan import AtEpsilon, Plan
from quorate.planning.plan_row import PlanRow
from quorate.report.notation import TERMINAL, percent, shortened, under_label
from quorate.run.expectation import BASES
from quorate.students.scores import SCORE_WORDS

MOST_ROWS = 12  # that can answer; the rest are in the JSON and the page
ROUGHLY = "rehearsed once, so that its figure is rough: it comes after the rows that were rehearsed in full"
SHOWN_MARGINS = (0.2, 0.6, 1.0)
_HEAD = f" {'method':<22}{'teachers':>8}{'queries':>8}  {'noise':<12}{'answered':>8}  expected"


def render_plan(plan: Plan) -> str:
    """Return the plan as text; the last line ends without a line break."""
    expected = plan.first.expected
    basis = None if expected is None else BASES[expected.basis]  # which stands beside the first row
    return "\n".join(
        (
            *wrap(task(plan), TERMINAL),
            "",
            *_rows(plan),
            *_first(plan),
            *_cannot(plan),
            *_crossing(plan),
            *_epsilons(plan),
            *_words("odds", odds(plan)),
            *(line for note in plan.notes if note != basis for line in _words("note", note)),
        )
    )


class PrintedPlan(Plan):
    """A plan that prints as ``quorate plan`` prints it."""

    __slots__ = ()

    @own_switches()
    def __str__(self) -> str:
        return render_plan(self)


def odds(plan: Plan) -> str:
    """Say what the budget means, in odds."""
    exact = plan.worlds_of_first
    by = f"{plan.worlds:,} on average, by ε and δ alone"
    if exact is not None and exact != plan.worlds:
        by = f"{exact:,} on average, by the exact price of the first row; ε and δ alone would allow {plan.worlds:,}"
    return (
        f"of 1,000 equally likely pairs of worlds that differ in one {plan.facts.unit}, whoever sees all that is "
        f"released names the real one in at most {by}; a coin names 500"
    )


def task(plan: Plan) -> str:
    """Say in a line what is planned for."""
    facts = plan.facts
    rows = "" if facts.n_rows is None else f" with {several(facts.n_rows, 'row')}"
    sizes = (several(facts.n_public, "public row"), several(facts.n_classes, "class"), several(facts.width, "column"))
    return (
        f"ε = {at_most(facts.epsilon)}, δ = {at_most(facts.delta)} for any one {facts.unit}: "
        f"{several(facts.n_records or 0, facts.unit)}{rows}, {', '.join(sizes)}"
    )


def _rows(plan: Plan) -> list[str]:
    able = plan.answering
    lines = [_HEAD, "─" * TERMINAL, *(_row(row, "~" if plan.is_brief(row) else " ") for row in able[:MOST_ROWS])]
    if len(able) > MOST_ROWS:
        lines.append(f" and {several(len(able) - MOST_ROWS, 'row')} more: --json or --html shows them")
    share = "— no labels" if plan.commonest is None else f"{always(plan):.3f}"
    lines += [f" {'always the commonest class':<62}{share}", "─" * TERMINAL]
    if plan.scoring != "accuracy":
        why = "it was asked for" if plan.score_was_asked_for else "a class is rare"
        lines += _words("expected", f"{SCORE_WORDS[plan.scoring]}, since {why}")
    if any(plan.is_brief(row) for row in able):
        lines += _words("~", ROUGHLY)
    return lines


def always(plan: Plan) -> float:
    """Return the score of always saying the commonest class, by what the plan's rows are put in order."""
    scored = None if plan.first.expected is None else plan.first.expected.scored
    return (plan.commonest or 0.0) if scored is None else scored.baseline


def _row(row: PlanRow, mark: str) -> str:
    expected = "—"
    if row.expected is not None:
        value, low, high = row.expected.ends
        expected = f"{value:.3f} ({low:.2f}–{high:.2f})"
    answered = "" if row.answered is None else percent(row.answered)
    return (
        f" {shortened(method_of(row), 21):<22}{_number(row.n_teachers):>8}{_number(row.n_queries):>8}  "
        f"{_noise(row):<12}{answered:>8} {mark}{expected:<16}"
    ).rstrip()


def _number(n: int | None) -> str:
    return "" if n is None else f"{n:,}"


def _noise(row: PlanRow) -> str:
    """The noise in twelve columns; the page has it in words."""
    if row.way != "votes":
        return row.noise.split(" on ")[0][:12] if row.way == "direct" else "one choice"
    return row.noise.removesuffix(" votes").removesuffix(" an answer") if "test stands" not in row.noise else "none"


def _first(plan: Plan) -> list[str]:
    first = plan.first
    lines = _words("first", f"{name_of(first)}: {first.why}")
    lines += _words("compares", compared(plan)) if any(row.priced for row in plan.answering) else []
    if first.expected is not None:
        lines += _words("basis", BASES[first.expected.basis])
    votes = next((row for row in plan.answering if row.probabilities is not None), None)
    if votes is not None and votes.probabilities is not None:
        lines += _words("labels", margins_in_words(votes, votes.probabilities))
    return lines


def compared(plan: Plan) -> str:
    """Say for which change of one unit the rows' ε is, and what the rounds of the direct method cost for the other."""
    priced = next(row.priced for row in plan.answering if row.priced)
    declared = f"the number of {plural(plan.facts.unit)} is declared"
    reason = plan.facts.why_neighbours or (declared if plan.facts.neighbours == "auto" else "it was asked for")
    changing = Neighbouring.of(plan.facts.relation, plan.facts.unit).changing
    return (
        f"ε of every row is for {changing}, since {reason}. Gradient rounds: {priced}. Votes: one price for adding, "
        "removing and replacing"
    )


def name_of(row: PlanRow) -> str:
    """Name a row: what releases, and with how many teachers and queries."""
    teachers = "" if row.n_teachers is None else f" of {several(row.n_teachers, 'teacher')}"
    queries = "" if row.n_queries is None or row.way != "votes" else f" on {row.n_queries:,} queries"
    return f"{method_of(row)}{teachers}{queries}"


def method_of(row: PlanRow) -> str:
    """Name what a row is of, in the words of the documents: "direct method", "NoisyCounts", "NoisyCounts, tree"."""
    if row.way == "direct":
        return "direct method"
    return f"{row.name}, {row.model}" if row.model else row.name


def margins_in_words(row: PlanRow, probabilities: AnswerProbabilities) -> str:
    """Say how often one released label is right, at a few margins."""
    chance = ", ".join(
        f"{probabilities.truth[probabilities.margins.index(margin)]:.2f} at a margin of {margin:g}"
        for margin in SHOWN_MARGINS
        if margin in probabilities.margins
    )
    return (
        f"one label of {name_of(row)} is the truth with probability {chance} (how far teachers prefer the truth to any "
        "other class); a student averages over all of them"
    )


def _cannot(plan: Plan) -> list[str]:
    last = {method_of(row): row.cannot for row in plan.rows if row.cannot}  # of the most teachers: if even these cannot
    return [line for name, cannot in last.items() for line in _words("cannot", f"{name}: {cannot}")]


def _crossing(plan: Plan) -> list[str]:
    known = [crossing for crossing in plan.crossings if crossing.n_queries is not None]
    if not plan.crossings:
        return []
    most = plan.crossings[-1].n_teachers
    if not known and any(crossing.difference == "does not matter" for crossing in plan.crossings):
        return _words(
            "sparse",
            f"no difference that matters between a sparse vector and Gaussian noise: with {most:,} teachers, at up to "
            f"{MOST_QUERIES:,} queries, either fails on fewer than one unanimous vote in {1 / MATTERS:,.0f}",
        )
    if not known:
        return _words(
            "sparse",
            f"a sparse vector is never better than Gaussian noise here: even unanimous votes of {most:,} teachers are "
            "answered less often",
        )
    first = known[0]
    return _words(
        "sparse",
        f"with {first.n_teachers:,} teachers, a sparse vector that may decline {first.cutoff} queries beats Gaussian "
        f"noise from {first.n_queries:,} queries on, where votes have a margin of {first.margin:g}",
    )


def _epsilons(plan: Plan) -> list[str]:
    if not any(at.expected is not None for at in plan.by_epsilon):
        return []
    lines = ["", *(f"  {line}" for line in wrap(f"{epsilons_of(plan)}:", TERMINAL - 2))]
    lines += [f"  {'ε':<8}{'teachers':>9}  expected {SCORE_WORDS[plan.scoring]}"]
    lines += [f"  {at.epsilon:<8g}{_number(at.n_teachers):>9}  {at_epsilon(at)}" for at in plan.by_epsilon]
    lines += [line for words in epsilons_in_words(plan) for line in _words("", words)]
    return [*lines, ""]


def epsilons_of(plan: Plan) -> str:
    """Say of what the table by ε is."""
    first = plan.first
    if first.way != "votes":
        return f"{method_of(first)} by ε"
    return f"{method_of(first)} by ε; the number of teachers is chosen for each ε, and differs by row"


def at_epsilon(at: AtEpsilon) -> str:
    """Return what is expected at one ε; the head of its column names the score."""
    if at.expected is None:
        return "—"
    return str(at.expected) if at.expected.scored is None else at.expected.scored.figures


def epsilons_in_words(plan: Plan) -> tuple[str, ...]:
    """Say between which ε anything changes."""
    said = []
    if plan.nothing_changes_above is not None and plan.nothing_changes_above < plan.by_epsilon[-1].epsilon:
        said.append(f"no clear gain above ε = {plan.nothing_changes_above:g}")
    if plan.nothing_is_learned_below is not None:
        said.append(f"nothing is learned below ε = {plan.nothing_is_learned_below:g}")
    return tuple(said)


def _words(label: str, words: str) -> list[str]:
    return under_label(f"  {label}", words, room=12)

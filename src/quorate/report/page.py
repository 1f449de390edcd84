"""The report as one self-contained page: no script, no other file. Printed, it is a sheet to sign and three behind.

Headings of what was promised are the terms of NIST SP 800-226, *Guidelines for Evaluating Differential Privacy
Guarantees* (2025).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, overload

from quorate.accounting.figures import at_least, at_most, several
from quorate.arguments import one_of
from quorate.errors import InvalidParameter, SecretRefused
from quorate.findings import Finding, Outcome
from quorate.report import html, measurement, sentences
from quorate.report.facts import Facts, render_json
from quorate.report.html import Child, Markup, big, document, element, join, pairs, section
from quorate.report.internal import NOT_FOR_RELEASE, InternalFacts, owners_section
from quorate.report.method import words_of
from quorate.report.notation import percent, power_of_ten, visible
from quorate.report.of_numbers import target
from quorate.report.stylesheet import STAMPED, STYLE
from quorate.report.summary import summary
from quorate.report.words import LANGUAGES, WORDS, Language, subheading
from quorate.stored_names import place_of
from quorate.types import Secret

LONGEST_BLOCK = 120_000  #: characters of JSON that a page takes in


def provenance(facts: Facts) -> tuple[Child, ...]:
    """Return who trusts whom, where the run comes from, and what would be needed to check this page."""
    setup, origin = facts.setup, facts.provenance
    block = render_json(facts)
    holder: Child = element("p", "The machine-readable block is longer than a page can take; it is the JSON edition.")
    if len(block) <= LONGEST_BLOCK:  # its line breaks stay, and what is invisible is already an escape
        text = Markup("\n".join(join(line) for line in block.split("\n")))
        holder = element("details", element("summary", "This report as JSON"), element("pre", element("code", text)))
    return (
        pairs((("Trust model", setup.trust_model), *origin.registry)),
        pairs(
            (
                words_of(facts).models(facts),
                ("Started", origin.started),
                ("Noise", f"{origin.noise} — {sentences.SEEDED}" if facts.seeded else origin.noise),
                ("Versions", ", ".join(f"{name} {version}" for name, version in origin.versions) or "—"),
                ("Command", element("code", origin.command)),
                (f"Ledger head ({several(origin.ledger_entries, 'entry')})", element("code", origin.ledger_head)),
                *((name, element("code", digest)) for name, digest in (*origin.hashes, *origin.public_digests)),
            ),
            class_="pairs small",
        ),
        holder,
    )


@overload
def render_html(
    facts: Facts, edition: Literal["public"] = "public", internal: None = None, *, language: Language = "en"
) -> str: ...
@overload
def render_html(
    facts: Facts, edition: Literal["internal"], internal: Secret[InternalFacts], *, language: Language = "en"
) -> str: ...
def render_html(
    facts: Facts,
    edition: Literal["public", "internal"] = "public",
    internal: Secret[InternalFacts] | None = None,
    *,
    language: Language = "en",
) -> str:
    """Return the report as one HTML page, under 400 kB in UTF-8, made from `facts` and nothing else.

    `edition`: the internal one adds the owner's section, from `internal`, and is stamped "not for release" throughout;
    write it with mode 0600, into the private side of the run.
    `language`: of the first page and of all headings; what stands behind is in English.

    Raises SecretRefused where the public edition was handed internal facts; InvalidParameter for another edition or
    language, or for the internal one without its facts in a Secret.
    """
    if not isinstance(facts, Facts):
        raise InvalidParameter(f"facts must be Facts, got {type(facts).__name__}")
    one_of("language", language, LANGUAGES)
    if edition == "public":
        if internal is not None:
            raise SecretRefused(
                'the public edition takes no internal facts; leave internal out, or say edition="internal"'
            )
        return _page(facts, (), stamps=_stamps(facts), language=language)
    if edition != "internal":
        raise InvalidParameter(parameter="edition", got=edition, expected='"public" or "internal"')
    if not isinstance(internal, Secret):
        raise InvalidParameter(f"internal must be a Secret of InternalFacts, got {type(internal).__name__}")
    of_owner = internal.reveal()
    if not isinstance(of_owner, InternalFacts):
        raise InvalidParameter("internal must be a Secret of InternalFacts, got a Secret of something else")
    stamps = (*_stamps(facts), NOT_FOR_RELEASE)
    return _page(facts, owners_section(of_owner), stamps=stamps, language=language)


def _stamps(facts: Facts) -> tuple[str, ...]:
    return (sentences.SEEDED,) if facts.seeded else ()


def _page(facts: Facts, owners: tuple[Child, ...], *, stamps: tuple[str, ...], language: Language) -> str:
    stamp, words = " · ".join(stamps) or None, WORDS[language]
    title = " · ".join((f"{facts.provenance.run}: {words['title']}", *stamps))
    english = None if language == "en" else "en"
    collection = facts.setup.data_collection
    parts: dict[str, tuple[Child, ...] | None] = {
        "summary": summary(facts, language),
        "guarantee": guarantee(facts, language),
        "composition": unit_and_composition(facts),
        "mechanisms": mechanisms(facts),
        "implementation": implementation(facts),
        "utility": measurement.utility(facts, language),
        "audit": measurement.audit(facts),
        "sensitivity": measurement.sensitivity(facts, language),
        "collection": None if collection is None else (element("p", collection),),
        "provenance": provenance(facts),
        "internal": owners or None,
    }
    body = element(
        "body",
        html.textures(),
        None if stamp is None else element("aside", stamp, class_="banner"),
        element(
            "header",
            element("p", words["eyebrow"], class_="eyebrow"),
            element("h1", facts.provenance.run),
            element("p", words["rest"], class_="note") if words["rest"] else None,
            class_="top",
        ),
        element(
            "main",
            *(
                section(key, words[key], *body, stamp=stamp, language=None if key == "summary" else english)
                for key, body in parts.items()
                if body is not None
            ),
        ),
        element("footer", element("p", _edition(stamps), " Quorate's words: docs/glossary.md.", lang=english)),
    )
    return document(visible(title), STYLE if stamp is None else join(STYLE, STAMPED[stamp]), body, language=language)


def _edition(stamps: tuple[str, ...]) -> Markup:
    if NOT_FOR_RELEASE in stamps:
        words = join("Internal edition. It shows what is secret: ", element("strong", NOT_FOR_RELEASE), ".")
    else:
        words = join("Public edition, made only from values that are released, public or independent of private data.")
    if sentences.SEEDED in stamps:
        words = join(words, " This run is ", element("strong", sentences.SEEDED), ".")
    return words


OUTCOMES = (
    "Passed and failed: a function looked. By construction: the code has no other way. Not covered: quorate cannot see "
    "it."
)


def at_a_glance(facts: Facts) -> Markup:
    """Return the line of figures over the mechanisms."""
    setup, words, predicted = facts.setup, words_of(facts), target(facts)
    declared = () if setup.n_records is None else ((f"units, {setup.n_records_from}", f"{setup.n_records:,}"),)
    return pairs(
        (
            words.first_figure(facts),
            *declared,
            ("public rows", f"{setup.n_public:,}"),
            ("classes", f"{len(setup.classes):,}") if predicted is None else ("target", predicted),
            words.last_figure(facts),
        ),
        class_="glance",
    )


def guarantee(facts: Facts, language: Language = "en") -> tuple[Child, ...]:
    """Return the sentence, the best attack, and what it does not cover; for a seeded run, that nothing is promised.

    What the first page and the list of limits say is not said again.
    """
    if facts.seeded:
        return (
            element("p", facts.guarantee.promise, class_="promise"),
            element("p", sentences.SEEDED_WHY, class_="odds"),
        )
    missing = element("ul", *(element("li", line) for line in sentences.not_protected(facts)), class_="plain halves")
    return (
        element("p", replace(facts.guarantee, caveats=()).for_reviewer(), class_="reviewer"),
        *_attacker(facts, language),
        subheading(language, "not protected"),
        missing,
    )


def _attacker(facts: Facts, language: Language) -> tuple[Child, ...]:
    """Return the trade-off curve with its words; nothing where an earlier version wrote the facts."""
    words = sentences.attacker(facts)
    if words is None or facts.attacker is None:
        return ()
    said, shows = words
    picture = html.trade_off(f"{said} {shows}", facts.attacker)
    caption = element("div", element("p", said), element("p", shows, class_="note"))
    return (subheading(language, "best attack"), element("figure", picture, caption, class_="attacker"))


def unit_and_composition(facts: Facts) -> tuple[Child, ...]:
    """Return the gauge: budget, charged, left; then what the unit is and how charges add up."""
    spending = facts.spending
    left, spent, budget = (
        sentences.epsilon_left(facts),
        at_most(spending.spent_epsilon),
        at_most(spending.budget_epsilon),
    )
    words = words_of(facts)
    added = {"sum": "the ε and δ of all charges add up", "zcdp": "zCDP: the ρ of all charges add up"}
    ex_post = spending.ex_post
    return (
        element(
            "div",
            big(*words.big_figure(facts)),
            big("ε left", left, f"of {budget}; {spent} charged"),
            big(
                "δ left",
                power_of_ten(at_least(spending.left_delta)),
                f"of {sentences.delta_in_tens(spending.budget_delta)}; "
                f"{sentences.delta_in_tens(spending.spent_delta)} charged",
            ),
            class_="bigs",
        ),
        html.gauge(
            f"Charged: ε {spent} of a budget of {budget}; {left} left.",
            spent=spending.spent_epsilon,
            budget=spending.budget_epsilon,
        ),
        element(
            "p",
            element("span", "0"),
            element("span", f"budget ε {budget}{sentences.raised_so_often(facts)}"),
            class_="scale",
        ),
        pairs(
            (
                ("Unit of privacy", facts.setup.unit),
                words.where_a_unit_goes(facts),
                ("Composition", f"{added[spending.composition]}; fixed when the ledger was opened"),
                *(("Budget raised", line) for line in sentences.raises(facts)),
                ("Record", "in a ledger on disk" if spending.durable else "in memory: nothing durable was recorded"),
            )
        ),
        None
        if ex_post is None
        else element(
            "p",
            element("strong", "Read after the fact, not the guarantee: "),
            f"{sentences.bound(ex_post.epsilon, ex_post.delta)}. {ex_post.meaning}",
            class_="apart",
        ),
    )


def mechanisms(facts: Facts) -> tuple[Child, ...]:
    """Return where the budget went, by purpose."""
    parts = facts.spending.parts
    if not parts:
        return (element("p", "Nothing was charged."),)
    said = "; ".join(f"{part.purpose} {percent(part.share)}" for part in parts)
    return (
        at_a_glance(facts),
        html.stacked(f"Share of the ε that this run was charged: {said}.", [part.share for part in parts]),
        *words_of(facts).spending(facts),
    )


_MARKS = {
    Outcome.PASSED: "yes",
    Outcome.FAILED: "no",
    Outcome.BY_CONSTRUCTION: "built",
    Outcome.NOT_COVERED: "open",
    Outcome.NOT_RUN: "open",
}


def implementation(facts: Facts) -> tuple[Child, ...]:
    """Return the checks: each question, how it was answered, what was seen and which function looked."""
    if not facts.checks:
        return (element("p", "No checks were recorded."),)
    items = (
        element(
            "li",
            element("span", str(check.outcome), class_=_MARKS[check.outcome]),
            element("div", element("strong", check.words), " ", element("span", *_evidence(check), class_="meaning")),
            id=f"check-{place}",
        )
        for place, check in enumerate(facts.checks, 1)
    )
    return (
        element("p", OUTCOMES, class_="note"),
        element("ul", *items, class_="checks"),
    )


def _evidence(check: Finding) -> tuple[Child, ...]:
    ran = () if check.ran is None else (" Looked at by ", element("code", place_of(check.ran)), ".")
    return (check.evidence, *ran, *(() if check.remedy is None else (f" {check.remedy}",)))

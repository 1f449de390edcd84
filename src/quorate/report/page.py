"""The report as one self-contained page: no script, no other file. Printed, it is a sheet to sign and three behind."""

from __future__ import annotations

from typing import Literal, overload

from quorate.accounting.figures import several
from quorate.arguments import one_of
from quorate.errors import InvalidParameter, SecretRefused
from quorate.report import html, measurement, promises, sentences
from quorate.report.facts import Facts, render_json
from quorate.report.html import Child, Markup, document, element, join, pairs, section
from quorate.report.internal import NOT_FOR_RELEASE, InternalFacts, owners_section
from quorate.report.method import words_of
from quorate.report.notation import visible
from quorate.report.stylesheet import STAMPED, STYLE
from quorate.report.summary import summary
from quorate.report.words import LANGUAGES, WORDS, Language
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
        "guarantee": promises.guarantee(facts, language),
        "composition": promises.unit_and_composition(facts),
        "mechanisms": promises.mechanisms(facts),
        "implementation": promises.implementation(facts),
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

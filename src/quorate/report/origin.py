"""The section on trust model, data collection and provenance, with the JSON edition inside."""

from __future__ import annotations

from quorate.accounting.figures import several
from quorate.report import sentences
from quorate.report.element import Child, Markup, element, join
from quorate.report.facts import Facts, render_json
from quorate.report.layout import pairs
from quorate.report.method import words_of

LONGEST_BLOCK = 120_000  #: characters of JSON that a page takes in


def provenance(facts: Facts) -> tuple[Child, ...]:
    """Return who trusts whom, where the data come from, and what would be needed to check this page."""
    setup, origin = facts.setup, facts.provenance
    block = render_json(facts)
    holder: Child = element("p", "The machine-readable block is longer than a page can take; it is the JSON edition.")
    if len(block) <= LONGEST_BLOCK:
        holder = element(
            "details", element("summary", "This report as JSON"), element("pre", element("code", block_text(block)))
        )
    return (
        pairs(
            (
                ("Trust model", setup.trust_model),
                ("Data collection", setup.data_collection or "not stated by the owner"),
                *origin.registry,
            )
        ),
        pairs(
            (
                words_of(facts).models(facts),
                ("For an engineer", element("code", facts.guarantee.for_engineer())),
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


def block_text(block: str) -> Markup:
    """Return JSON as the text of an element: its line breaks stay, and what is invisible is already an escape."""
    return Markup("\n".join(join(line) for line in block.split("\n")))

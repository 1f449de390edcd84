"""Names of the files of a package, and what each of them is."""

from __future__ import annotations

from typing import Final

from quorate.folder import published

FORMAT: Final = "quorate export 1"
MANIFEST, METADATA, VERSIONS, COVER = "manifest.json", "metadata.json", "versions.json", "COVER-SHEET.md"
ONNX: Final = "student.onnx"
SKOPS: Final = published.STUDENT
PROMPT: Final = published.PROMPT

#: Name of the model card, by the kind of package; a registry shows README.md.
CARDS: Final = {"tre": "model_card.md", "registry": "README.md"}

#: What each file is, in words for whoever decides whether it may leave.
MEANING: Final = {
    COVER: "this sheet",
    SKOPS: "the model, for Python with scikit-learn and skops",
    ONNX: "the same model for programs without Python",
    "labels.csv": "the released labels of public rows",
    PROMPT: "the student as a prompt: public rows with released labels, as examples for a language model",
    "guarantee.json": "the privacy guarantee, for programs",
    "receipt.json": "what the ledger charged, so that the guarantee can be computed again",
    "report.html": "the report, public edition",
    "model_card.md": "the report in short",
    "README.md": "the report in short",
    "facts.json": "the values that report and model card are made from",
    "audit.json": "what an attack on the mechanism could prove",
    METADATA: "name, version and figures of the model, for a registry",
    VERSIONS: "versions of the software",
    MANIFEST: "the sum of each file",
}

#: What a package of a kind must hold, beside one file of the model at least; and what it may hold.
NEEDED: Final = {
    kind: frozenset(
        {"guarantee.json", "receipt.json", "report.html", "facts.json", METADATA, VERSIONS, MANIFEST, card}
        | ({COVER} if kind == "tre" else set())
    )
    for kind, card in CARDS.items()
}
OPTIONAL: Final = frozenset({SKOPS, ONNX, PROMPT, "labels.csv", "audit.json"})

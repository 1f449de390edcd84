"""``quorate.toml`` of the place where votes of several sites are added up."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from quorate.arguments import nearest, real
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.section import Label, Section
from quorate.folder.settings import STUDENT_MODELS
from quorate.folder.sites.signed_votes import MOST_SITES, public_key, word
from quorate.release.target import floor_budget


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesData:
    """``[data]``: the public rows that every site voted on, and the classes."""

    public: Path
    classes: tuple[Label, ...]
    label: str | None = None
    evaluation: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesBudget:
    """``[budget]``."""

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesVotes:
    """``[votes]``: what all sites have agreed on."""

    round: str
    unit: str
    max_sites_per_unit: int
    promised_by: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesStudent:
    """``[student]``: what may be published."""

    model: str = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesRun:
    """``[run]``: this release's share of the budget, and how it is made."""

    epsilon: float | None = None
    delta: float | None = None
    allow_hopeless: bool = False
    unsafe_noise_seed: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """``[[sites]]``: one of them."""

    name: str
    votes: Path
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesSettings:
    """The whole file, checked."""

    data: SitesData
    budget: SitesBudget
    votes: SitesVotes
    sites: tuple[Site, ...]
    student: SitesStudent = field(default_factory=SitesStudent)
    run: SitesRun = field(default_factory=SitesRun)

    @property
    def share(self) -> tuple[float, float]:
        """ε and δ of this release, in the units that ledgers count in."""
        return floor_budget(self.run.epsilon or self.budget.epsilon, self.run.delta or self.budget.delta)


def combines_sites(root: Path) -> bool:
    """Whether the folder's ``quorate.toml`` lists sites."""
    try:
        return "sites" in tomllib.loads((root / "quorate.toml").read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return False


def read_sites_settings(root: Path) -> SitesSettings:
    """Read and check the file.

    Raises PreconditionFailed if it is missing or is not TOML; InvalidParameter if a key is unknown, missing or of the
    wrong kind, or a site is listed twice.
    """
    path = root / "quorate.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise PreconditionFailed(f"no quorate.toml in {root} that lists the sites") from None
    except (OSError, ValueError) as error:
        raise PreconditionFailed(f"{path} cannot be read as TOML: {error}") from None
    names = {part.name for part in fields(SitesSettings)}
    for name, section in document.items():
        if name not in names:
            raise InvalidParameter(
                f"quorate.toml: unknown section [{name}]{nearest(name, names)}. Where votes of sites are combined, "
                "there is no private table and there are no teachers"
            )
        if not isinstance(section, list if name == "sites" else Mapping):
            told = "[[sites]]" if name == "sites" else f"[{name}]"
            raise InvalidParameter(f"quorate.toml: {told} must be a section, got {section!r}")
    return _settings(document, root)


def _settings(document: Mapping[str, Any], root: Path) -> SitesSettings:
    data, budget = Section("data", document, SitesData), Section("budget", document, SitesBudget)
    votes, run = Section("votes", document, SitesVotes), Section("run", document, SitesRun)
    student = Section("student", document, SitesStudent)
    sites = tuple(_site(each, root) for each in document.get("sites", []))
    _refuse_twice(sites)
    most = votes.number("max_sites_per_unit", at_least=1) if "max_sites_per_unit" in votes.given else None
    if most is None:
        raise InvalidParameter(
            "[votes] max_sites_per_unit is required: at how many sites one unit may be at most. 1 is a promise that "
            f"nobody is at two; {len(sites)}, the number of sites, promises nothing and costs more noise"
        )
    if most > len(sites):
        raise InvalidParameter(f"[votes] max_sites_per_unit is {most}, and there are {len(sites)} sites; take that")
    promised_by = votes.optional("promised_by", votes.text)
    if most < len(sites) and promised_by is None:
        raise InvalidParameter(
            "[votes] promised_by is required where a unit is said to be at fewer sites than there are: every guarantee "
            'repeats it. Example: promised_by = "the data agreement of 3 May 2026"'
        )
    if promised_by is not None and (len(promised_by) > 200 or not promised_by.isprintable()):
        raise InvalidParameter("[votes] promised_by must be at most 200 printable characters on one line")
    return SitesSettings(
        data=SitesData(
            public=root / data.text("public"),
            classes=data.classes("classes"),
            label=data.optional("label", data.text),
            evaluation=data.optional("evaluation", lambda key: root / data.text(key)),
        ),
        budget=SitesBudget(
            epsilon=real("[budget] epsilon", budget.required("epsilon"), above=0),
            delta=real("[budget] delta", budget.required("delta"), above=0, below=1),
        ),
        votes=SitesVotes(
            round=word("[votes] round", votes.text("round")),
            unit=word("[votes] unit", votes.text("unit")),
            max_sites_per_unit=most,
            promised_by=promised_by,
        ),
        sites=sites,
        student=SitesStudent(model=student.model("model", STUDENT_MODELS)),
        run=SitesRun(
            epsilon=run.optional("epsilon", lambda key: real(f"[run] {key}", run.given[key], above=0)),
            delta=run.optional("delta", lambda key: real(f"[run] {key}", run.given[key], above=0, below=1)),
            allow_hopeless=run.flag("allow_hopeless"),
            unsafe_noise_seed=run.optional("unsafe_noise_seed", run.number),
        ),
    )


def _site(given: Any, root: Path) -> Site:
    section = Section("[sites]", {"[sites]": given}, Site)
    made = Site(
        name=word("[[sites]] name", section.text("name")),
        votes=root / section.text("votes"),
        key=section.text("key"),
    )
    public_key(made.key)
    return made


def _refuse_twice(sites: tuple[Site, ...]) -> None:
    """Refuse one site under two entries: its units' votes would count twice, and be priced once."""
    if not sites:
        raise InvalidParameter("[[sites]] is required: a name, a file of votes and a public key for each site")
    if len(sites) > MOST_SITES:
        raise InvalidParameter(f"[[sites]] lists {len(sites):,} sites, and one release takes at most {MOST_SITES:,}")
    for what, values in {
        "name": [site.name.casefold() for site in sites],
        "key": [public_key(site.key).hex() for site in sites],
        "file of votes": [str(site.votes.resolve()) for site in sites],
    }.items():
        if len(set(values)) < len(values):
            twice = next(site.name for site, value in zip(sites, values, strict=True) if values.count(value) > 1)
            raise InvalidParameter(f"[[sites]] lists the same {what} twice (site {twice!r}); each site counts once")

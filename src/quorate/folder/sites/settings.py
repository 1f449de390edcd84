"""``quorate.toml`` of the place where votes of several sites are added up."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.section import Label, labels, no_section, path, read_section, setting, string, whole_number
from quorate.folder.sections import BudgetSettings, RunSettings, StudentSettings
from quorate.folder.sites.signed_votes import MOST_SITES, public_key, word
from quorate.release.charge import floor_budget

#: Of sections that a run has too, the keys that stand here.
_OF_RUNS: Mapping[str, tuple[type, tuple[str, ...]]] = {
    "budget": (BudgetSettings, ("epsilon", "delta")),
    "student": (StudentSettings, ("model",)),
    "run": (RunSettings, ("epsilon", "delta", "allow_hopeless", "unsafe_noise_seed")),
}


def _of_words(name: str, value: Any) -> str:
    return word(name, string(name, value))


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesData:
    """``[data]``: the public rows that every site voted on, and the classes."""

    public: Path = setting(path, required='Rows that may be shown. Example: public = "survey.csv"')
    classes: tuple[Label, ...] = setting(labels, required='Example: classes = ["no", "yes"]')
    label: str | None = setting(string, default=None)
    evaluation: Path | None = setting(path, default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesVotes:
    """``[votes]``: what all sites have agreed on."""

    round: str = setting(_of_words)
    unit: str = setting(_of_words)
    max_sites_per_unit: int = setting(
        whole_number(at_least=1),
        required="It is the most sites at which one unit may be. 1 promises that nobody appears twice; the number of "
        "sites promises nothing, and costs more noise",
    )
    promised_by: str | None = setting(string, default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """``[[sites]]``: one of them."""

    name: str = setting(_of_words, required='Example: name = "north"')
    votes: Path = setting(path, required='The file that the site has signed. Example: votes = "north.votes"')
    key: str = setting(string, required="What quorate votes keys has printed at the site, in quotes")


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesSettings:
    """The whole file, checked."""

    data: SitesData
    budget: BudgetSettings
    votes: SitesVotes
    sites: tuple[Site, ...]
    student: StudentSettings
    run: RunSettings

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
    """Read and check the file; QuorateError says in one line what is wrong with it."""
    file = root / "quorate.toml"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise PreconditionFailed(f"there is no quorate.toml in {root} that lists the sites") from None
    except (OSError, ValueError) as error:
        raise PreconditionFailed(f"{file} cannot be read as TOML: {error}") from None
    names = {part.name for part in fields(SitesSettings)}
    for name, section in document.items():
        if name not in names:
            raise InvalidParameter(
                f"{no_section(name, names).rstrip('?')}. Where votes of sites are combined, there is no private "
                "table and there are no teachers"
            )
        if not isinstance(section, list if name == "sites" else Mapping):
            section_name = "[[sites]]" if name == "sites" else f"[{name}]"
            raise InvalidParameter(f"quorate.toml: {section_name} must be a section, got {section!r}")
    return _settings(document, root)


def _settings(document: Mapping[str, Any], root: Path) -> SitesSettings:
    read: dict[str, Any] = {"data": read_section("data", document.get("data", {}), SitesData, root)}
    for name, (section, keys) in _OF_RUNS.items():
        read[name] = read_section(name, document.get(name, {}), section, root, keys=keys)
    sites = tuple(read_section("[sites]", site, Site, root) for site in document.get("sites", []))
    for site in sites:
        public_key(site.key)
    _refuse_twice(sites)
    votes = read_section("votes", document.get("votes", {}), SitesVotes, root)
    if votes.max_sites_per_unit > len(sites):
        raise InvalidParameter(
            f"[votes] max_sites_per_unit is {votes.max_sites_per_unit}, and there are {len(sites)} sites; take that"
        )
    if votes.max_sites_per_unit < len(sites) and votes.promised_by is None:
        raise InvalidParameter(
            "[votes] promised_by is required where a unit is said to be at fewer sites than there are: every guarantee "
            'repeats it. Example: promised_by = "the data agreement of 3 May 2026"'
        )
    if votes.promised_by is not None and (len(votes.promised_by) > 200 or not votes.promised_by.isprintable()):
        raise InvalidParameter("[votes] promised_by must be at most 200 printable characters on one line")
    return SitesSettings(**read, votes=votes, sites=sites)


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

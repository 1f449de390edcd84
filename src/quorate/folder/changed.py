"""What ``quorate ledger open`` reads: changed data, or a larger budget, of a run or of votes made elsewhere.

A run says both in its ``quorate.toml``. A folder of votes made elsewhere has none, so its owner says them.
"""

from __future__ import annotations

from pathlib import Path

from quorate.accounting.figures import at_most
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.external_votes import votes_fingerprint
from quorate.folder.folder import RunFolder
from quorate.folder.methods import read_run
from quorate.folder.prepared import budget_of
from quorate.folder.settings import read_settings
from quorate.folder.sites.combined import combine
from quorate.folder.sites.settings import combines_sites, read_sites_settings
from quorate.folder.votes_file import read_votes
from quorate.ledger import Budget
from quorate.ledger.rules import may_be_raised
from quorate.release.charge import floor_budget


def changed_fingerprint(
    root: Path, *, votes: Path | None = None, classes: str | None = None, n_teachers: int | None = None
) -> str:
    """Return the fingerprint of the data as they are now.

    `root`: the folder of a run, or of votes made elsewhere. `votes`, `classes`, `n_teachers`: the changed file, its
    classes with commas, and K: for votes made elsewhere alone. Raises InvalidParameter if votes are given for a run,
    which has tables of its own; PreconditionFailed if they are not given where they are needed.
    """
    if combines_sites(root):
        return votes_fingerprint(combine(root).votes, root)
    if _is_run(root):
        if votes is not None or classes is not None:
            raise InvalidParameter(f"--votes and --classes are for votes made elsewhere, and {root} has a quorate.toml")
        return read_run(root, try_models=False).fingerprint
    if votes is None or classes is None:
        raise PreconditionFailed(
            f"{root} has no quorate.toml that names its data, as a release of votes made elsewhere has none; name the "
            "changed file with --votes FILE --classes no,yes"
        )
    file = read_votes(votes, classes=[name.strip() for name in classes.split(",")], n_teachers=n_teachers)
    return votes_fingerprint(file, root)


def larger_budget(root: Path, own: Budget, *, epsilon: float | None = None, delta: float | None = None) -> Budget:
    """Return the budget that a ledger is to be raised to.

    `root`: the folder of a run, or of votes made elsewhere. `own`: what the ledger has. `epsilon`, `delta`: the larger
    amounts: for votes made elsewhere alone. What is left out stays as it is. Raises InvalidParameter if amounts are
    given for a run, whose ``quorate.toml`` says them; PreconditionFailed if they are not given where they are needed.
    """
    if combines_sites(root):
        budget = read_sites_settings(root).budget
        return Budget(*floor_budget(budget.epsilon, budget.delta), composition=own.composition)
    if _is_run(root):
        if epsilon is not None or delta is not None:
            raise InvalidParameter(f"the budget of {root} is raised to that of its quorate.toml; edit [budget] there")
        cap = budget_of(read_settings(RunFolder(root).settings))
        if cap.composition == own.composition and (cap.same_as(own) or not may_be_raised(own, cap)):
            has, wants = (f"epsilon = {at_most(a.epsilon)} and delta = {at_most(a.delta)}" for a in (own, cap))
            raise InvalidParameter(
                f"the ledger has {has}, and [budget] of {RunFolder(root).settings} asks for {wants}; a raised budget "
                "must have epsilon and delta not below the one before, and one above. Write the larger cap for all "
                "runs together there first, with the δ that the next run needs as well"
            )
        return cap
    if epsilon is None and delta is None:
        raise PreconditionFailed(
            f"{root} has no quorate.toml that says the larger budget, as a release of votes made elsewhere has none; "
            "say it with --epsilon and --delta"
        )
    wanted = floor_budget(own.epsilon if epsilon is None else epsilon, own.delta if delta is None else delta)
    return Budget(*wanted, composition=own.composition)


def _is_run(root: Path) -> bool:
    return RunFolder(root).settings.exists()

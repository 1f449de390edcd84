"""One mechanism with its claim, and the neighbours on which the claim is put to the test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from quorate.audit.claims import Claim
from quorate.audit.sampled import AuditResult, Releases, audit_mechanism
from quorate.noise import NoiseSource
from quorate.types import IntArray


class ByRow:
    """Answers one query, or one stream, as it answers a batch of one."""

    __slots__ = ()

    def release(self, counts: IntArray, noise: NoiseSource) -> Any:
        """Answer one query or one stream."""
        answer = self.release_many(np.asarray(counts)[None], noise)[0]
        return answer if np.ndim(answer) else int(answer)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row, or each stream."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A mechanism to be audited, broken or correct.

    Attributes
    ----------
    name : str
        What is wrong with it, or what it is.
    source : str
        One sentence: where it comes from.
    mechanism : Releases
        The code.
    neighbours : pair of IntArray
        Counts on two neighbouring data sets; of a kind for which the flaw shows.
    claimed : Claim
        What its authors say about one run on such a pair.
    runs : int
        How many runs suffice to see the flaw at confidence 1 − 10⁻⁶.
    """

    name: str
    source: str
    mechanism: Releases
    neighbours: tuple[IntArray, IntArray] = field(repr=False)
    claimed: Claim
    runs: int = 100_000

    def audit(self, confidence: float = 1 - 1e-6, *, seed: int | None = None, **options: Any) -> AuditResult:
        """Run :func:`~quorate.audit.audit_mechanism` on the case."""
        return audit_mechanism(
            self.mechanism, self.neighbours, self.claimed, confidence, self.runs, seed=seed, **options
        )

    def broken(self, name: str, source: str, mechanism: Releases, runs: int | None = None) -> Case:
        """Return a broken twin of this correct case: on the same votes, with the same claim."""
        return replace(self, name=name, source=source, mechanism=mechanism, runs=runs or self.runs)

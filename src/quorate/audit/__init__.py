"""Claims about privacy, tested by measurement, each test with a known-broken twin.

What is audited is handed in: any object with ``release(counts, noise)``, any way to train teachers, any text, file
or object that somebody outside can see.

================================== =========================================================================
:func:`audit_mechanism`            sampled: guess a secret bit from many runs; Clopper–Pearson bounds
:mod:`quorate.audit.cheats`        broken twins that an audit must flag, correct ones that it must not
:class:`SparseVectorForm`          exact: sparse vector in all forms, by summation over the threshold noise
:func:`threshold_test_delta`       exact: δ(ε) of a noisy threshold (also the binary Gaussian)
:func:`stability_test_delta`       exact: δ(ε) of the distance-to-instability test
:func:`price_faults`               exact: every rule of an event's price against the law of what is released
:func:`audit_shards`               deterministic: change one unit, train again, count the teachers that moved
:func:`audit_target`               a whole run behind a :class:`Target`: with or without a poisoned canary unit
:func:`reconstruct`                the same question again and again, averaged; what a memo is against
:func:`audit_schedule`             everything that one run of a mechanism answers, from several sides at one confidence
:func:`sizes_for`                  how small a fault such an audit would have found, where that was measured
:func:`audit_rounds`               the rounds of the direct method, on two public units that are far apart
:func:`audit_means`                the noisy means of teachers' numbers, on a teacher at either end of the range
:func:`audit_answers`              a sparse vector's answers against their exact distribution
:func:`hard_votes`                 neighbouring votes on which a shipped mechanism shows most
:class:`Surfaces`                  the surface walk: search everything public for forbidden facts
================================== =========================================================================

Here belongs how a claim is measured, and the broken twin that shows that the measurement can fail. Nothing here knows
a run or a folder: those hand in what is theirs. Begin with :mod:`~quorate.audit.sampled`, then
:mod:`~quorate.audit.shards`. "No violation found" is not a proof, and every verdict says so.
"""

from quorate.audit import cheats
from quorate.audit.attacks import Reconstruction, reconstruct
from quorate.audit.claims import ApproxClaim, Claim, GaussianClaim, PureClaim, claim_of
from quorate.audit.detectable import Sizes, setting_of, sizes_for
from quorate.audit.exact import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GeometricLaw,
    Law,
    Negated,
    NoNoise,
    PriceFault,
    exact_delta,
    hockey_stick,
    price_faults,
    stability_test_delta,
    threshold_test_delta,
)
from quorate.audit.exact_sparse_vector import (
    SparseVectorForm,
    answers_after_cutoff,
    answers_at_threshold,
    failure_probability,
)
from quorate.audit.forbidden import Forbidden
from quorate.audit.goodness_of_fit import GoodnessOfFit, audit_answers
from quorate.audit.hard_votes import claim_on, hard_votes
from quorate.audit.leaks import Leak, find_leaks
from quorate.audit.many_answers import SumOfAnswers
from quorate.audit.plans import Attack
from quorate.audit.rounds import audit_means, audit_rounds
from quorate.audit.sampled import (
    AuditResult,
    Canary,
    Releases,
    StepByStep,
    Target,
    audit_mechanism,
    audit_target,
    tied_neighbours,
)
from quorate.audit.schedules import ScheduleAudit, audit_schedule
from quorate.audit.shards import ShardAudit, audit_shards
from quorate.audit.surfaces import Surface, Surfaces

__all__ = [
    "audit_mechanism",
    "audit_means",
    "audit_rounds",
    "price_faults",
    "PriceFault",
    "AuditResult",
    "Releases",
    "tied_neighbours",
    "Claim",
    "PureClaim",
    "ApproxClaim",
    "GaussianClaim",
    "claim_of",
    "claim_on",
    "hard_votes",
    "SumOfAnswers",
    "StepByStep",
    "audit_schedule",
    "ScheduleAudit",
    "Attack",
    "sizes_for",
    "setting_of",
    "Sizes",
    "audit_answers",
    "GoodnessOfFit",
    "answers_at_threshold",
    "answers_after_cutoff",
    "audit_target",
    "Target",
    "Canary",
    "reconstruct",
    "Reconstruction",
    "cheats",
    "SparseVectorForm",
    "failure_probability",
    "threshold_test_delta",
    "stability_test_delta",
    "exact_delta",
    "hockey_stick",
    "Law",
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
    "GeometricLaw",
    "Negated",
    "NoNoise",
    "audit_shards",
    "ShardAudit",
    "Surfaces",
    "Surface",
    "Forbidden",
    "Leak",
    "find_leaks",
]

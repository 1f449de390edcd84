"""The papers' statements as pure functions of numbers.

Here belongs a bound or a formula that a paper states, with its source, and nothing that knows a mechanism, a ledger
or a row. What a run is set up with by default stands in :mod:`quorate.planning`. Begin with
:mod:`~quorate.theory.lzcw21_cutoff`.

A function is named for the paper and the number of the statement, and has its constants as printed; nothing is rounded,
log and ln are natural. ``_shape`` ends the name of one that a paper gives up to constants (and logarithms, where it
says so): the constant is 1, without logarithms. Where a printed statement is false, or does not follow from its proof,
the function of that number says so and returns what is printed; beside it is one that holds, named for how
(``_by_markov``, ``_counted``, ``_at_any_epsilon``), with its proof in ``docs/theory/paper-proofs.md``.
``docs/papers.md`` leads from the papers' own names to these.
"""
# ruff: noqa: F403, F405  each file of the room gives the names that it defines

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.deferred import on_demand

if TYPE_CHECKING:
    from quorate.accounting.pure import relative_entropy
    from quorate.mechanisms.choice import lwy25_lemma_4_1_hypotheses
    from quorate.mechanisms.stage_noise import btt18_algorithm_2_noise, lzcw21_algorithm_2_noise
    from quorate.theory.bns15 import *
    from quorate.theory.btt18 import *
    from quorate.theory.lwy25 import *
    from quorate.theory.lzcw21 import *
    from quorate.theory.lzcw21_cutoff import *

__all__ = [
    "btt18_cutoff", "cutoff_for_mean_error", "btt18_algorithm_2_noise", "btt18_algorithm_2_teachers", "btt18_lemma_3_3",
    "btt18_lemma_3_3_counted", "btt18_theorem_2_5", "btt18_theorem_3_2_rate", "MisclassificationShape",
    "btt18_advanced_composition_shape", "btt18_queries_gained_shape", "btt18_theorem_3_4_shape",
    "btt18_theorem_3_5_shape", "btt18_claim_4_1", "btt18_claim_4_1_by_markov", "btt18_claim_4_1_queries",
    "btt18_public_rows_shape", "btt18_remark_2_shape", "btt18_remark_3_shape", "btt18_theorem_4_2_shape",
    "btt18_theorem_4_3_shape", "btt18a_agreeing_parts", "btt18a_corollary_3_9", "btt18a_theorem_3_11",
    "btt18a_theorem_3_11_at_any_epsilon", "btt18a_theorem_2", "hrs16_convex", "hrs16_convex_parameters",
    "hrs16_non_convex", "lzcw21_algorithm_2_noise", "lzcw21_lemma_3", "lzcw21_lemma_3_at_any_epsilon",
    "lzcw21_lemma_46", "lzcw21_proposition_18_cutoff", "lzcw21_proposition_18_teachers",
    "lzcw21_proposition_18_teachers_by_distance", "lzcw21_theorem_5_cutoff", "lzcw21_theorem_5_cutoff_by_concentration",
    "lzcw21_remark_12_minimiser", "lzcw21_remark_12_queries", "lzcw21_teachers_shape", "lzcw21_theorem_10_cutoff_shape",
    "lzcw21_theorem_10_shape", "lzcw21_theorem_19_shape", "lzcw21_theorem_20", "lzcw21_theorem_20_by_growth",
    "lzcw21_theorem_28_shape", "lzcw21_theorem_5_agnostic_shape", "lzcw21_theorem_5_realizable_shape",
    "lzcw21_answers_shape", "lzcw21_gaussian_teachers", "lzcw21_theorem_22_alpha_shape", "lzcw21_theorem_22_shape",
    "Table1Rate", "lzcw21_table_1_shape", "lzcw21_example_1", "lzcw21_example_2", "disagreement_coefficient",
    "bns15_theorem_b_2", "bns15_theorem_b_3", "bns15_theorem_b_3_for_small_errors", "bns15_theorem_b_4",
    "bns15_theorem_b_5", "bns15_theorem_b_6", "sauer", "bns15_algorithm_3_accuracy", "bns15_algorithm_3_taken",
    "bns15_claim_4_2", "bns15_claim_4_2_counted", "bns15_claim_4_2_points", "bns15_claim_4_9_iteration",
    "bns15_claim_4_9_labelled", "bns15_theorem_3_3_labelled_shape", "bns15_theorem_3_3_rows_shape",
    "bns15_theorem_4_13_shape", "bns15_theorem_4_14_shape", "bns15_theorem_4_16_shape", "bns15_theorem_5_6",
    "bns15_theorem_5_8_shape", "lwy25_claim_3_2_others_shape", "lwy25_claim_3_2_relabelled_shape",
    "lwy25_lemma_2_5_shape", "lwy25_lemma_2_6_shape", "lwy25_lemma_3_3", "lwy25_lemma_4_1_hypotheses",
    "lwy25_theorem_3_6_shape", "lwy25_theorem_4_2_shape", "relative_entropy",
]  # fmt: skip

__getattr__ = on_demand(__name__)

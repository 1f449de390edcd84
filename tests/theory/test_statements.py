"""Every statement: its docstring names its source, each of its arguments is checked, and its value is a number."""

from __future__ import annotations

import inspect
import math
import re

import pytest

from quorate import theory
from quorate.errors import InvalidParameter

# A valid call of each; no two numbers of a call are equal, so that none stands in for another.
CALLS: dict[str, dict[str, object]] = {
    "bns15_algorithm_3_accuracy": {"alpha": 0.1, "beta": 0.05, "iteration": 3},
    "bns15_algorithm_3_taken": {"vc_dimension": 2, "alpha_i": 0.01, "beta_i": 0.02, "n_labelled": 5_000, "n_base": 7},
    "bns15_claim_4_2": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "n_labelled": 300},
    "bns15_claim_4_2_counted": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "n_labelled": 300},
    "bns15_claim_4_2_points": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "n_labelled": 300, "epsilon": 0.9},
    "bns15_claim_4_9_iteration": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "iteration": 3},
    "bns15_claim_4_9_labelled": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05},
    "bns15_theorem_3_3_labelled_shape": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5},
    "bns15_theorem_3_3_rows_shape": {"n_bits": 16, "vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5},
    "bns15_theorem_4_13_shape": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05},
    "bns15_theorem_4_14_shape": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5},
    "bns15_theorem_4_16_shape": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5},
    "bns15_theorem_5_6": {"alpha": 0.1, "beta": 0.05, "epsilon": 0.5, "delta": 1e-9, "n_rows": 70_000},
    "bns15_theorem_5_8_shape": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05},
    "bns15_theorem_b_2": {"n_points": 30, "vc_dimension": 4},
    "bns15_theorem_b_3": {"vc_dimension": 30, "alpha": 0.1},
    "bns15_theorem_b_3_for_small_errors": {"vc_dimension": 30, "alpha": 0.1},
    "bns15_theorem_b_4": {"vc_dimension": 3, "alpha": 0.1, "beta": 0.05},
    "bns15_theorem_b_5": {"vc_dimension": 3, "alpha": 0.1, "beta": 0.05},
    "bns15_theorem_b_6": {"vc_dimension": 3, "alpha": 0.1, "beta": 0.05},
    "btt18_advanced_composition_shape": {"n_rows": 10_000, "n_queries": 500, "vc_dimension": 4, "epsilon": 0.5},
    "btt18_algorithm_2_noise": {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500},
    "btt18_algorithm_2_teachers": {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05},
    "btt18_claim_4_1": {"gamma": 0.05, "alpha": 0.1},
    "btt18_claim_4_1_by_markov": {"gamma": 0.05, "alpha": 0.1},
    "btt18_claim_4_1_queries": {"alpha": 0.1, "beta": 0.05},
    "btt18_cutoff": {"error": 0.1, "n_queries": 500, "beta": 0.05},
    "btt18_lemma_3_3": {"mistakes": 20, "xi": 0.25},
    "btt18_lemma_3_3_counted": {"n_queries": 500, "n_teachers": 30, "mistakes": 20, "xi": 0.25},
    "btt18_public_rows_shape": {"vc_dimension": 4, "alpha": 0.1, "beta": 0.05},
    "btt18_queries_gained_shape": {"alpha": 0.1},
    "btt18_remark_2_shape": {"vc_dimension": 4, "alpha": 0.1, "epsilon": 0.5},
    "btt18_remark_3_shape": {"vc_dimension": 4, "alpha": 0.1, "epsilon": 0.5},
    "btt18_theorem_2_5": {"epsilon": 0.5, "delta": 1e-5, "beta": 0.05},
    "btt18_theorem_3_2_rate": {"cutoff": 20, "n_queries": 500},
    "btt18_theorem_3_4_shape": {"n_rows": 10_000, "n_queries": 500, "vc_dimension": 4, "epsilon": 0.5},
    "btt18_theorem_3_5_shape": {"n_rows": 10_000, "n_queries": 500, "vc_dimension": 4, "epsilon": 0.5, "gamma": 0.05},
    "btt18_theorem_4_2_shape": {"vc_dimension": 4, "alpha": 0.1, "epsilon": 0.5},
    "btt18_theorem_4_3_shape": {"vc_dimension": 4, "alpha": 0.1, "epsilon": 0.5},
    "btt18a_agreeing_parts": {"n_queries": 500, "beta": 0.05, "share": 0.8},
    "btt18a_corollary_3_9": {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05},
    "btt18a_theorem_2": {"uniform_stability": 0.5},
    "btt18a_theorem_3_11": {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05},
    "btt18a_theorem_3_11_at_any_epsilon": {
        "epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05,
    },
    "cutoff_for_mean_error": {"error": 0.1, "n_queries": 500, "beta": 0.05, "disagreeing": 0.3},
    "hrs16_convex": {"lipschitz": 2.0, "smoothness": 3.0, "steps": [0.1], "n_rows": 50},
    "hrs16_convex_parameters": {"lipschitz": 2.0, "smoothness": 3.0, "steps": [0.1], "n_rows": 50},
    "hrs16_non_convex": {"lipschitz": 2.0, "smoothness": 3.0, "c": 0.5, "n_steps": 80, "n_rows": 50},
    "lwy25_claim_3_2_others_shape": {
        "vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5, "n_relabelled": 40,
    },
    "lwy25_claim_3_2_relabelled_shape": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05},
    "lwy25_lemma_2_5_shape": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05},
    "lwy25_lemma_2_6_shape": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05},
    "lwy25_lemma_3_3": {"d": 2, "alpha": 0.1, "beta": 0.05},
    "lwy25_lemma_4_1_hypotheses": {"alpha": 0.1, "epsilon": 0.5},
    "lwy25_theorem_3_6_shape": {"n_base": 90, "vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5},
    "lwy25_theorem_4_2_shape": {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5},
    "lzcw21_algorithm_2_noise": {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500},
    "lzcw21_answers_shape": {"theta": 3.0, "alpha": 0.1, "vc_dimension": 2, "gamma": 0.05},
    "lzcw21_example_1": {"n_teachers": 9},
    "lzcw21_example_2": {"n_teachers": 9, "xi": 0.1},
    "lzcw21_gaussian_teachers": {"n_rows": 10_000, "n_answers": 500, "epsilon": 0.5, "delta": 1e-5},
    "lzcw21_lemma_3": {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05},
    "lzcw21_lemma_3_at_any_epsilon": {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05},
    "lzcw21_lemma_46": {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05},
    "lzcw21_proposition_18_cutoff": {"nu": 0.1, "n_queries": 500, "gamma": 0.05},
    "lzcw21_proposition_18_teachers": {"scale": 30.0, "xi": 0.1, "delta": 1e-5, "n_queries": 500, "gamma": 0.05},
    "lzcw21_proposition_18_teachers_by_distance": {
        "scale": 30.0, "xi": 0.1, "delta": 1e-5, "n_queries": 500, "gamma": 0.05,
    },
    "lzcw21_remark_12_minimiser": {"n_rows": 10_000, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8},
    "lzcw21_remark_12_queries": {"n_rows": 10_000, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8},
    "lzcw21_table_1_shape": {
        "algorithm": "active", "setting": "tnc", "n_rows": 10_000, "n_public": 500, "vc_dimension": 2, "epsilon": 0.5,
        "tau": 0.8, "theta": 3.0,
    },
    "lzcw21_teachers_shape": {"cutoff": 20, "n_queries": 500, "epsilon": 0.5, "delta": 1e-5, "beta": 0.05},
    "lzcw21_theorem_10_cutoff_shape": {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8,
    },
    "lzcw21_theorem_10_shape": {"n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8},
    "lzcw21_theorem_19_shape": {"best_disagreement": 0.1, "cutoff": 20, "n_queries": 500, "vc_dimension": 2},
    "lzcw21_theorem_20": {"cutoff": 20, "n_queries": 500, "n_teachers": 9, "vc_dimension": 2, "gamma": 0.05},
    "lzcw21_theorem_20_by_growth": {
        "cutoff": 20, "n_queries": 500, "n_teachers": 9, "vc_dimension": 2, "gamma": 0.05,
    },
    "lzcw21_theorem_22_alpha_shape": {
        "n_rows": 10_000, "n_public": 500, "n_teachers": 9, "vc_dimension": 2, "tau": 0.8, "gamma": 0.05, "eta": 1.5,
    },
    "lzcw21_theorem_22_shape": {
        "n_rows": 10_000, "n_public": 500, "vc_dimension": 2, "epsilon": 0.5, "delta": 1e-5, "tau": 0.8, "theta": 3.0,
    },
    "lzcw21_theorem_28_shape": {"n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8},
    "lzcw21_theorem_5_agnostic_shape": {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "best_error": 0.1,
    },
    "lzcw21_theorem_5_cutoff": {"error": 0.1, "n_queries": 500, "beta": 0.05},
    "lzcw21_theorem_5_cutoff_by_concentration": {"error": 0.1, "n_queries": 500, "n_teachers": 90, "beta": 0.05},
    "lzcw21_theorem_5_realizable_shape": {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "delta": 1e-5,
    },
}  # fmt: skip
# Not from a paper's statement, or of tables; tested in files of their own.
OTHERS = {"sauer", "relative_entropy", "disagreement_coefficient", "MisclassificationShape", "Table1Rate"}
SOURCE = re.compile(r"BTT18a?|LZCW21|BNS15|LWY25|Hardt, Recht and Singer")


def test_every_public_name_of_the_room_is_here() -> None:
    assert set(CALLS) | OTHERS == set(theory.__all__)
    assert all(set(call) == set(inspect.signature(getattr(theory, name)).parameters) for name, call in CALLS.items())


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_statement_names_its_source_parameters_and_an_example(name: str) -> None:
    said = inspect.getdoc(getattr(theory, name)) or ""
    for heading in ("Parameters", "References", "Examples"):
        assert f"\n{heading}\n{'-' * len(heading)}\n" in said
    assert SOURCE.search(said.split("References")[1])
    described = re.findall(r"^([\w, ]+) : ", said.split("Parameters")[1], re.M)
    assert {each for line in described for each in line.split(", ")} >= set(CALLS[name])


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_statement_is_a_finite_number(name: str) -> None:
    value = getattr(theory, name)(**CALLS[name])
    if isinstance(value, theory.MisclassificationShape | theory.Table1Rate):
        value = tuple(getattr(value, field) for field in type(value).__dataclass_fields__)
    values = value if isinstance(value, tuple) else (value,)
    assert all(isinstance(each, int | float) and math.isfinite(each) for each in values)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("wrong", [float("nan"), -1.0, True, "0.1", None], ids=repr)
def test_what_is_no_number_is_refused_in_one_line_that_names_it(name: str, wrong: object) -> None:
    for parameter in CALLS[name]:
        given = [wrong] if parameter == "steps" else wrong
        with pytest.raises(InvalidParameter, match=rf"^{parameter} must be [^\n]+$"):
            getattr(theory, name)(**{**CALLS[name], parameter: given})


def test_a_shape_says_so_in_its_name() -> None:
    """What is Õ(·) or O(·) in a paper has its constant 1, and nobody takes it for a bound."""
    for name in CALLS:
        said = (inspect.getdoc(getattr(theory, name)) or "") + (inspect.getmodule(getattr(theory, name)).__doc__ or "")
        assert not name.endswith("_shape") or "constant" in said

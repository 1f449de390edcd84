"""Every statement: its docstring names its source, each of its arguments is checked, and its value is a number."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from quorate import theory
from quorate.errors import InvalidParameter

# Each statement at one valid call: its value, and the call. No two numbers of a call are equal, so that none stands in
# for another.
VALUES: dict[str, tuple[Any, dict[str, Any]]] = {
    "bns15_algorithm_3_accuracy": ((0.00125, 0.0015625), {"alpha": 0.1, "beta": 0.05, "iteration": 3}),
    "bns15_algorithm_3_taken": (-4999.955, {
        "vc_dimension": 2, "alpha_i": 0.01, "beta_i": 0.02, "n_labelled": 5000, "n_base": 7,
    }),
    "bns15_claim_4_2": (-233.4858, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "n_labelled": 300}),
    "bns15_claim_4_2_counted": (271, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "n_labelled": 300}),
    "bns15_claim_4_2_points": (31.41907, {
        "vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "n_labelled": 300, "epsilon": 0.9,
    }),
    "bns15_claim_4_9_iteration": (121229900.0, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "iteration": 3}),
    "bns15_claim_4_9_labelled": (24984090.0, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05}),
    "bns15_theorem_3_3_labelled_shape": (9270.255, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5}),
    "bns15_theorem_3_3_rows_shape": (147425.4, {
        "n_bits": 16, "vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5,
    }),
    "bns15_theorem_4_13_shape": (105.9663, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05}),
    "bns15_theorem_4_14_shape": (211.9327, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5}),
    "bns15_theorem_4_16_shape": (2119.327, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5}),
    "bns15_theorem_5_6": (0.351871, {"alpha": 0.1, "beta": 0.05, "epsilon": 0.5, "delta": 1e-9, "n_rows": 70_000}),
    "bns15_theorem_5_8_shape": (105.9663, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05}),
    "bns15_theorem_b_2": (172752.0, {"n_points": 30, "vc_dimension": 4}),
    "bns15_theorem_b_3": (18.125, {"vc_dimension": 30, "alpha": 0.1}),
    "bns15_theorem_b_3_for_small_errors": (18.125, {"vc_dimension": 30, "alpha": 0.1}),
    "bns15_theorem_b_4": (1513.152, {"vc_dimension": 3, "alpha": 0.1, "beta": 0.05}),
    "bns15_theorem_b_5": (105513.0, {"vc_dimension": 3, "alpha": 0.1, "beta": 0.05}),
    "bns15_theorem_b_6": (79474.76, {"vc_dimension": 3, "alpha": 0.1, "beta": 0.05}),
    "btt18_advanced_composition_shape": (0.01788854, {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 4, "epsilon": 0.5,
    }),
    "btt18_algorithm_2_noise": ((176.7698, 6512.438), {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500}),
    "btt18_algorithm_2_teachers": (187923.9, {
        "epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05,
    }),
    "btt18_claim_4_1": (0.85, {"gamma": 0.05, "alpha": 0.1}),
    "btt18_claim_4_1_by_markov": (0.45, {"gamma": 0.05, "alpha": 0.1}),
    "btt18_claim_4_1_queries": (211.9327, {"alpha": 0.1, "beta": 0.05}),
    "btt18_cutoff": (195.5228, {"error": 0.1, "n_queries": 500, "beta": 0.05}),
    "btt18_lemma_3_3": (80.0, {"mistakes": 20, "xi": 0.25}),
    "btt18_lemma_3_3_counted": (75, {"n_queries": 500, "n_teachers": 30, "mistakes": 20, "xi": 0.25}),
    "btt18_public_rows_shape": (699.5732, {"vc_dimension": 4, "alpha": 0.1, "beta": 0.05}),
    "btt18_queries_gained_shape": (10.0, {"alpha": 0.1}),
    "btt18_remark_2_shape": (160.0, {"vc_dimension": 4, "alpha": 0.1, "epsilon": 0.5}),
    "btt18_remark_3_shape": (320.0, {"vc_dimension": 4, "alpha": 0.1, "epsilon": 0.5}),
    "btt18_theorem_2_5": (29.01732, {"epsilon": 0.5, "delta": 1e-5, "beta": 0.05}),
    "btt18_theorem_3_2_rate": (0.04, {"cutoff": 20, "n_queries": 500}),
    "btt18_theorem_3_4_shape": ((500, 1250.0, 1.0, 0.0008), {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 4, "epsilon": 0.5,
    }),
    "btt18_theorem_3_5_shape": ((500, 20.0, 59.19952, 0.118399), {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 4, "epsilon": 0.5, "gamma": 0.05,
    }),
    "btt18_theorem_4_2_shape": (505.9644, {"vc_dimension": 4, "alpha": 0.1, "epsilon": 0.5}),
    "btt18_theorem_4_3_shape": (5059.644, {"vc_dimension": 4, "alpha": 0.1, "epsilon": 0.5}),
    "btt18a_agreeing_parts": (278.5356, {"n_queries": 500, "beta": 0.05, "share": 0.8}),
    "btt18a_corollary_3_9": (15633.21, {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05}),
    "btt18a_theorem_2": (0.5, {"uniform_stability": 0.5}),
    "btt18a_theorem_3_11": (93961.94, {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05}),
    "btt18a_theorem_3_11_at_any_epsilon": (93961.94, {
        "epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05,
    }),
    "cutoff_for_mean_error": (224, {"error": 0.1, "n_queries": 500, "beta": 0.05, "disagreeing": 0.3}),
    "hrs16_convex": (0.016, {"lipschitz": 2.0, "smoothness": 3.0, "steps": [0.1], "n_rows": 50}),
    "hrs16_convex_parameters": (0.008, {"lipschitz": 2.0, "smoothness": 3.0, "steps": [0.1], "n_rows": 50}),
    "hrs16_non_convex": (0.8209764, {"lipschitz": 2.0, "smoothness": 3.0, "c": 0.5, "n_steps": 80, "n_rows": 50}),
    "lwy25_claim_3_2_others_shape": (499.5732, {
        "vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5, "n_relabelled": 40,
    }),
    "lwy25_claim_3_2_relabelled_shape": (76.00902, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05}),
    "lwy25_lemma_2_5_shape": (76.00902, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05}),
    "lwy25_lemma_2_6_shape": (499.5732, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05}),
    "lwy25_lemma_3_3": (179.7439, {"d": 2, "alpha": 0.1, "beta": 0.05}),
    "lwy25_lemma_4_1_hypotheses": (45, {"alpha": 0.1, "epsilon": 0.5}),
    "lwy25_theorem_3_6_shape": (741.5913, {
        "n_base": 90, "vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5,
    }),
    "lwy25_theorem_4_2_shape": (888.0163, {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05, "epsilon": 0.5}),
    "lzcw21_algorithm_2_noise": ((89.28093, 4944.351), {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500}),
    "lzcw21_answers_shape": (66.58147, {"theta": 3.0, "alpha": 0.1, "vc_dimension": 2, "gamma": 0.05}),
    "lzcw21_example_1": (0.6413656, {"n_teachers": 9}),
    "lzcw21_example_2": (0.8352702, {"n_teachers": 9, "xi": 0.1}),
    "lzcw21_gaussian_teachers": (5791.932, {"n_rows": 10_000, "n_answers": 500, "epsilon": 0.5, "delta": 1e-5}),
    "lzcw21_lemma_3": (93961.94, {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05}),
    "lzcw21_lemma_3_at_any_epsilon": (43423, {
        "epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05,
    }),
    "lzcw21_lemma_46": (8858.012, {"epsilon": 0.5, "delta": 1e-5, "cutoff": 20, "n_queries": 500, "beta": 0.05}),
    "lzcw21_proposition_18_cutoff": (72.96405, {"nu": 0.1, "n_queries": 500, "gamma": 0.05}),
    "lzcw21_proposition_18_teachers": (26480.5, {
        "scale": 30.0, "xi": 0.1, "delta": 1e-5, "n_queries": 500, "gamma": 0.05,
    }),
    "lzcw21_proposition_18_teachers_by_distance": (52981.01, {
        "scale": 30.0, "xi": 0.1, "delta": 1e-5, "n_queries": 500, "gamma": 0.05,
    }),
    "lzcw21_remark_12_minimiser": (464.1589, {"n_rows": 10_000, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8}),
    "lzcw21_remark_12_queries": (292.4018, {"n_rows": 10_000, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8}),
    "lzcw21_table_1_shape": ((0.009864848, 0.004, 1.0), {
        "algorithm": "active", "setting": "tnc", "n_rows": 10_000, "n_public": 500, "vc_dimension": 2, "epsilon": 0.5,
        "tau": 0.8, "theta": 3.0,
    }),
    "lzcw21_teachers_shape": (628.9209, {"cutoff": 20, "n_queries": 500, "epsilon": 0.5, "delta": 1e-5, "beta": 0.05}),
    "lzcw21_theorem_10_cutoff_shape": (4.472136, {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8,
    }),
    "lzcw21_theorem_10_shape": (0.01294427, {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8,
    }),
    "lzcw21_theorem_19_shape": (0.2432456, {
        "best_disagreement": 0.1, "cutoff": 20, "n_queries": 500, "vc_dimension": 2,
    }),
    "lzcw21_theorem_20": (0.3838203, {
        "cutoff": 20, "n_queries": 500, "n_teachers": 9, "vc_dimension": 2, "gamma": 0.05,
    }),
    "lzcw21_theorem_20_by_growth": (1.50245, {
        "cutoff": 20, "n_queries": 500, "n_teachers": 9, "vc_dimension": 2, "gamma": 0.05,
    }),
    "lzcw21_theorem_22_alpha_shape": (0.1243864, {
        "n_rows": 10_000, "n_public": 500, "n_teachers": 9, "vc_dimension": 2, "tau": 0.8, "gamma": 0.05, "eta": 1.5,
    }),
    "lzcw21_theorem_22_shape": (0.02227506, {
        "n_rows": 10_000, "n_public": 500, "vc_dimension": 2, "epsilon": 0.5, "delta": 1e-5, "tau": 0.8, "theta": 3.0,
    }),
    "lzcw21_theorem_28_shape": (0.04708869, {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "tau": 0.8,
    }),
    "lzcw21_theorem_5_agnostic_shape": (1.406334, {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "best_error": 0.1,
    }),
    "lzcw21_theorem_5_cutoff": (293.9558, {"error": 0.1, "n_queries": 500, "beta": 0.05}),
    "lzcw21_theorem_5_cutoff_by_concentration": (445, {"error": 0.1, "n_queries": 500, "n_teachers": 90, "beta": 0.05}),
    "lzcw21_theorem_5_realizable_shape": (0.06416659, {
        "n_rows": 10_000, "n_queries": 500, "vc_dimension": 2, "epsilon": 0.5, "delta": 1e-5,
    }),
}  # fmt: skip
CALLS = {name: call for name, (_, call) in VALUES.items()}
# Not from a paper's statement, or of tables; tested in files of their own.
OTHERS = {"sauer", "relative_entropy", "disagreement_coefficient", "MisclassificationShape", "Table1Rate"}
SOURCE = re.compile(r"BTT18a?|LZCW21|BNS15|LWY25|Hardt, Recht and Singer")


def test_every_public_name_of_the_room_is_here() -> None:
    assert set(CALLS) | OTHERS == set(theory.__all__)
    assert all(set(call) == set(inspect.signature(getattr(theory, name)).parameters) for name, call in CALLS.items())


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_statement_names_its_source_and_parameters_and_has_its_value(name: str) -> None:
    documentation = inspect.getdoc(getattr(theory, name)) or ""
    for heading in ("Parameters", "References"):
        assert f"\n{heading}\n{'-' * len(heading)}\n" in documentation
    assert SOURCE.search(documentation.split("References")[1])
    described = re.findall(r"^([\w, ]+) : ", documentation.split("Parameters")[1], re.M)
    assert {parameter for line in described for parameter in line.split(", ")} >= set(CALLS[name])
    value = getattr(theory, name)(**CALLS[name])
    if isinstance(value, theory.MisclassificationShape | theory.Table1Rate):
        value = tuple(getattr(value, field) for field in type(value).__dataclass_fields__)
    assert value == pytest.approx(VALUES[name][0], rel=1e-6)


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
        assert not name.endswith("_shape") or "constant, which is 1" in (inspect.getdoc(getattr(theory, name)) or "")

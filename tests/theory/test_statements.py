"""Every statement: its docstring names its source, each of its arguments is checked, and its value is a number."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from quorate import theory
from quorate.cli.group import COMMANDS
from quorate.errors import InvalidParameter

# A valid value of every argument. No two numbers of a call are equal, so that none stands in for another.
TYPICAL: dict[str, Any] = {
    "algorithm": "active", "alpha": 0.1, "alpha_i": 0.01, "best_disagreement": 0.1, "best_error": 0.1, "beta": 0.05,
    "beta_i": 0.02, "c": 0.5, "cutoff": 20, "d": 2, "delta": 1e-5, "disagreeing": 0.3, "epsilon": 0.5, "error": 0.1,
    "eta": 1.5, "gamma": 0.05, "iteration": 3, "lipschitz": 2.0, "mistakes": 20, "n_answers": 500, "n_base": 7,
    "n_bits": 16, "n_labelled": 300, "n_points": 30, "n_public": 500, "n_queries": 500, "n_relabelled": 40,
    "n_rows": 10_000, "n_steps": 80, "n_teachers": 9, "nu": 0.1, "scale": 30.0, "setting": "tnc", "share": 0.8,
    "smoothness": 3.0, "steps": [0.1], "tau": 0.8, "theta": 3.0, "uniform_stability": 0.5, "vc_dimension": 2,
    "xi": 0.1,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {  # where a statement needs another one
    "bns15_algorithm_3_taken": {"n_labelled": 5000}, "bns15_claim_4_2_points": {"epsilon": 0.9},
    "bns15_theorem_5_6": {"delta": 1e-09, "n_rows": 70_000}, "bns15_theorem_b_2": {"vc_dimension": 4},
    "bns15_theorem_b_3": {"vc_dimension": 30}, "bns15_theorem_b_3_for_small_errors": {"vc_dimension": 30},
    "bns15_theorem_b_4": {"vc_dimension": 3}, "bns15_theorem_b_5": {"vc_dimension": 3},
    "bns15_theorem_b_6": {"vc_dimension": 3}, "btt18_advanced_composition_shape": {"vc_dimension": 4},
    "btt18_lemma_3_3": {"xi": 0.25}, "btt18_lemma_3_3_counted": {"n_teachers": 30, "xi": 0.25},
    "btt18_public_rows_shape": {"vc_dimension": 4}, "btt18_remark_2_shape": {"vc_dimension": 4},
    "btt18_remark_3_shape": {"vc_dimension": 4}, "btt18_theorem_3_4_shape": {"vc_dimension": 4},
    "btt18_theorem_3_5_shape": {"vc_dimension": 4}, "btt18_theorem_4_2_shape": {"vc_dimension": 4},
    "btt18_theorem_4_3_shape": {"vc_dimension": 4}, "hrs16_convex": {"n_rows": 50},
    "hrs16_convex_parameters": {"n_rows": 50}, "hrs16_non_convex": {"n_rows": 50},
    "lwy25_theorem_3_6_shape": {"n_base": 90}, "lzcw21_theorem_5_cutoff_by_concentration": {"n_teachers": 90},
}  # fmt: skip
# Each statement with its value there.
VALUES: dict[str, Any] = {
    "bns15_algorithm_3_accuracy": (0.00125, 0.0015625), "bns15_algorithm_3_taken": -4999.955,
    "bns15_claim_4_2": -233.4858, "bns15_claim_4_2_counted": 271, "bns15_claim_4_2_points": 31.41907,
    "bns15_claim_4_9_iteration": 121229900.0, "bns15_claim_4_9_labelled": 24984090.0,
    "bns15_theorem_3_3_labelled_shape": 9270.255, "bns15_theorem_3_3_rows_shape": 147425.4,
    "bns15_theorem_4_13_shape": 105.9663, "bns15_theorem_4_14_shape": 211.9327, "bns15_theorem_4_16_shape": 2119.327,
    "bns15_theorem_5_6": 0.351871, "bns15_theorem_5_8_shape": 105.9663, "bns15_theorem_b_2": 172752.0,
    "bns15_theorem_b_3": 18.125, "bns15_theorem_b_3_for_small_errors": 18.125, "bns15_theorem_b_4": 1513.152,
    "bns15_theorem_b_5": 105513.0, "bns15_theorem_b_6": 79474.76, "btt18_advanced_composition_shape": 0.01788854,
    "btt18_algorithm_2_noise": (176.7698, 6512.438), "btt18_algorithm_2_teachers": 187923.9, "btt18_claim_4_1": 0.85,
    "btt18_claim_4_1_by_markov": 0.45, "btt18_claim_4_1_queries": 211.9327, "btt18_cutoff": 195.5228,
    "btt18_lemma_3_3": 80.0, "btt18_lemma_3_3_counted": 75, "btt18_public_rows_shape": 699.5732,
    "btt18_queries_gained_shape": 10.0, "btt18_remark_2_shape": 160.0, "btt18_remark_3_shape": 320.0,
    "btt18_theorem_2_5": 29.01732, "btt18_theorem_3_2_rate": 0.04,
    "btt18_theorem_3_4_shape": (500, 1250.0, 1.0, 0.0008),
    "btt18_theorem_3_5_shape": (500, 20.0, 59.19952, 0.118399), "btt18_theorem_4_2_shape": 505.9644,
    "btt18_theorem_4_3_shape": 5059.644, "btt18a_agreeing_parts": 278.5356, "btt18a_corollary_3_9": 15633.21,
    "btt18a_theorem_2": 0.5, "btt18a_theorem_3_11": 93961.94, "btt18a_theorem_3_11_at_any_epsilon": 93961.94,
    "cutoff_for_mean_error": 224, "hrs16_convex": 0.016, "hrs16_convex_parameters": 0.008,
    "hrs16_non_convex": 0.8209764, "lwy25_claim_3_2_others_shape": 499.5732,
    "lwy25_claim_3_2_relabelled_shape": 76.00902, "lwy25_lemma_2_5_shape": 76.00902,
    "lwy25_lemma_2_6_shape": 499.5732, "lwy25_lemma_3_3": 179.7439, "lwy25_lemma_4_1_hypotheses": 45,
    "lwy25_theorem_3_6_shape": 741.5913, "lwy25_theorem_4_2_shape": 888.0163,
    "lzcw21_algorithm_2_noise": (89.28093, 4944.351), "lzcw21_answers_shape": 66.58147,
    "lzcw21_example_1": 0.6413656, "lzcw21_example_2": 0.8352702, "lzcw21_gaussian_teachers": 5791.932,
    "lzcw21_lemma_3": 93961.94, "lzcw21_lemma_3_at_any_epsilon": 43423, "lzcw21_lemma_46": 8858.012,
    "lzcw21_proposition_18_cutoff": 72.96405, "lzcw21_proposition_18_teachers": 26480.5,
    "lzcw21_proposition_18_teachers_by_distance": 52981.01, "lzcw21_remark_12_minimiser": 464.1589,
    "lzcw21_remark_12_queries": 292.4018, "lzcw21_table_1_shape": (0.009864848, 0.004, 1.0),
    "lzcw21_teachers_shape": 628.9209, "lzcw21_theorem_10_cutoff_shape": 4.472136,
    "lzcw21_theorem_10_shape": 0.01294427, "lzcw21_theorem_19_shape": 0.2432456, "lzcw21_theorem_20": 0.3838203,
    "lzcw21_theorem_20_by_growth": 1.50245, "lzcw21_theorem_22_alpha_shape": 0.1243864,
    "lzcw21_theorem_22_shape": 0.02227506, "lzcw21_theorem_28_shape": 0.04708869,
    "lzcw21_theorem_5_agnostic_shape": 1.406334, "lzcw21_theorem_5_cutoff": 293.9558,
    "lzcw21_theorem_5_cutoff_by_concentration": 445, "lzcw21_theorem_5_realizable_shape": 0.06416659,
}  # fmt: skip
CALLS = {
    name: {word: {**TYPICAL, **OWN.get(name, {})}[word] for word in inspect.signature(getattr(theory, name)).parameters}
    for name in VALUES
}
# Not from a paper's statement, or of tables; tested in files of their own.
OTHERS = {"sauer", "relative_entropy", "disagreement_coefficient", "MisclassificationShape", "Table1Rate"}
SOURCE = re.compile(r"BTT18a?|LZCW21|BNS15|LWY25|Hardt, Recht and Singer")


def test_every_public_name_of_the_room_is_here():
    assert set(CALLS) | OTHERS == set(theory.__all__)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_statement_names_its_source_and_parameters_and_has_its_value(name):
    documentation = inspect.getdoc(getattr(theory, name)) or ""
    for heading in ("Parameters", "References"):
        assert f"\n{heading}\n{'-' * len(heading)}\n" in documentation
    assert SOURCE.search(documentation.split("References")[1])
    described = re.findall(r"^([\w, ]+) : ", documentation.split("Parameters")[1], re.M)
    assert {parameter for line in described for parameter in line.split(", ")} >= set(CALLS[name])
    value = getattr(theory, name)(**CALLS[name])
    if isinstance(value, theory.MisclassificationShape | theory.Table1Rate):
        value = tuple(getattr(value, field) for field in type(value).__dataclass_fields__)
    assert value == pytest.approx(VALUES[name], rel=1e-6)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("wrong", [float("nan"), -1.0, True, "0.1", None], ids=repr)
def test_what_is_no_number_is_refused_in_one_line_that_names_it(name, wrong):
    for parameter in CALLS[name]:
        given = [wrong] if parameter == "steps" else wrong
        with pytest.raises(InvalidParameter, match=rf"^{parameter} must be [^\n]+$"):
            getattr(theory, name)(**{**CALLS[name], parameter: given})


def test_a_shape_says_so_in_its_name():
    """What is Õ(·) or O(·) in a paper has its constant 1, and nobody takes it for a bound."""
    for name in CALLS:
        assert not name.endswith("_shape") or "constant, which is 1" in (inspect.getdoc(getattr(theory, name)) or "")


ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "papers.md"
ROW = re.compile(r"^\| ([^|]+?) \| (`[^|]*`)? ?\| ((?:[^|]|(?<=\\)\|)*)\|$", re.M)
# Numbers and tables, and what is no statement: of the room's names these are not on the page.
NOT_A_STATEMENT = {"relative_entropy", "MisclassificationShape", "Table1Rate"}


def names(text: str) -> list[str]:
    return [name for _, code, _ in ROW.findall(text) for name in re.findall(r"`([^`]+)`", code)]


def found(name: str) -> object:
    """What a dotted name is: the longest part of it that is a module, and attributes of that."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            value: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(name)


NAMES = sorted(set(names(PAGE.read_text(encoding="utf-8"))))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_the_code_column_imports_or_is_a_command(name):
    if name.startswith("quorate "):
        assert name.removeprefix("quorate ") in COMMANDS
    else:
        assert name.startswith("quorate.")
        assert callable(found(name))


def test_every_line_of_the_tables_is_read():
    text = PAGE.read_text(encoding="utf-8")
    body = text[text.index("## BTT18") :]
    lines = [line for line in body.splitlines() if line.startswith("| ")]
    heads = [line for line in lines if re.match(r"\| (---|in the paper)", line)]
    assert len(ROW.findall(body)) == len(lines) - len(heads) > 60
    assert len(NAMES) > 100


def test_every_statement_is_on_the_page():
    assert {f"quorate.theory.{name}" for name in set(theory.__all__) - NOT_A_STATEMENT} <= set(NAMES)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "own",
    ["PATE-PSQ", "PATE-ASQ", "A_{OQR}", "A_{subSamp}", "A_{binClas}", "A_{priv}", "A_{stab}", "A_{Relabel}",
     "A_{Agnostic}", "GenericLearner", "LabelBoost", "LabelBoostProcedure", "SubSampling", "Table 1", "Tables 3 and 4"],
)  # fmt: skip
def test_the_papers_own_names_are_on_the_page(own):
    assert own in "".join(row for row, _, _ in ROW.findall(PAGE.read_text(encoding="utf-8")))


def test_a_name_that_is_not_there_is_caught():
    assert names("| Theorem 9 | `quorate.theory.btt18_theorem_9`, `quorate fly` | |\n") == [
        "quorate.theory.btt18_theorem_9", "quorate fly",
    ]  # fmt: skip
    with pytest.raises(AttributeError):
        found("quorate.theory.btt18_theorem_9")


def test_the_page_is_linked_from_the_readme():
    assert "(docs/papers.md)" in (ROOT / "README.md").read_text(encoding="utf-8")

"""The examples run, answer, and say what they cost: in a reduced form, with a seed."""

from pathlib import Path

import pytest
from tests.shell import shell

pytestmark = pytest.mark.heavy

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = "--records 1600 --shards 8 --epsilon 40 --seed 1"

ANSWERS = {  # what nearly all shards agree on, however few there are
    "choose_features.py": ["best feature set    home and school", "best single column  "],
    "choose_hyperparameter.py": ["C among 0.0001, 0.01, 1     1", "C among 0.5, 0.7, 1, 1.4    "],
    "most_common_value.py": [
        "most common education         HS-grad",
        "most common occupation        ",
        "median hours a week, to ten   40",
        "median age, to ten years      40",
        "do managers earn more?        True",
    ],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_example_prints_answers_and_the_guarantee(name, tmp_path):
    code, out, wrong = shell(f"python {EXAMPLES / name} {SMALL}", tmp_path)
    assert code == 0, wrong
    lines = out.splitlines()
    assert [line[: len(said)] for line, said in zip(lines, ANSWERS[name], strict=False)] == ANSWERS[name]
    told = " ".join(out.split())
    assert "(ε = 40, δ = 1e-6)-differential privacy per record" in told
    assert "reproducible, therefore not private" in told  # a seed was given


def test_the_attack_on_membership_succeeds_on_the_rows_own_model_and_fails_on_the_student(tmp_path):
    program = EXAMPLES / "membership_inference.py"
    code, out, wrong = shell(f"python {program} --records 1600 --teachers 16 --seed 1", tmp_path)
    assert code == 0, wrong
    own, student, _ = out.splitlines()
    assert float(own.split()[-1]) > 0.55
    assert 0.45 < float(student.split()[-1]) < 0.55

"""What is said of every direct run beside its price: what its owner states, and a remedy where a budget refuses it."""

from __future__ import annotations

REMEDY = (
    "give a smaller epsilon, for which the rounds take more noise; or raise the budget, with a reason. How many rounds "
    "there are changes nothing in the price"
)
POOL_IS_STATED = (
    "that nobody's private row is in the public pool is the owner's statement: the rows of both were not compared, "
    "since the answer would tell of private rows"
)
FITTED_IS_STATED = (
    "the transformer that makes numbers of rows came fitted, and is published with the model: that it was fitted on "
    "public rows is the owner's statement"
)


def score_left_out(name: str) -> str:
    """Say, on the owner's terminal alone, why what is published has no score.

    Examples
    --------
    >>> score_left_out("evaluation").split(":")[0]
    'the score was left out'
    """
    return (
        f"the score was left out: {name} holds private rows, and a score on them would be published without a charge. "
        "What is published has the form of a run without labelled rows, and gives no reason. Score on public rows, "
        "about nobody in the private table. This line is for you alone, and is outside the guarantee"
    )

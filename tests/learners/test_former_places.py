"""What version 0.1 pickled, and what was imported from its modules, is found where it is now."""

from __future__ import annotations

import pickle
from base64 import b64decode
from importlib import import_module

import pytest

from quorate.learners import ExponentialLearner, LabelBoost
from quorate.learners.amplification.price import Price

# The modules of 0.1 that moved, each with what was public in it; what only its own tests used is gone, and what was the
# function amplification.without_replacement is a module of that name.
NAMES = {
    "exponential": ("ChoicePlan", "whole_class", "choose", "check_labelled", "ExponentialLearner"),
    "noisy_threshold": ("NoisyThreshold", "threshold_runs"),
    "noisy_quantile": ("NoisyQuantile",),
    "grid_choice": ("GridChoice",),
    "choice_bound": ("choice_rows", "growth_of", "deviation_rows"),
    "generic": ("GenericPlan", "GenericLearner"),
    "sanitized_net": ("Net",),
    "label_boost": ("relabelled", "BoostPlan", "LabelBoost"),
    "label_boost_paper": ("PaperConstants",),
    "label_boost_schedule": (
        "Round", "Schedule", "price_of", "iteration_accuracy", "rows_to_generalise", "largest_relabelled",
    ),
    "label_boost_task": ("BoostTask", "Constants", "too_few_labels"),
    "label_boost_tight": ("TightConstants",),
    "relabelling_price": ("relabelling", "bns15_lemma_4_1"),
    "sub_sampling": ("SubSamplingPlan", "SubSampling"),
    "subsampling_price": ("subsampling", "bns15_subsampling", "bns15_claim_5_7"),
    "agnostic": ("choice_at", "relabelled_sample", "AgnosticPlan", "AgnosticLearner"),
    "agnostic_base": ("priced", "errs_little_on_any_rows", "learner_error"),
    "agnostic_bound": ("relabelling_error", "disagreement", "consistent_error", "agnostic_error"),
    "agnostic_prediction": ("AgnosticPrediction",),
    "agnostic_price": ("AgnosticPrice", "affordable_learner"),
    "agnostic_search": ("AgnosticSplit", "best_split", "relabels", "refuse_plan", "least_rows", "rows_for"),
    "agnostic_voting": ("PredictionPlan", "voting_error", "plan_predictions"),
    "subsampled_agnostic": (
        "SubsampledSplit", "subsampled_error", "SubsampledPlan", "SubsampledAgnostic", "best_subsample",
    ),
    "amplification": (
        "Price", "rounded_up_price", "worst_of", "bns15_claim_4_3", "largest_count",
        "smallest_count",
    ),
    "resampling_price": (
        "with_replacement", "with_replacement_by_profile", "cheapest_with_replacement", "bns15_claim_4_5",
        "lwy25_lemma_2_13",
    ),
    "random_subsets": ("random_integers", "random_arrangement", "random_draws"),
    "sanitizers.xor_class": ("bits_and_intervals", "grid", "public_domain", "refuse_outside", "XorQueries"),
}  # fmt: skip

RENAMED = {"Schedule": "BoostSchedule"}

# pickle.dumps([Price(1.0, 1e-6), LabelBoost(… base=ExponentialLearner(…))], protocol=4), by version 0.1.
PICKLED = (
    "gASVDgIAAAAAAABdlCiMHnF1b3JhdGUubGVhcm5lcnMuYW1wbGlmaWNhdGlvbpSMBVByaWNllJOUKYGUXZQoRz/wAAAAAAAARz6w"
    "xvegte2NZWKMHHF1b3JhdGUubGVhcm5lcnMubGFiZWxfYm9vc3SUjApMYWJlbEJvb3N0lJOUKYGUfZQojAhjb25jZXB0c5SMJHF1"
    "b3JhdGUubGVhcm5lcnMuY29uY2VwdHMudGhyZXNob2xkc5SMClRocmVzaG9sZHOUk5QpgZR9lIwEYml0c5RLBHNijARiYXNllIwc"
    "cXVvcmF0ZS5sZWFybmVycy5leHBvbmVudGlhbJSMEkV4cG9uZW50aWFsTGVhcm5lcpSTlCmBlH2UKGgLaA4pgZR9lGgRSwRzYowH"
    "ZXBzaWxvbpRHP/AAAAAAAACMBWFscGhhlEc/uZmZmZmZmowEYmV0YZRHP7mZmZmZmZqMCXNlbGVjdGlvbpSMEHBlcm11dGUtYW5k"
    "LWZsaXCUjAVsaW1pdJRKQEIPAIwEcm93c5SMA2FueZSMBmxlZGdlcpROjBF1bnNhZmVfbm9pc2Vfc2VlZJROdWJoGkc/4AAAAAAA"
    "AIwFZGVsdGGURwAAAAAAAAAAjAljb25zdGFudHOUjAV0aWdodJRoG0c/uZmZmZmZmmgcRz+5mZmZmZmajAliYXNlX3Jvd3OUTmgg"
    "aCFoIk5oI051YmUu"
)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in NAMES.items() for name in names])
def test_a_name_of_0_1_is_found_and_warns_of_its_place(module: str, name: str) -> None:
    old = f"quorate.learners.{module}"
    holder = import_module(old)
    if name in vars(holder):  # an algorithm's learner, which its folder exports
        assert getattr(holder, name).__module__.startswith(old)
        return
    now = RENAMED.get(name, name)
    with pytest.warns(FutureWarning, match=rf"{old}\.{name} is now quorate\.learners\.[\w.]+\.{now};") as caught:
        found = getattr(holder, name)
    place = str(caught[0].message).split(" is now ")[1].split(";")[0]
    assert getattr(import_module(place.rpartition(".")[0]), now) is found


def test_what_0_1_pickled_is_read() -> None:
    with pytest.warns(FutureWarning):
        price, learner = pickle.loads(b64decode(PICKLED))  # noqa: S301  our own bytes
    assert price == Price(1.0, 1e-6)
    assert isinstance(learner, LabelBoost)
    assert isinstance(learner.base, ExponentialLearner)


def test_a_name_that_never_was_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"module 'quorate\.learners\.exponential' has no attribute 'logarithm'"):
        _ = import_module("quorate.learners.exponential").logarithm
    with pytest.raises(ModuleNotFoundError):
        import_module("quorate.learners.logarithmic")

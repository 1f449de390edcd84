"""Where the modules of version 0.1 went that stood in this room: pickled learners and plans name them."""

from __future__ import annotations

from quorate.renamed import moved_modules

_ROOM = "quorate.learners."
_PLACES = {
    "exponential": ("base.exponential",),
    "noisy_threshold": ("base.noisy_threshold",),
    "noisy_quantile": ("base.noisy_quantile",),
    "grid_choice": ("base.grid_choice",),
    "choice_bound": ("base.choice_bound",),
    "sanitized_net": ("generic.net",),
    "label_boost_paper": ("label_boost.paper",),
    "label_boost_schedule": ("label_boost.schedule:Schedule=BoostSchedule", "label_boost.schedule"),
    "label_boost_task": ("label_boost.task",),
    "label_boost_tight": ("label_boost.tight",),
    "relabelling_price": ("label_boost.price",),
    "subsampling_price": ("sub_sampling.price",),
    "agnostic_base": ("agnostic.base",),
    "agnostic_bound": ("agnostic.bound",),
    "agnostic_prediction": ("agnostic.prediction",),
    "agnostic_price": ("agnostic.price",),
    "agnostic_search": ("agnostic.search",),
    "agnostic_voting": ("agnostic.voting",),
    "subsampled_agnostic": ("agnostic.subsampled",),
    "resampling_price": ("amplification.with_replacement",),
    "random_subsets": ("amplification.random_subsets",),
    "sanitizers.xor_class": (
        "sanitizers.symmetric_difference_queries",
        "concepts.domain",
    ),
}


def keep_importable() -> None:
    """Let the old names be imported; each attribute warns of its new place."""
    moved_modules({_ROOM + old: [_ROOM + place for place in places] for old, places in _PLACES.items()})

"""Names that outlive a move: what keys, stored models and facts call a class, wherever its file stands.

Keys of charges and of stages are digests of text with the names of classes in it. Were a name the path of a file,
moving the file would charge a run again. So each class of this package that a key can meet is given its name, which is
where it first stood, and keeps it when it moves or is renamed. A class of a user's own is called by its module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

_STORED = "__stored_name__"
Named = TypeVar("Named", bound=Callable[..., Any])

#: Of a class of this package that has moved since 0.2.0.dev0, or of a module of which all have, the paths then and now.
#: Models that skops wrote hold the path of each class, and are opened by this table.
PLACES: Final[Mapping[str, str]] = {
    "quorate.students.labels": "quorate.students.student",
    "quorate.students.self_training": "quorate.students.semi_supervised",
    "quorate.students.spreading": "quorate.students.semi_supervised",
    "quorate.labelling.active.oracular_cal": "quorate.labelling.active.disagreement",
    "quorate.labelling.active.random_subset": "quorate.labelling.active.strategy",
    "quorate.labelling.active.core_set": "quorate.labelling.active.uncertainty",
    "quorate.labelling.active.erm": "quorate.labelling.active.uncertainty",
    "quorate.labelling.active.k_means": "quorate.labelling.active.uncertainty",
    "quorate.labelling.active.margin": "quorate.labelling.active.uncertainty",
    "quorate.labelling.memo": "quorate.labelling.questions",
    "quorate.learners.agnostic.subsampled": "quorate.learners.agnostic.learner",
    "quorate.pipeline.checks.seed": "quorate.run.checks.seed",
    "quorate.run.sites.signed_votes": "quorate.folder.sites.signed_votes",
    "quorate.mechanisms.exponential": "quorate.mechanisms.choice",
    "quorate.mechanisms.gaussian_noisy_max": "quorate.mechanisms.noisy_max",
    "quorate.mechanisms.interactive_noisy_max": "quorate.mechanisms.confident_noisy_max",
    "quorate.mechanisms.laplace_noisy_max": "quorate.mechanisms.noisy_max",
    "quorate.mechanisms.noisy_counts": "quorate.mechanisms.noisy_max",
    "quorate.mechanisms.permute_and_flip": "quorate.mechanisms.choice",
    "quorate.mechanisms.private_prediction": "quorate.mechanisms.choice",
    "quorate.mechanisms.several_votes": "quorate.mechanisms.noisy_max",
    "quorate.mechanisms.stability": "quorate.mechanisms.sparse_vector",
    "quorate.mechanisms.stable_sparse_vector": "quorate.mechanisms.sparse_vector",
    "quorate.audit.noisy_means": "quorate.audit.rounds",
    "quorate.ensemble.bare_linear": "quorate.ensemble.training",
    "quorate.ensemble.linear.bare": "quorate.ensemble.training",
    "quorate.ensemble.class_names": "quorate.ensemble.teachers.class_names",
    "quorate.ensemble.classifier": "quorate.ensemble.teachers.classifier",
    "quorate.ensemble.command.teacher": "quorate.ensemble.teachers.command.teacher",
    "quorate.ensemble.function_teacher": "quorate.ensemble.teachers.function",
    "quorate.ensemble.partition_check": "quorate.ensemble.partition",
    "quorate.ensemble.plain_step": "quorate.ensemble.teachers.plain_step",
    "quorate.ensemble.prior_matching": "quorate.ensemble.teachers.prior_matching",
    "quorate.ensemble.prompted.endpoint": "quorate.ensemble.teachers.prompted.endpoint",
    "quorate.ensemble.prompted.prompt": "quorate.ensemble.teachers.prompted.teacher",
    "quorate.ensemble.teachers.prompted.prompt": "quorate.ensemble.teachers.prompted.teacher",
    "quorate.ensemble.prompted.teacher": "quorate.ensemble.teachers.prompted.teacher",
    "quorate.ensemble.teachers": "quorate.ensemble.teachers.teacher",
    "quorate.ensemble.unfitted": "quorate.ensemble.teachers.unfitted",
    "quorate.learners.amplification.price": "quorate.learners.amplification",
    "quorate.learners.generic.learner": "quorate.learners.generic",
    "quorate.learners.sub_sampling.learner": "quorate.learners.sub_sampling",
    "quorate.learners.empirical": "quorate.learners.transformed_learner",
    "quorate.learners.base.noisy_threshold": "quorate.learners.base.grid_choice",
    "quorate.learners.agnostic.search": "quorate.learners.agnostic.price",
    "quorate.learners.concepts.thresholds": "quorate.learners.concepts.line",
    "quorate.learners.concepts.intervals": "quorate.learners.concepts.line",
    "quorate.learners.concepts.points": "quorate.learners.concepts.line",
    "quorate.learners.agnostic.hypotheses": "quorate.learners.agnostic.voting",
    "quorate.learners.concepts.symmetric_difference": "quorate.learners.concepts.domain",
    "quorate.learners.label_boost.paper": "quorate.learners.label_boost.constants",
    "quorate.learners.label_boost.task": "quorate.learners.label_boost.schedule",
    "quorate.learners.label_boost.tight": "quorate.learners.label_boost.constants",
    "quorate.learners.plan": "quorate.learners.fit_charge",
    "quorate.learners.generic.net": "quorate.learners.generic",
    "quorate.learners.sanitizers.box_plan": "quorate.learners.sanitizers.boxes",
    "quorate.learners.sanitizers.median_plan": "quorate.learners.sanitizers.medians",
    "quorate.learners.sanitizers.quasi_concave": "quorate.learners.sanitizers.medians",
    "quorate.learners.sanitizers.symmetric_difference_queries": "quorate.learners.sanitizers.protocol",
    "quorate.learners.sanitizers.tree_plan": "quorate.learners.sanitizers.tree",
    "quorate.learners.sanitizers.noisy_tree": "quorate.learners.sanitizers.tree",
    "quorate.learners.sanitizers.blr": "quorate.learners.sanitizers.small_domains",
    "quorate.learners.sanitizers.mwem": "quorate.learners.sanitizers.small_domains",
    "quorate.students.answers": "quorate.students.values",
    "quorate.data.labels": "quorate.data.labels",
    "quorate.data.feature_maps.linear": "quorate.data.feature_maps.composed",
    "quorate.data.feature_maps.chained": "quorate.data.feature_maps.composed",
    "quorate.data.feature_maps.stacked": "quorate.data.feature_maps.composed",
    "quorate.data.feature_maps.factored": "quorate.data.feature_maps.coordinates",
    "quorate.data.feature_maps.rbf": "quorate.data.feature_maps.nystroem",
    "quorate.data.feature_maps.chi_squared": "quorate.data.feature_maps.nystroem",
    "quorate.data.feature_maps.product_kernel": "quorate.data.feature_maps.nystroem",
    "quorate.data.feature_maps.shared_patches": "quorate.data.feature_maps.first_maps",
    "quorate.data.feature_maps.patches": "quorate.data.feature_maps.first_maps",
    "quorate.data.feature_maps.trees": "quorate.data.feature_maps.first_maps",
    "quorate.data.feature_maps.unit_coordinates": "quorate.data.feature_maps.pool_coordinates",
    "quorate.data.feature_maps.standardizer": "quorate.data.feature_maps.pool_coordinates",
    "quorate.data.feature_maps.directions": "quorate.data.feature_maps.pool_coordinates",
    "quorate.data.feature_maps.residual": "quorate.data.feature_maps.composed",
    "quorate.mechanisms.quantile": "quorate.mechanisms.choice",
    "quorate.estimators.shown": "quorate.estimators.reporting",
    "quorate.learners.sanitizers.queries": "quorate.learners.sanitizers.protocol",
}


def stored_as(name: str) -> Callable[[Named], Named]:
    """Decorate a class or function with the name that keys have for it, wherever it moves."""

    def named(thing: Named) -> Named:
        setattr(thing, _STORED, name)
        return thing

    return named


def stored_name(thing: Any) -> str:
    """Return the name that keys have for a class or function; a subclass has its own."""
    kept: str | None = getattr(thing, "__dict__", {}).get(_STORED)
    return f"{thing.__module__}.{thing.__qualname__}" if kept is None else kept


def is_named(thing: Any) -> bool:
    """Whether a class or function was given a name."""
    return _STORED in getattr(thing, "__dict__", {})


def place_of(path: str, places: Mapping[str, str] | None = None) -> str:
    """Return where a class is now that was written down with its module."""
    places = PLACES if places is None else places
    module, _, name = path.rpartition(".")
    return places.get(path) or f"{places.get(module, module)}.{name}"

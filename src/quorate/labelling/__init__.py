"""The boundary in use: votes + a mechanism + the ledger give answers.

Here belongs which queries are asked, and what becomes of their answers. The order of charging, drawing and storing is
that of :mod:`quorate.release`; what makes a model of the answers belongs in :mod:`quorate.students`. Begin with
:mod:`~quorate.labelling.passive`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.deferred import on_demand

if TYPE_CHECKING:
    from quorate.labelling.active import (
        CoreSet,
        Disagreement,
        History,
        KMeans,
        Margin,
        OracularCAL,
        Random,
        Strategy,
        VersionSpace,
    )
    from quorate.labelling.adaptive import AdaptiveLabels, Pool, label_adaptively, stored_adaptively
    from quorate.labelling.block_answers import answering, stages_of
    from quorate.labelling.data_dependent import (
        DataDependentRelease,
        ex_post_delta,
        ex_post_epsilon,
        release_data_dependent_total,
    )
    from quorate.labelling.evaluation import (
        ErrorEstimate,
        NoisyScore,
        estimate_error,
        noisy_evaluation,
        read_error,
        read_score,
    )
    from quorate.labelling.online import OnlineAnswers
    from quorate.labelling.passive import label, stored_labels
    from quorate.labelling.private_sets import PrivateLimit, private_limit, private_slack
    from quorate.labelling.questions import ClientAnswer, ClientRequest, Memo, distinct
    from quorate.labelling.release_log import Released
    from quorate.labelling.tuning import Candidate, Chosen, choose_model, choose_teachers

__all__ = [
    "label",
    "stored_labels",
    "label_adaptively",
    "stored_adaptively",
    "Pool",
    "AdaptiveLabels",
    "Strategy",
    "History",
    "Random",
    "Disagreement",
    "OracularCAL",
    "VersionSpace",
    "Margin",
    "KMeans",
    "CoreSet",
    "ex_post_delta",
    "ex_post_epsilon",
    "OnlineAnswers",
    "ClientRequest",
    "ClientAnswer",
    "answering",
    "stages_of",
    "Released",
    "Memo",
    "distinct",
    "estimate_error",
    "read_error",
    "ErrorEstimate",
    "noisy_evaluation",
    "read_score",
    "NoisyScore",
    "private_limit",
    "private_slack",
    "PrivateLimit",
    "choose_teachers",
    "choose_model",
    "Candidate",
    "Chosen",
    "release_data_dependent_total",
    "DataDependentRelease",
]

__getattr__ = on_demand(__name__)

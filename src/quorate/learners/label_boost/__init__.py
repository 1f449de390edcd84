"""BNS15, Section 4: a private learner that needs few labels, from one that needs many.

Begin with ``procedure`` (Algorithm 2, LabelBoostProcedure), then ``learner`` (Algorithm 3, LabelBoost). Its sizes are
``schedule``, worked out from a ``task`` by ``paper`` (the printed constants) or by ``tight``; Lemma 4.1 is ``price``.
Rules for a random part of the rows stand in :mod:`quorate.learners.amplification`.
"""

from quorate.learners.label_boost.learner import LabelBoost

__all__ = ["LabelBoost"]

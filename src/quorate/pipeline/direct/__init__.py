"""The direct method as a run in memory: what was asked and follows from it, the rounds over a ledger, and the facts.

Here belongs what the estimator and a run in a folder share of the method. The rounds themselves belong to
:mod:`quorate.direct`. Begin with ``task``, then ``flow``.
"""

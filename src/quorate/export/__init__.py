"""What leaves the building: a student as ONNX, packages for an airlock or a registry, and a reviewer's check of them.

Here belongs whatever is written for somebody outside from what a run has published, and what that somebody can check
without the private side and without the ledger. What a run publishes belongs in :mod:`quorate.run`, and what is said of
it in :mod:`quorate.report`. Begin with :mod:`~quorate.export.package`, then :mod:`~quorate.export.check`.
"""

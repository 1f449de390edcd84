"""A run in memory: from what a user asked for to a student, a guarantee and the facts of a report.

The steps, in order: ``inputs`` (tables checked against each other), ``dry_run`` (models tried on public rows), ``task``
(every open choice filled in), ``flow`` (teachers, votes, release, student), ``scope`` (what is promised) and ``facts``
(what is said about it). Here belongs what an estimator and a run in a folder share; files and resuming belong to
``run/``. Begin with ``flow``.
"""

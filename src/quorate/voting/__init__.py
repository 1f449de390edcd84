"""Votes of teachers, whole: from what a user asked for to a student, a guarantee and the facts of a report.

The steps, in order: ``inputs`` (tables checked against each other), ``recipe`` (what was left open), ``dry_run``
(models tried on public rows), ``task`` (every choice filled in), ``flow`` (teachers, votes, release, student),
``scope`` (what is promised) and ``facts`` (what is said about it). Here belongs what an estimator and a run in a
folder share; what rounds share too belongs in :mod:`quorate.run`, and files in :mod:`quorate.folder`. Begin with
:mod:`~quorate.voting.flow`.
"""

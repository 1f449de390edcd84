"""A rehearsal: the run that a plan's row describes, played on public rows, with its noise and its student.

Public rows with labels play the private ones. Teachers get shards of the true size, and the votes of all K teachers are
made up from those of a few dozen; the mechanism draws its true noise; the student learns and is scored on rows that no
teacher has seen. Nothing private is looked at, and nothing is released or charged.

Here belongs what plays; what a plan says of it belongs in :mod:`quorate.planning.plan`. Begin with
:mod:`~quorate.planning.rehearsal.rehearsal`.
"""

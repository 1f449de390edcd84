"""A rehearsal: the run that a plan's row describes, played on public rows, with its noise and its student.

Here belongs what plays (``docs/theory/rehearsals.md``); what a plan says of it belongs in :mod:`quorate.planning.plan`.
Begin with :mod:`~quorate.planning.rehearsal.rehearsal`.
"""

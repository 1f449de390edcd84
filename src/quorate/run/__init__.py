"""A run: from what a user asked for to labels, a student and a report that may leave.

Here belongs the main flow, in memory (``task``, ``journey``, ``accounts``) and in a folder (``settings``, ``folder``,
``batch``, ``online``), with stages that are found again after a kill. What is done in a stage belongs in the room of
its subject; what is typed and printed, in :mod:`quorate.cli`. Begin with :mod:`~quorate.run.journey`.
"""

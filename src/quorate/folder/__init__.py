"""A run in a folder: settings, stages that are found again after a kill, what is published, and what is asked later.

Here belongs what has to do with the folder of a run: ``settings``, ``folder``, ``methods``, ``online``, ``status``.
What a run does in memory belongs in :mod:`quorate.voting` and :mod:`quorate.direct`; what is typed and printed, in
:mod:`quorate.cli`. Begin with :mod:`~quorate.folder.methods`.
"""

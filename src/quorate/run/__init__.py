"""A run in a folder: settings, stages that are found again after a kill, what is published, and what is asked later.

Here belongs what has to do with the folder of a run: ``settings``, ``folder``, ``batch``, ``online``, ``status``.
What a run does in memory belongs to ``pipeline/``; what is typed and printed, to ``cli/``. Begin with ``batch``.
"""

"""``quorate learn``: a rule that people can read, from a table of which few rows are labelled.

Here belongs what the command does around a learner: its cuts, its checks, the page of its rule, and the rows of a plan
that are for learners. How a rule is learned belongs in :mod:`quorate.learners`. Begin with
:mod:`~quorate.learn.request`, then :mod:`~quorate.learn.rule`.
"""

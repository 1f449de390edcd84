"""Private learners that need no other one: what the transformations of the other folders are run on.

Here belong learners that choose one concept of a whole class, the mechanisms that do it on grids too large to list, and
the proof of how many labels such a choice needs (``choice_bound``). Begin with ``exponential``.
"""

"""Private learners that need no other one: what the transformations of the other folders are run on.

Here belong learners that choose one concept of a whole class, the mechanisms that do it on grids too large to list, and
how many labels such a choice needs. Begin with ``exponential``.
"""

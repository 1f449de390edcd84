"""Processes that train and ask teachers apart from each other, here or on the workers of a scheduler.

Begin with :mod:`~quorate.ensemble.workers.workers`.
"""

"""What a budget buys: a plan of both methods side by side, with its rehearsals, before anything is spent.

Here belongs what is worked out from public facts and public rows alone, before a run. The recipe that a run is set up
with belongs in :mod:`quorate.voting.recipe`, a bound as a paper states it in :mod:`quorate.theory`. Begin with
:mod:`~quorate.planning.plan`, then :mod:`~quorate.planning.planned`.
"""

"""What any private run is, whichever method it has: it knows neither.

Here belongs what both methods and both shells share: which private rows count and what their cells say (``schema``,
``cells``, ``usable_rows``), which method a run has where that is open (``public_facts``),
what the owner should hear (``cautions``, ``pool_cautions``, ``remarks``), what a check shows
(``method``, ``look``), what is asked about every run (``checks``), where stages are kept (``stage_store``),
progress. What a method does belongs in :mod:`quorate.voting` or :mod:`quorate.direct`; files and resuming in
:mod:`quorate.folder`. Begin with :mod:`~quorate.run.schema`, then :mod:`~quorate.run.method`.
"""

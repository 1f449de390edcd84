"""What a random sample of the rows does to a price, and how such a sample is drawn.

Here belong rules that hold for every algorithm that is run on a sample: ``price`` (a price, and samples without
replacement), ``with_replacement``, and the exact draws of ``random_subsets``. What one algorithm of a paper costs
stands with that algorithm.
"""

"""What a random sample of the rows does to a price, and how such a sample is drawn.

An algorithm that is (ε, δ)-DP is run on a sample of the rows instead of on all of them. Neighbours are two tables with
one row replaced, and how many rows there are, and are sampled, is public. Here belong rules that hold for every such
algorithm; those that are not printed in BNS15 or LWY25 are also the best that hold for every pure one. What a sample
does to one algorithm of a paper stands with that algorithm. Begin with ``price`` and ``without_replacement``.
"""

"""The direct method: records speak for themselves, by noisy gradient rounds in public coordinates.

Here belongs what turns private rows into the integers of a round and rounds into a linear model. What a release does
(charge, draw, noise, store) belongs to ``release/``, feature maps to ``data/feature_maps``. Begin with
``rounds``, then ``contributions``, whose exactness the price rests on, and ``contribution_check``, which tries that.
"""

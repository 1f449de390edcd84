"""Votes of several sites on the same public rows: each signs its own, one place adds them up and releases answers.

Here belongs what a site signs, how that is verified, and what follows for the price where a unit may be at several
sites. Begin with :mod:`~quorate.folder.sites.signed_votes`, then :mod:`~quorate.folder.sites.combined`.
"""

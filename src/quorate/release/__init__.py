"""What every private release does, once.

Here belongs what must not be done twice or otherwise: the keys that bind data to a ledger, where noise comes from and
who is said to charge it, and what everything on one ledger promises together.
"""

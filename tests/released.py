"""What a development version may lack, and a released one may not: records of what was added since the last release.

A class of its own name, its measured sizes of faults and its page of theory are written down once, where they no longer
change: until a release nobody has a folder of it that has to go on. What stands in a record stands for ever.
"""

from importlib.metadata import version


def may_lack(missing):
    """Refuse what is missing in a released version."""
    assert ".dev" in version("quorate") or sorted(missing) == []

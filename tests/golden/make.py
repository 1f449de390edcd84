"""Write the golden files anew, all or the ones that are named: ``python -m tests.golden.make [prices guarantee …]``.

A change that means to correct a guarantee's sentences, say, runs ``python -m tests.golden.make guarantee`` and shows
the difference with its commit. A difference in ``ledger.txt`` or ``released.json`` is one that users of an earlier
version would see in their ledgers, so it needs a reason.
"""

import sys

from tests.golden.made import FILES, path_of, write


def main(names):
    for unknown in set(names) - set(FILES):
        sys.exit(f"there is no golden file {unknown!r}; there are {', '.join(FILES)}")
    for name in names or FILES:
        write(name)
        print(path_of(name))


if __name__ == "__main__":
    main(sys.argv[1:])

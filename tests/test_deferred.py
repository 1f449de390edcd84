"""What is loaded late is what would have been loaded early, and no more of it."""

import json
import subprocess
import sys

import pytest

LOAD = """
import json, sys
{load}
trusted = sys.modules["skops.io._trusted_types"]
names = [sorted(getattr(trusted, each)) for each in dir(trusted) if each.endswith("TYPE_NAMES")]
print(json.dumps([names, [each for each in ("torch", "dask") if each in sys.modules]]))
import sklearn.externals.array_api_compat.dask  # may be had again
"""


def loaded_by(load):
    found = subprocess.run([sys.executable, "-c", LOAD.format(load=load)], capture_output=True, text=True, check=True)
    return json.loads(found.stdout)


@pytest.mark.heavy
def test_skops_trusts_the_same_types_and_loads_no_other_library():
    ours, others = loaded_by("from quorate.deferred import skops; skops.io.dumps")
    plain, all_others = loaded_by(
        "sys.modules['sklearn.externals.array_api_compat.torch'] = None; import skops.io"
    )  # it is slow
    assert ours == plain
    assert sum(map(len, ours)) > 200
    assert others == []
    assert "dask" in all_others  # otherwise there is nothing to leave out any more

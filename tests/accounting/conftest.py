"""Lets the tests of this room import its two modules of slow formulas and random events."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

# jsonschema compiles grammars of international addresses as it is imported, where it finds this one: three seconds, in
# every process that looks for tests. No schema of quorate's has such addresses.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

"""What takes the tests of this room long to import is not imported."""

import sys

# jsonschema compiles grammars of international addresses as it is imported, where it finds this one: three seconds, in
# every process that looks for tests. No schema of quorate's has such addresses.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

"""Lets the tests of this room import its tiny worlds and the checks that cheats must fail."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

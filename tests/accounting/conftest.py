"""Lets the tests of this room import its two modules of slow formulas and random events."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

"""Lets the tests of this room import its module of exact laws."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

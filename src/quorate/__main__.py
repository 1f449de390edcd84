"""``python -m quorate`` is the command ``quorate``."""

from quorate.cli import main

main()

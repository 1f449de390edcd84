"""``python -m quorate`` is the command ``quorate``."""

from quorate.cli import main

if __name__ == "__main__":
    main()

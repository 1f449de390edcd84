"""What the answers of a reservation are for: names under which several rooms reserve and draw, as ledgers hold them."""

from __future__ import annotations

from typing import Final

LABEL: Final = "label"  # of a row of the public pool
ONLINE_ANSWER: Final = "online answer"  # to a query that arrives later
EVALUATION: Final = "evaluation"
TUNING: Final = "tuning"
STAGE: Final = "sparse-vector stage"  # counted, and never an answer

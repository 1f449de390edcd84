"""The boundary in use: votes + a mechanism + the ledger give answers."""

from __future__ import annotations

from quorate.labelling.memo import Memo, distinct
from quorate.labelling.online import OnlineAnswers
from quorate.labelling.passive import label
from quorate.labelling.released import Released, class_codes

__all__ = ["label", "OnlineAnswers", "Released", "class_codes", "Memo", "distinct"]

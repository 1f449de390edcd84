"""Whose data is protected: the word for a unit, and what the rows must have for it."""

from __future__ import annotations

from quorate.accounting.neighbouring import LABELS_OF, ONE_LABEL
from quorate.errors import InvalidParameter


def unit_of(wish: str | None, *, grouped: bool, labels_only: bool = False) -> str:
    """Return the word for whose data is protected, and refuse one that the rows cannot keep.

    Examples
    --------
    >>> unit_of(None, grouped=True), unit_of(None, grouped=False), unit_of("household", grouped=True)
    ('person', 'record', 'household')
    >>> unit_of(None, grouped=False, labels_only=True), unit_of("patient", grouped=True, labels_only=True)
    ('label', "patient's labels")
    """
    if wish is not None and (not isinstance(wish, str) or not wish.strip()):
        raise InvalidParameter(parameter="unit", got=wish, expected='a word such as "person" or "record"')
    if labels_only:
        return LABELS_OF.format(unit_of(wish, grouped=True)) if grouped else ONE_LABEL
    if wish is None:
        return "person" if grouped else "record"
    if wish != "record" and not grouped:
        raise InvalidParameter(
            f'{wish}s may cross shards: unit is "{wish}" but no groups were given. Without them the guarantee would '
            'hold per record only. Pass groups=, or say unit="record"'
        )
    if wish == "record" and grouped:
        raise InvalidParameter(
            'groups were given, but unit is "record"; leave out groups=, or give the word for whose rows they are'
        )
    return wish

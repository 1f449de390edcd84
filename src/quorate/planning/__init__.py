"""What a run is set up with where its owner left it open, and what the owner should hear: from public facts alone.

Here belong the recipe (teachers, queries, mechanism), the schedule (the noise that a budget buys) and the cautions.
A function that reads a private row, or that spends, does not; a bound as a paper states it belongs in
:mod:`quorate.theory`. Begin with :func:`~quorate.planning.recipe.recipe`.
"""

from __future__ import annotations

from quorate.accounting.budget_cautions import (
    DELTA_GIVES_AWAY_A_UNIT,
    DELTA_NOT_COMPARED,
    EPSILON_PROMISES_LITTLE,
    budget_cautions,
)
from quorate.planning.cautions import (
    LABELS_ARE_COINS,
    ONE_ANSWER_IS_UNSURE,
    PROMPTS_SHOW_FEW_ROWS,
    REHEARSED_AT_THE_COMMONEST,
    ROWS_ARE_UNKNOWN,
    TEACHERS_ARE_CONSTANTS,
    considered,
    constant_teachers_caution,
    reach,
    rehearsal_caution,
    rows_caution,
    shown_rows_caution,
    unanimous_right,
)
from quorate.planning.hopeless import NOTHING_CAN_BE_ANSWERED, is_hopeless, refuse_hopeless
from quorate.planning.pool_cautions import (
    COLUMNS_OF_DATES,
    COLUMNS_OF_DISTINCT_TEXTS,
    FEW_PUBLIC_ROWS,
    LIKELY_UNIT,
    few_rows_caution,
    pool_cautions,
    unit_caution,
)
from quorate.planning.public_facts import PublicFacts
from quorate.planning.recipe import Recipe, recipe, rows_per_teacher
from quorate.planning.schedule import (
    check_mechanism,
    check_schedule,
    form_of,
    mechanism_for,
    open_fields,
    scale_of,
    schedule_event,
)

__all__ = [
    "recipe",
    "PublicFacts",
    "Recipe",
    "rows_per_teacher",
    "mechanism_for",
    "check_mechanism",
    "check_schedule",
    "form_of",
    "open_fields",
    "scale_of",
    "schedule_event",
    "considered",
    "LABELS_ARE_COINS",
    "ONE_ANSWER_IS_UNSURE",
    "DELTA_GIVES_AWAY_A_UNIT",
    "ROWS_ARE_UNKNOWN",
    "TEACHERS_ARE_CONSTANTS",
    "PROMPTS_SHOW_FEW_ROWS",
    "constant_teachers_caution",
    "shown_rows_caution",
    "rows_caution",
    "DELTA_NOT_COMPARED",
    "EPSILON_PROMISES_LITTLE",
    "REHEARSED_AT_THE_COMMONEST",
    "rehearsal_caution",
    "COLUMNS_OF_DATES",
    "COLUMNS_OF_DISTINCT_TEXTS",
    "FEW_PUBLIC_ROWS",
    "LIKELY_UNIT",
    "budget_cautions",
    "few_rows_caution",
    "pool_cautions",
    "unit_caution",
    "NOTHING_CAN_BE_ANSWERED",
    "reach",
    "is_hopeless",
    "refuse_hopeless",
    "unanimous_right",
]

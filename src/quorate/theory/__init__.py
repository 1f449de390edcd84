"""The papers' statements as functions of public facts, and the recipe that a run follows by default."""

from __future__ import annotations

from quorate.theory.cautions import cautions, unanimous_right
from quorate.theory.cutoff import btt18_cutoff, cutoff_for_mean_error
from quorate.theory.recipe import PublicFacts, Recipe, recipe, rows_per_teacher
from quorate.theory.schedule import (
    KINDS,
    AnyMechanism,
    check_mechanism,
    check_schedule,
    form_of,
    is_stream,
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
    "KINDS",
    "check_mechanism",
    "check_schedule",
    "form_of",
    "open_fields",
    "scale_of",
    "schedule_event",
    "is_stream",
    "AnyMechanism",
    "cautions",
    "unanimous_right",
    "btt18_cutoff",
    "cutoff_for_mean_error",
]

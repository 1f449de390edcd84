"""The papers' statements as functions of public facts, and the recipe that a run follows by default."""

from __future__ import annotations

from quorate.theory.recipe import PublicFacts, Recipe, recipe, rows_per_teacher

__all__ = ["recipe", "PublicFacts", "Recipe", "rows_per_teacher"]

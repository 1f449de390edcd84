"""What a recipe says of the models beside its own reasons: what they see, and how often they are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate.accounting.figures import several
from quorate.data.feature_maps.pool_coordinates import UnitCoordinates
from quorate.data.rows import Rows, n_rows
from quorate.ensemble import ChatTeacher
from quorate.errors import InvalidParameter, named
from quorate.labelling.active import Strategy
from quorate.run.cautions import shown_rows_caution
from quorate.run.pool_cautions import few_rows_caution
from quorate.run.public_facts import PublicFacts
from quorate.voting.inputs import Views
from quorate.voting.prompted import requests
from quorate.voting.recipe import Recipe


def with_requests_told(teacher: Any, recipe: Recipe, facts: PublicFacts) -> Recipe:
    """Say how often an endpoint will be asked, and how much of a shard it is shown, where teachers are prompts."""
    if not isinstance(teacher, ChatTeacher):
        return recipe
    answers = recipe.n_queries + recipe.online_answers
    n_rows = None if facts.rows is None else round(facts.rows / recipe.n_teachers)
    n_shots = teacher.shots if teacher.choose == "random" else None  # the nearest of all rows are chosen for a question
    caution = shown_rows_caution(n_shots, n_rows_each=n_rows, n_teachers=recipe.n_teachers, answers=answers)
    sentence = requests(teacher, recipe.n_teachers, answers)
    return replace(recipe, why=(*recipe.why, sentence), considered=(*recipe.considered, caution))


def with_directions_told(recipe: Recipe, views: Views) -> Recipe:
    """Say so where teachers see a wide table in the leading directions of the pool."""
    directions = views.teacher.directions
    if directions is None:
        return recipe
    who = "teachers and student see" if views.student.directions is directions else "teachers see"
    what = "patches of the public images" if directions.of_patches else "the public pool"
    coordinates = f"the {directions.n_directions} leading directions of {what}"
    if isinstance(directions, UnitCoordinates) and recipe.pool is not None:  # before they are drawn, and afterwards
        coordinates = "coordinates that the drawn rows define, linear ones and those of two kernels,"
    elif isinstance(directions, UnitCoordinates):
        coordinates = (
            f"{directions.n_directions} coordinates that {what} defines, linear ones and those of two kernels,"
        )
    coordinates = f"{who} {coordinates} in place of {views.width:,} columns"
    return replace(recipe, why=(*recipe.why, coordinates))


def with_strategy_told(strategy: Strategy, recipe: Recipe, *, width: int) -> Recipe:
    """Add to a recipe what is to be said of a strategy; refuse a mechanism that needs its queries beforehand."""
    if recipe.mechanism.takes == "votes and predictions":
        raise InvalidParameter(
            f"{type(recipe.mechanism).__name__} asks a student about queries that are fixed beforehand; "
            f"give a number of {named('queries')}, or take ConfidentNoisyMax"
        )
    name = type(strategy).__name__
    why = f"{name} chooses the queries from released answers, and may stop early: noise and price are those of its cap"
    if not strategy.learns:
        why = f"{name} chooses at most {strategy.n:,} queries from public rows alone"
    return replace(recipe, why=(*recipe.why, why), considered=(*recipe.considered, *strategy.cautions(width=width)))


def with_public_rows_counted(recipe: Recipe, public: Rows, facts: PublicFacts) -> Recipe:
    """Say how many public rows repeat others, and whether there are too few of them."""
    few = few_rows_caution(facts.n_public, facts.n_classes, learns="the student learns from their noisy answers alone")
    recipe = replace(recipe, considered=(*recipe.considered, few))
    repeats = n_rows(public) - facts.n_public
    if not repeats:
        return recipe
    sentence = (
        f"{repeats:,} of {several(n_rows(public), 'public row')} {'repeat' if repeats > 1 else 'repeats'} "
        f"others and {'are' if repeats > 1 else 'is'} left out: {several(facts.n_public, 'different row')}"
    )
    return replace(recipe, why=(*recipe.why, sentence))

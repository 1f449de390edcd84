"""What a recipe says of the models beside its own reasons: what they see, and how often they are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate.ensemble import ChatTeacher
from quorate.run.cautions import shown_rows_caution
from quorate.run.public_facts import PublicFacts
from quorate.voting.inputs import Views
from quorate.voting.prompted import requests
from quorate.voting.recipe import Recipe


def with_requests_told(teacher: Any, made: Recipe, facts: PublicFacts) -> Recipe:
    """Say how often an endpoint will be asked, and how much of a shard it is shown, where teachers are prompts."""
    if not isinstance(teacher, ChatTeacher):
        return made
    answers = made.n_queries + made.online_answers
    each = None if facts.rows is None else round(facts.rows / made.n_teachers)
    shown = teacher.shots if teacher.choose == "random" else None  # the nearest of all rows are chosen for a question
    found = shown_rows_caution(shown, n_rows_each=each, n_teachers=made.n_teachers, answers=answers)
    told = requests(teacher, made.n_teachers, answers)
    return replace(made, why=(*made.why, told), considered=(*made.considered, found))


def with_directions_told(made: Recipe, views: Views) -> Recipe:
    """Say so where teachers see a wide table in the leading directions of the pool."""
    seen = views.teacher.directions
    if seen is None:
        return made
    who = "teachers and student see" if views.student.directions is seen else "teachers see"
    what = "patches of the public images" if seen.of_patches else "the public pool"
    told = f"{who} the {seen.n_directions} leading directions of {what} in place of {views.width:,} columns"
    return replace(made, why=(*made.why, told))

"""``quorate init``: a commented ``quorate.toml`` to fill in."""

from __future__ import annotations

from pathlib import Path

import click

from quorate.errors import PreconditionFailed

TEMPLATE = """\
# What this run is asked to do. Every line is a public fact; paths are relative to this file.
# Then: quorate check, quorate run.

[data]
private = "private.csv"        # labelled rows to protect: csv, csv.gz, tsv, parquet, svmlight (.svm, .xz) or sparse npz
public = "public.csv"          # unlabelled rows that may be shown; the same feature columns
label = "outcome"              # the label's column in the private table
classes = ["no", "yes"]        # every label there may be, declared: reading them off private rows would publish them
# unit = "person_id"           # column that says whose row it is; without it the guarantee is per record
# n_records = 20000            # number of private rows (with unit: of units), if you may publish it; else it is
#                              # read, and said to be public
# n_rows = 60000               # with unit: number of private rows, likewise; teachers follow from units and rows
# evaluation = "evaluation.csv"  # public rows with labels, to score the student for free

[method]
by = "teachers"                # "teachers" vote on public rows; "direct" fits a linear model on the private rows
#                              # themselves, and takes feature_map, text, rounds and clip here: then leave out
#                              # [teachers], [mechanism], [student] and n_jobs; "auto" is the first row of quorate plan

[budget]
epsilon = 1.0                  # cap for the life of these data; raised only with a reason that every report shows
delta = 1e-6                   # below 1 / number of units
# composition = "sum"          # how runs on the same data add up: "sum" of (epsilon, delta), or "zcdp"

[teachers]
model = "logistic"             # "logistic", "forest", "boosting", or "package.module:factory" of your own
count = "auto"                 # number of teachers
partition = "hash"             # "hash" (add, remove or replace a unit) or "balanced" (replace only)

[mechanism]
name = "auto"                  # "GaussianNoisyMax" releases a class, "NoisyCounts" the noisy votes at the same price
#                              # or "package.module:Class" of your own
queries = "auto"               # how many public rows to label: a number, "all" or "auto"
# strategy = "random"          # which ones, up to a number: "random", or chosen from released answers by "margin",
#                              # "disagreement" or "oracular-cal", from public rows alone by "k-means" or "core-set"
online_answers = 0             # answers kept back for later questions, at the same noise, inside the same budget
# sigma = 40.0                 # noise in votes; by default the least that the budget allows

[student]
model = "auto"                 # the model of the noisy votes itself, linear or curved; or as for teachers
# method = "values"            # how it learns, such as "values", "noisy-labels" or "self-training"
declined = "drop"              # a declined answer is dropped, or becomes a "random" class

[run]
# n_jobs = 2                   # processes; by default as many as there are cores
# memory = 4.0                 # gigabytes for private rows; by default a quarter of the machine's
# epsilon = 0.5                # this run's share, where a budget is to last for several; by default all of it
# delta = 5e-7                 # likewise
# unsafe_noise_seed = 1        # reproducible noise, for tests: no privacy at all, and everything written says so
"""


@click.command(name="init")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
def command(folder: Path) -> None:
    """Write a commented quorate.toml into FOLDER (default: here). An existing one is never overwritten."""
    path = folder / "quorate.toml"
    if path.exists():
        raise PreconditionFailed(f"{path} exists already; edit it, or choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(TEMPLATE, encoding="utf-8")
    click.echo(f"wrote {path}")
    click.echo(f"next: edit it, then quorate check {folder}")

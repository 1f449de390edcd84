"""A measured table is what its command measures now: the first draws of each column are measured again."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from quorate.experiments import noisy_gradient_descent, table4

DOCS = Path(__file__).parents[2] / "docs"
SLOW = {"adult", "domain", "vc", "epsilon", "peers", "table4-a9a"}


@pytest.fixture(scope="module")
def tables():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        return importlib.import_module("measured_tables")


def stale(tables: ModuleType, name: str) -> dict[str, tuple[float | None, float | None]]:
    """What has moved since a part was measured; nothing where the code is what it was then."""
    kept = tables.kept()[name]
    return {} if kept["code"] == tables.code() else tables.moved(kept["first"], tables.PARTS[name].first())


def parts() -> list[object]:
    kept = json.loads((DOCS / "figures" / "measured.json").read_text(encoding="utf-8"))
    return [pytest.param(name, marks=pytest.mark.faults if name in SLOW else ()) for name in kept]


@pytest.mark.heavy
@pytest.mark.parametrize("name", parts())
def test_the_first_draws_of_each_column_are_what_they_were_when_the_table_was_made(tables, name):
    part, found = tables.PARTS[name], stale(tables, name)
    remedy = f"run {part.command}, then python docs/measured_tables.py {name}"
    assert not found, f"docs/{part.page} is stale: {remedy}: {found}"


def test_every_part_is_kept_with_its_page_and_its_command_beside_it(tables):
    assert tables.kept().keys() == tables.PARTS.keys()
    for kept in tables.kept().values():
        page = (DOCS / kept["page"]).read_text(encoding="utf-8")
        assert " ".join(kept["command"].split()[:3]) in page
        columns = {name.partition(": ")[2] for name in kept["first"]}
        assert kept["page"] != "experiments.md" or all(f"  {column} " in page for column in columns)


def test_a_method_that_has_changed_is_caught(tables, monkeypatch):
    """As the direct method did between two tables: other noise, and so another figure in its column alone."""
    kept, lines = tables.kept()["table4-mushroom"]["first"], (table4.DIRECT, table4.MAJORITY)
    first, names = tables.one_split("mushroom", *lines), {f"mushroom: {line}" for line in lines}
    held = {name: kept[name] for name in names}
    module, name = noisy_gradient_descent, "noisy_gradient_descent"
    plain = module.noisy_gradient_descent
    monkeypatch.setattr(module, name, lambda X, y, **how: plain(X, y, **how | {"epsilon": how["epsilon"] / 2}))
    assert tables.moved(held, first()).keys() == {f"mushroom: {table4.DIRECT}"}


def test_a_hash_is_of_all_the_code(tables, tmp_path, monkeypatch):
    (tmp_path / "room").mkdir()
    monkeypatch.setattr(tables.quorate, "__file__", str(tmp_path / "__init__.py"))
    hashes = {tables.code()}
    for name, text in (("__init__.py", ""), ("room/a.py", "x = 1"), ("room/a.py", "x = 2"), ("room/b.py", "")):
        (tmp_path / name).write_text(text)
        hashes.add(tables.code())
    assert len(hashes) == 5
    unmeasured = replace(tables.PARTS["bounds"], first=lambda: {"a": 0.5})
    monkeypatch.setitem(tables.PARTS, "bounds", unmeasured)
    assert stale(tables, "bounds")

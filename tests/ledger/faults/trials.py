"""The trials of the fault matrix: each tries a fault many times, and its broken twin with the same check."""

import errno
import json
import random
import re
import shutil
from collections import Counter
from contextlib import contextmanager
from functools import partial

import pytest
from tests.ledger.faults.images import BUDGET, LOSSES, anchor_surprises, lines_of, recorded, silent_changes, surprises
from tests.ledger.faults.table import Line

from quorate.accounting import PureDP
from quorate.errors import LedgerIntegrityError
from quorate.ledger import Ledger, chain, journal
from quorate.ledger import ledger_files as anchors
from quorate.ledger.entries import Entry
from quorate.ledger.fields import canonical
from quorate.ledger.state import Head

ANSWERS = 40
POINTS = ["begun", "inserted", "committed", "anchor written", "anchor renamed", "anchored"]  # of the store
POINTS += ["drawn", "noised", "stored", "released"]


def told(path, what):
    file = path.with_name(f"{path.name}.{what}")
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def breaches(path, url=None, *, aside=None):
    """Open the ledger after a crash; name every promise that what was told outside, or aside, breaks."""
    aside = path if aside is None else aside
    with Ledger(path if url is None else url, budget=BUDGET) as ledger:
        ledger.verify()
        reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"label": ANSWERS}, key="labels")
        blocks = {block.first: block for block in reservation.blocks("label")}
        charged, cap = ledger.spent.epsilon, sum(block.count for block in blocks.values())
    found = []
    if charged != 0.5 or cap > ANSWERS:
        found.append("the cap was passed, or the charge is not on record")
    for first, answers in told(aside, "released"):
        if first not in blocks:
            found.append("an answer left before its charge")
        elif blocks[first].answers != answers:
            found.append("an answer left that is not on record")
    noise = [index for first, count in told(aside, "noise") for index in range(first, first + count)]
    if len(noise) != len(set(noise)):
        found.append("noise was drawn twice under one charge")
    if not set(noise) <= {
        index for block in blocks.values() for index in range(block.first, block.first + block.count)
    }:
        found.append("noise was drawn before its charge")
    return found


def breaches_of_a_twin(nursery, folder, order, url=lambda: None):
    """What breaks where answers leave in another order than the promised one."""
    found = []
    for point in ("begun", "inserted", "drawn", "noised"):
        path, place = folder / f"{order} {point}" / "ledger.db", url()
        path.parent.mkdir()
        nursery(do="killed", path=str(path), point=point, occurrence=8, order=order, delay=None, url=place)
        found += breaches(path, place)
    return found


@contextmanager
def without_anchor():
    """A ledger that does not ask whether it holds its anchor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "check_anchor", lambda state, anchor: None)
        yield


@contextmanager
def without_hashes():
    """A ledger that takes the hash that an entry names, and computes none."""

    def believe(line):
        try:
            return Entry.from_object(json.loads(line))
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise LedgerIntegrityError("no entry") from error

    with pytest.MonkeyPatch.context() as patch:
        for module in (chain, journal):
            patch.setattr(module, "read_line", believe)
        yield


@contextmanager
def with_slots_read_as(read):
    """A ledger that makes something else of what its anchor holds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anchors, "_slots_of", read)
        yield


def with_one_slot(content, slots_of):
    """As if the anchor had one place, written over again and again: what tears it leaves none."""
    slots = slots_of(content)
    return anchors.Slots((None,) if slots.torn else (slots.newest,))


def without_checksums(content, slots_of):
    """Take whatever a slot says, if it can be read at all."""
    texts = [content[at : at + anchors.SLOT] for at in (0, anchors.SLOT)]
    heads = []
    for text in texts:
        number, digits = re.search(rb'"sequence":(\d+)', text), re.search(rb'"hash":"([^"]*)"', text)
        heads.append(Head(sequence=int(number[1]), hash=digits[1].decode("latin-1")) if number and digits else None)
    return anchors.Slots(tuple(heads))


def with_spoilt_slots_ignored(content, slots_of):
    """Go by the sound slot alone, whatever became of the other one."""
    slots = slots_of(content)
    return anchors.Slots((slots.newest, slots.newest)) if slots.torn else slots


def kills(folder, nursery, times, url=None, seed=1):
    """Half of them at named points, in turn, and half at random moments."""
    chance, found, killed = random.Random(seed), Counter[str](), 0
    points = [point for point in POINTS if url is None or not point.startswith("anchor ")]
    run = 0
    while killed < times:
        path, place = folder / f"{run}" / "ledger.db", None if url is None else url()
        path.parent.mkdir(parents=True)
        for _ in range(4):  # the same run, resumed after each kill
            named = killed % 2 == 0
            point = points[killed // 2 % len(points)] if named else None
            what = {"point": point, "occurrence": 0 if point == "anchor renamed" else chance.randrange(6)}
            delay = None if named else chance.uniform(0, 0.03)
            result = nursery(do="killed", path=str(path), order="honest", delay=delay, url=place, **what)
            killed += result["killed"]
            found.update(breaches(path, place))
            if result["finished"]:
                break
        shutil.rmtree(path.parent)
        run += 1
    twin = Counter[str]()
    for order in ("answers before charge", "answers before store"):
        twin.update(breaches_of_a_twin(nursery, folder, order, url or (lambda: None)))
    assert {"an answer left before its charge", "an answer left that is not on record"} <= twin.keys()
    store = "SQLite" if url is None else "PostgreSQL"
    counted = f"half at {len(points)} named points, half at random moments, in {run} runs"
    early = "answers before charge, or before store"
    return Line(f"kill −9, {store}", killed, counted, sum(found.values()), early, sum(twin.values()))


def power_cuts(folder, times, seed=1):
    """As many of each kind of loss; the ledger holds exactly the commits that are fully kept."""
    recording = recorded(folder / "recording")
    cases = [loss for loss in LOSSES for _ in range(times // len(LOSSES))]
    found = list(surprises(recording, folder / "honest", cases, seed))
    with without_anchor():
        twin = list(surprises(recording, folder / "twin", cases[:: max(1, len(cases) // 60)], seed))
    counted = f"as many each: {', '.join(LOSSES)}"
    return Line(
        "log cut, torn, dropped in parts", len(cases), counted, len(found), "does not look at its anchor", len(twin)
    )


def anchor_faults(folder, times, seed=1):
    """Torn slots, lost writes and old slots are crashes; an older log is seen, whatever the slots are like."""
    recording = recorded(folder / "recording")
    found = list(anchor_surprises(recording, folder / "honest", times, seed))
    caught = []
    for twin in (with_one_slot, without_checksums, with_spoilt_slots_ignored):
        with with_slots_read_as(partial(twin, slots_of=anchors._slots_of)):
            breaks = list(anchor_surprises(recording, folder / "twin", 60, seed))
        assert breaks, f"the check would not have noticed a ledger {twin.__name__}"
        caught += breaks
    counted = (
        "as many each: a torn slot, one and two lost slot writes, a spoilt slot, an older log with a whole and with a "
        "spoilt anchor"
    )
    twins = "one slot; no checksum; a spoilt slot overlooked"
    return Line("anchor torn, lost, old", times, counted, len(found), twins, len(caught))


def bit_flips(folder, times, seed=1):
    """Every flip is refused, or changes nothing that is read."""
    recording = recorded(folder / "recording")
    in_entries = times // 6
    silent, noticed = silent_changes(recording, folder / "honest", times - in_entries, seed, in_entries=False)
    more, noticed_there = silent_changes(recording, folder / "entries", in_entries, seed, in_entries=True)
    with without_hashes():
        twin, _ = silent_changes(recording, folder / "twin", 80, seed, in_entries=True)
    refused = noticed + noticed_there
    told = f"{refused:,} refused, {times - refused:,} changed nothing that is read"
    return Line("bit flips", times, told, silent + more, "computes no hash anew", twin)


def storage_errors(folder, nursery, places, seed=1):
    """A full disk at every write, and a failed sync at every sync, up to a number of places."""
    found = Counter[str]()
    stopped = 0
    for kind, code in ((0, errno.ENOSPC), (1, errno.EIO)):
        for place in range(places):
            here = folder / f"{kind} {place}"
            wrong, met = storage_breaches(here, nursery, kind, place, code, careless=False)
            found.update(wrong)
            stopped += met
    twin = [
        one
        for place in (20, 30)
        for one in storage_breaches(folder / f"twin {place}", nursery, 0, place, errno.ENOSPC, careless=True)[0]
    ]
    told = f"{places} writes to a full disk, {places} syncs with EIO; {stopped} stopped the ledger"
    return Line("full disk, failed sync", 2 * places, told, sum(found.values()), "answers all the same", len(twin))


def storage_breaches(folder, nursery, kind, place, code, *, careless):
    """What is wrong after the disk failed at one place; and whether it failed."""
    where = folder / "ledger"
    where.mkdir(parents=True)
    aside = folder / "ledger.db"  # what was told stands on another disk
    how = {"kind": kind, "place": place, "code": code, "sticky": kind == 0, "careless": careless}
    result = nursery(do="failing_disk", folder=str(where), told=str(aside), **how)
    wrong = []
    if result.get("died") or (result["met"] and not result["stopped"]):
        wrong.append("the disk failed, and no error was told")
    if result.get("admitted"):
        wrong.append("something was admitted after an error")
    wrong += breaches(where / "ledger.db", aside=aside)
    met = bool(result.get("met"))
    shutil.rmtree(folder)
    return wrong, met


def crowds(folder, nursery, repeats, processes, url=None):
    """Many processes on one budget are given exactly the cap, each answer once."""
    answers, wrong, given = 2 * processes + 30, 0, 0
    for repeat in range(repeats):
        place = str(folder / f"{repeat}.db") if url is None else url()
        firsts = [
            one for each in nursery(do="spend", place=place, processes=processes, answers=answers) for one in each
        ]
        given += len(firsts)
        wrong += sorted(firsts) != list(range(answers))
        with Ledger(place) as ledger:
            ledger.verify(prices=True)
            wrong += ledger.reservations()[0].remaining("label") != 0
    firsts = nursery(do="spend", place=str(folder / "twin"), processes=processes, answers=answers, twin=True)
    beyond = sum(len(each) for each in firsts) - answers
    store = "SQLite" if url is None else "PostgreSQL"
    counted = f"{processes} processes each; {given:,} answers given, {repeats * answers:,} is the cap"
    twin = "reads what is left, then writes it"
    return Line(f"many processes on one budget, {store}", repeats, counted, wrong, twin, beyond)


def old_and_edited_files(folder):
    """Every older file, deleted file, deleted anchor and edited field is refused."""
    recording = recorded(folder / "recording", commits=12)
    cases = list(tampered(recording))
    taken = sum(is_taken(folder / "honest", case) for case in cases)
    with without_anchor(), without_hashes():
        twin = sum(is_taken(folder / "twin", case) for case in cases)
    told = f"older files, missing files and anchors, and {len(edits(recording)):,} edited fields"
    return Line("old, deleted, edited", len(cases), told, taken, "looks at no anchor and computes no hash", twin)


def tampered(recording):
    """Database, log and anchor, each whole, older, or gone (None)."""
    newest, all_of_it = recording.anchors[-1], recording.checkpointed
    for end, head in zip(recording.ends[:-1], recording.heads, strict=False):
        if head < recording.heads[-1]:
            yield recording.database, recording.log[:end], newest
    yield recording.database, b"", newest
    yield None, b"", newest
    yield b"", b"", newest
    yield all_of_it, b"", None
    yield None, b"", None
    for edited in edits(recording):
        yield edited, b"", newest


def edits(recording):
    """The database with one value of one entry changed to another of the same length."""
    changed = []
    for line in recording.lines:
        for edited in edited_values(json.loads(line)):
            text = canonical(edited).encode()
            if text != line and len(text) == len(line):
                changed.append(recording.checkpointed.replace(line, text, 1))
    return changed


def edited_values(value):
    """The JSON value with one number or text in it turned round, or a number raised by one."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from ({**value, name: edited} for edited in edited_values(item))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from ([*value[:place], edited, *value[place + 1 :]] for edited in edited_values(item))
    elif isinstance(value, str):
        yield value[::-1]
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (value + 1, int(str(value)[::-1].lstrip("0-") or "0"))


def is_taken(folder, case):
    """Whether a ledger that was tampered with is opened."""
    folder.mkdir(parents=True)
    path = folder / "ledger.db"
    for ending, content in zip(("", "-wal", ".anchor"), case, strict=True):
        if content is not None and (content or not ending):
            path.with_name(path.name + ending).write_bytes(content)
    path.with_name("ledger.db.lock").write_bytes(b"a ledger is here\n")
    try:
        return lines_of(path) is not None
    finally:
        shutil.rmtree(folder)

"""A process that forks children to order: they use a ledger and are killed on the way. See test_faults.py."""

import ctypes
import gc
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from quorate.accounting import PureDP
from quorate.errors import BudgetExhausted, LedgerBusy, LedgerIntegrityError, PreconditionFailed
from quorate.ledger import Budget, Ledger, SqliteStore

BUDGET = Budget(1.0, 1e-5)
ANSWERS = 40


def write_line(path, value):
    """Tell the world: what was written here cannot be taken back by a crash of this process."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, (json.dumps(value) + "\n").encode())
    os.close(descriptor)


def killer(point, occurrence):
    left = [occurrence]

    def at(name):
        if name == point:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return at


def store_of(url, path, at):
    if url is None:
        return SqliteStore(path, create=True, at=at)
    from quorate.ledger.postgres import PostgresStore

    return PostgresStore(url, create=True, at=at)


def label(path, point, occurrence, order, url=None):
    """Label what is left of a reservation, block by block."""
    at = killer(point, occurrence)
    ledger = Ledger(budget=BUDGET, store=store_of(url, path, at))
    reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"label": ANSWERS}, key="labels")
    while count := min(3, reservation.remaining("label")):
        first = sum(block.count for block in reservation.blocks("label"))
        answers = list(os.urandom(count))
        if order == "answers before charge":
            write_line(path + ".released", [first, answers])
        block = reservation.draw("label", count)
        at("drawn")
        write_line(path + ".noise", [block.first, block.count])
        if order == "answers before store":
            write_line(path + ".released", [block.first, answers])
        at("noised")
        reservation.store(block, answers)
        at("stored")
        if order == "honest":
            write_line(path + ".released", [block.first, answers])
        at("released")
    ledger.close()


def fork(work):
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def killed(path, point, occurrence, order, delay, url=None):
    """Label in a child; kill it at a failpoint, or after a delay."""
    child = fork(lambda: label(path, point, occurrence, order, url))
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return {"killed": os.WIFSIGNALED(status), "finished": status == 0}


def opened(place, longest):
    """Open a ledger, by its URL or path; where another process holds it, try again after a while."""
    while True:
        try:
            return Ledger(place, budget=BUDGET)
        except LedgerBusy:
            time.sleep(longest * os.urandom(1)[0] / 256)


def ask_ledger(place, number, answers, longest):
    """Draw until nothing is left; a file is let go of after a few answers, so that others have a turn."""
    given = []
    while True:
        with opened(place, longest) as ledger:
            reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"label": answers}, key="labels")
            try:
                for _ in range(10**6 if "://" in place else 3):
                    block = reservation.draw("label", client=str(number))
                    reservation.store(block, [number])
                    given.append(block.first)
            except BudgetExhausted:
                return given


def ask_file(place, number, answers):
    """A twin: the budget is a number in a file, which is read, and written anew where something is left."""
    given, file = [], Path(place)
    while True:
        spent = int(file.read_text() or 0) if file.exists() else 0
        if spent >= answers:
            return given
        time.sleep(0.0005)
        file.write_text(str(spent + 1))
        given.append(spent)


def spend(place, processes, answers, twin=False):
    """Let many processes ask until nothing is left; each tells which answers it was given."""

    def ask(number, tell):
        longest = 0.002 * processes
        given = ask_file(place, number, answers) if twin else ask_ledger(place, number, answers, longest)
        os.write(tell, json.dumps(given).encode())

    ends, children = [], []
    for number in range(processes):
        read, write = os.pipe()
        children.append(fork(lambda number=number, write=write: ask(number, write)))
        os.close(write)
        ends.append(read)
    given = []
    for read in ends:
        told = b""
        while part := os.read(read, 65536):
            told += part
        os.close(read)
        given.append(json.loads(told))
    for child in children:
        os.waitpid(child, 0)
    return given


def failing_disk(folder, told, kind, place, code, sticky, careless):
    """Label in a child whose disk fails at the given write or sync; a careless one answers all the same.

    It tells whether the disk did fail, and whether anything was admitted after it.
    """

    def work(tell):
        library = ctypes.CDLL(None)
        library.quorate_fault_arm(folder.encode(), kind, ctypes.c_long(place), code, int(sticky))
        found = {"stopped": False, "admitted": False}
        try:
            found = label_on(folder, told, careless)
        except LedgerIntegrityError:  # not even opened
            found["stopped"] = True
        os.write(tell, json.dumps({**found, "met": library.quorate_fault_met()}).encode())

    read, write = os.pipe()
    child = fork(lambda: work(write))
    os.close(write)
    found = os.read(read, 65536)
    os.close(read)
    os.waitpid(child, 0)
    return dict(json.loads(found)) if found else {"died": True}


def label_on(folder, told, careless):
    """Label until all is answered or the ledger stops; try again then."""
    found = {"stopped": False, "admitted": False}
    ledger = Ledger(folder + "/ledger.db", budget=BUDGET)
    reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"label": ANSWERS}, key="labels")
    for first in range(0, ANSWERS, 2):
        answers = list(os.urandom(2))
        try:
            block = reservation.draw("label", 2)
            write_line(told + ".noise", [block.first, block.count])
            reservation.store(block, answers)
        except LedgerIntegrityError:
            found["stopped"] = True
            if not careless:
                break
        write_line(told + ".released", [first, answers])
    for act in (lambda: reservation.draw("label"), lambda: ledger.spent, lambda: ledger.verify()):
        try:
            act()
        except LedgerIntegrityError:
            continue
        except BudgetExhausted:
            pass
        found["admitted"] = found["stopped"]
    with suppress(LedgerIntegrityError):
        ledger.close()
    return found


def inherit(path):
    """Fork while a ledger is open: the child may not use it, and its end does not disturb the parent."""
    ledger = Ledger(path, budget=BUDGET)
    reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"label": ANSWERS}, key="labels")
    reservation.draw("label", 1)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            reservation.draw("label", 1)
        except PreconditionFailed:
            os.write(write, b"refused")
        ledger.close()
        del ledger, reservation
        gc.collect()  # were the connection closed here, it would empty the parent's log
        os._exit(0)
    told = os.read(read, 16).decode()
    os.waitpid(child, 0)
    log = Path(path + "-wal").exists()
    reservation.draw("label", 1)
    ledger.verify()
    remaining = reservation.remaining("label")
    ledger.close()
    return {"told": told, "log_kept": log, "remaining": remaining}


def main():
    orders = {"killed": killed, "spend": spend, "failing_disk": failing_disk, "inherit": inherit}
    for line in sys.stdin:
        what = json.loads(line)
        print(json.dumps(orders[what.pop("do")](**what)), flush=True)


if __name__ == "__main__":
    main()

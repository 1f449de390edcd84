"""What a process's user has switched decides nothing, and stays as it was."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
import sklearn
from threadpoolctl import threadpool_info, threadpool_limits

from quorate import plan
from quorate.ambient import one_thread, own_switches, unwarned
from quorate.planning import planned


def test_warnings_of_a_block_are_not_heard_and_those_of_other_threads_are():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        begun, over = threading.Event(), threading.Event()

        def silent():
            with unwarned():
                begun.set()
                over.wait(10)
                warnings.warn("private", stacklevel=1)

        thread = threading.Thread(target=silent)
        thread.start()
        begun.wait(10)
        before = list(warnings.filters)
        warnings.warn("public", stacklevel=1)
        over.set()
        thread.join()
        assert warnings.filters == before
        warnings.warn("after", stacklevel=1)
    assert [str(each.message) for each in heard] == ["public", "after"]


def test_blocks_of_many_threads_leave_the_filters_as_a_block_of_one_does():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with unwarned():
            pass
        before = list(warnings.filters)

        def work(_):
            for _ in range(200):
                with unwarned():
                    warnings.warn("private", stacklevel=1)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert warnings.filters == before


def test_switches_of_the_user_are_set_aside_for_a_block_and_stand_after_it():
    with np.errstate(all="raise"), localcontext(Context(prec=3)), sklearn.config_context(transform_output="pandas"):
        with own_switches():
            assert np.float64(1e308) * 10 == np.inf
            assert str(Decimal(39401) * 1) == "39401"
            assert sklearn.get_config()["transform_output"] == "default"
        assert np.geterr()["over"] == "raise"
        assert str(Decimal(39401) * 1) == "3.94E+4"
        assert sklearn.get_config()["transform_output"] == "pandas"


def numbers_of_threads():
    return [library["num_threads"] for library in threadpool_info()]


def test_libraries_are_held_to_one_thread_in_a_block_and_have_theirs_after_the_last_one():
    with one_thread():  # has loaded them
        pass
    with threadpool_limits(2):
        before, first_is_open, first_ends = numbers_of_threads(), threading.Event(), threading.Event()

        def first():
            with one_thread():
                first_is_open.set()
                first_ends.wait(60)

        thread = threading.Thread(target=first)
        thread.start()
        first_is_open.wait(60)
        with suppress(ZeroDivisionError), one_thread(), one_thread():
            assert set(numbers_of_threads()) == {1}
            first_ends.set()
            thread.join()
            1 / 0  # noqa: B018
        assert numbers_of_threads() == before
        assert 2 in before


def test_a_plan_holds_them_and_leaves_them_as_they_were(monkeypatch):
    with one_thread():
        pass
    inside = []

    def stopped(*_, **__):
        inside.append(set(numbers_of_threads()))
        raise InterruptedError

    monkeypatch.setattr(planned, "PublicFacts", stopped)
    with threadpool_limits(2):
        before = numbers_of_threads()
        with pytest.raises(InterruptedError):
            plan(epsilon=1.0, delta=1e-5, n_records=1_000, n_classes=2, n_public=100, width=3)
        assert inside == [{1}]
        assert numbers_of_threads() == before

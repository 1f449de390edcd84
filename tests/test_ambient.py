"""What a process's user has switched decides nothing, and stays as it was."""

from __future__ import annotations

import threading
import warnings
from decimal import Context, Decimal, localcontext

import numpy as np
import sklearn

from quorate.ambient import own_switches, unwarned


def test_warnings_of_a_block_are_not_heard_and_those_of_other_threads_are() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        begun, over = threading.Event(), threading.Event()

        def silent() -> None:
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


def test_blocks_of_many_threads_leave_the_filters_as_a_block_of_one_does() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with unwarned():
            pass
        before = list(warnings.filters)

        def work() -> None:
            for _ in range(200):
                with unwarned():
                    warnings.warn("private", stacklevel=1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert warnings.filters == before


def test_switches_of_the_user_are_set_aside_for_a_block_and_stand_after_it() -> None:
    with np.errstate(all="raise"), localcontext(Context(prec=3)), sklearn.config_context(transform_output="pandas"):
        with own_switches():
            assert np.float64(1e308) * 10 == np.inf
            assert str(Decimal(39401) * 1) == "39401"
            assert sklearn.get_config()["transform_output"] == "default"
        assert np.geterr()["over"] == "raise"
        assert str(Decimal(39401) * 1) == "3.94E+4"
        assert sklearn.get_config()["transform_output"] == "pandas"

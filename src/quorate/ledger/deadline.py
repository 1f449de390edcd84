"""A time within which a server must answer: a connection on which it does not is cut, and who waits goes on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def cut_after(seconds: float, descriptor: Callable[[], int]) -> Iterator[None]:
    """Cut a connection where the block has not ended after so many seconds.

    `seconds`: how long the block may take. `descriptor`: returns the socket of the connection, when the time is over. A
    server that was frozen keeps its socket open and says nothing; no timeout of its own ends that.

    Examples
    --------
    >>> here, there = socket.socketpair()
    >>> with cut_after(0.01, here.fileno):
    ...     here.recv(1)
    b''
    >>> here.close(), there.close()
    (None, None)
    """
    lock, ended = threading.Lock(), threading.Event()

    def cut() -> None:
        with lock, suppress(Exception):  # it was closed meanwhile
            if not ended.is_set():
                connection = socket.socket(fileno=descriptor())
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                finally:
                    connection.detach()

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            ended.set()
        timer.cancel()

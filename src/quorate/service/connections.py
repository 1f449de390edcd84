"""Connections that are taken: never more than leave the service the files that it needs itself.

Whoever opens connections and says nothing needs no key. So they are bounded, the first request of each has a time
within which it must come, and what is beyond the bound waits in the system's own queue.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from contextlib import suppress
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from quorate.errors import PreconditionFailed

SPARE: Final = 64  # descriptors that no connection may have: of the ledger's disk, the keys, and processes that vote
BACKLOG: Final = 128  # connections taken at a time, and that wait to be taken


def descriptors_for(connections: int) -> int:
    """Raise the limit on open files as far as so many connections need it; return how many files they may leave open.

    `connections`: how many may be open at a time. Raises PreconditionFailed if there is no room for any connection
    under the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0) if _is_open(0) else os.open(os.devnull, os.O_RDONLY)  # the lowest that is free: all below are used
    os.close(free)
    needed = free + connections + 2 * SPARE
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = needed - SPARE if soft == resource.RLIM_INFINITY else min(needed, soft) - SPARE
    if most < free + 8:
        raise PreconditionFailed(
            f"the limit on open files is {soft}, and leaves no room for connections; raise it (ulimit -n 4096, or "
            "LimitNOFILE=4096 in the systemd unit)"
        )
    return most


def _is_open(descriptor: int) -> bool:
    with suppress(OSError):
        os.fstat(descriptor)
        return True
    return False


class BoundedSocket(socket.socket):
    """A socket that takes no connection whose descriptor is beyond a bound.

    A new descriptor is the lowest that is free. So one at the bound says that as many files are open as may be, whoever
    opened them, and also where a connection has not come as far as its first byte, or its handshake. Whoever accepts
    then pauses for a second, as asyncio does where a process has no descriptors left.
    """

    __slots__ = ("most",)
    most: int

    def accept(self) -> tuple[socket.socket, Any]:
        """Take a connection, or leave it where it waits, as if there were no descriptor for it."""
        free = os.dup(self.fileno())
        os.close(free)
        if free >= self.most:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


def listening(host: str, port: int, *, most: int) -> list[socket.socket]:
    """Return bound sockets, one for each address of a host.

    `host`, `port`: where. `most`: descriptors beyond it are not given to a connection. Raises PreconditionFailed if an
    address cannot be had.

    Examples
    --------
    >>> [bound] = listening("127.0.0.1", 0, most=500)
    >>> bound.getsockname()[0], bound.close()
    ('127.0.0.1', None)
    """
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            taking = BoundedSocket(family, kind, protocol)
            taking.most = most
            sockets.append(taking)
            taking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                taking.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            taking.bind(address)
    except OSError as error:
        for bound in sockets:
            bound.close()
        raise PreconditionFailed(
            f"the service could not listen on {host}:{port} ({error.strerror or error}); choose another --port, or end "
            "what is there"
        ) from None
    return sockets


def impatient(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, which ends a connection whose first request has not come after so many seconds."""

    class Impatient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(seconds, self.end_unless_asked)

        def end_unless_asked(self) -> None:
            if self.cycle is None and not self.transport.is_closing():
                self.transport.abort()

    return Impatient

"""The process that serves: uvicorn on the address that the settings name, until it is told to stop.

It never takes more connections than leave the service the files that it needs itself. Whoever opens connections and
says nothing needs no key. So they are bounded, the first request of each has a time within which it must come, and what
is beyond the bound waits in the system's own queue.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import signal
import socket
import ssl
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from quorate.errors import REMEDIES, PreconditionFailed
from quorate.ledger.store import reason_of
from quorate.service.app import Service, create_app
from quorate.service.records import Records
from quorate.service.settings import ServiceSettings

SPARE: Final = 64  # descriptors that no connection may have: of the ledger's disk, the keys, and processes that vote
BACKLOG: Final = 128  # connections taken at a time, and that wait to be taken


def descriptors_for(connections: int) -> int:
    """Raise the limit on open files as far as so many connections need it; return how many files they may leave open.

    Raises PreconditionFailed if there is no room for any connection under the limit.
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
    """
    sockets: list[socket.socket] = []
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(addresses):
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


STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Server(uvicorn.Server):
    """A server that says where it listens, and whose signals are its owner's business."""

    def __init__(self, config: uvicorn.Config, records: Records) -> None:
        super().__init__(config)
        self._records = records

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and log it with the port that was had."""
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            for bound in server.sockets:
                host, port, *_ = bound.getsockname()
                self._records.event("listening", host=host, port=port)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


class _ToRecords(logging.Handler):
    """Puts what uvicorn, asyncio and other packages say into the service's own log, without what it is about."""

    def __init__(self, records: Records) -> None:
        super().__init__(logging.WARNING)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        """Log where a message comes from and the kind of error; of uvicorn's own its fixed part.

        Arguments, tracebacks, and messages of other packages may hold what was asked.
        """
        error = record.exc_info[1] if record.exc_info else None
        is_fixed = record.name.startswith("uvicorn") and error is None
        said = str(record.msg).partition("\n")[0][:200] if is_fixed else None
        self._records.event("server", source=record.name, said=said, **_kind_of(error))


def _kind_of(error: BaseException | None) -> dict[str, str]:
    if error is None:
        return {}
    code = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    return {"kind": type(error).__name__, **({} if code is None else {"code": code})}


@contextmanager
def _logged(records: Records) -> Iterator[None]:
    """Have everything that this process says of itself go to the log of the service, and nothing beside it."""
    root, hook, unraisable = logging.getLogger(), threading.excepthook, sys.unraisablehook
    show_warning = warnings.showwarning
    before, root.handlers = root.handlers, [_ToRecords(records)]
    threading.excepthook = lambda failure: records.event("server", source="thread", kind=failure.exc_type.__name__)
    sys.unraisablehook = lambda failure: records.event("server", source="object", kind=failure.exc_type.__name__)
    warnings.showwarning = lambda *_, **__: None  # what is warned of may depend on private rows
    try:
        yield
    finally:
        root.handlers, threading.excepthook, sys.unraisablehook = before, hook, unraisable
        warnings.showwarning = show_warning


_CANNOT_LISTEN = "the service could not listen on {0.host}:{0.port}; choose another --port, or end what is there"


def serve(service: Service) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP; requests under way are answered first.

    Raises PreconditionFailed if the address cannot be had.
    """
    with _logged(service.records):
        asyncio.run(_serving(service))


async def _serving(service: Service) -> None:
    settings, most = service.settings, descriptors_for(service.settings.max_connections)
    questions = _config(
        create_app(service),
        settings,
        lifespan="on",
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    servers = [(_Server(questions, service.records), listening(settings.host, settings.port, most=most))]
    if settings.metrics_port:  # of this machine alone, and so without TLS; to be had where no other connection is
        metrics = _config(_metrics_app(service), settings, lifespan="off")
        beside = listening("127.0.0.1", settings.metrics_port, most=most + SPARE // 4)
        servers.append((_Server(metrics, service.records), beside))
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for server, _ in servers:
            server.should_exit = True

    for number in STOPPING:
        loop.add_signal_handler(number, stop)
    try:
        results = await asyncio.gather(
            *(server.serve(sockets=sockets) for server, sockets in servers), return_exceptions=True
        )
    finally:
        for number in STOPPING:
            loop.remove_signal_handler(number)
    if not all(server.started for server, _ in servers) or any(isinstance(result, BaseException) for result in results):
        raise PreconditionFailed(_CANNOT_LISTEN.format(settings))


def check_certificate(settings: ServiceSettings) -> None:
    """Refuse a certificate and key that no connection could be made with.

    Raises PreconditionFailed if one of the files cannot be read or is not PEM, or they do not belong together.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return
    for name, path in (("tls_cert", settings.tls_cert), ("tls_key", settings.tls_key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise PreconditionFailed(
                f"{name} {path} cannot be used ({reason_of(error)}); {REMEDIES.get(error.errno or 0, 'mend that')}"
            ) from None
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            settings.tls_cert, settings.tls_key, password=lambda: ""
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is the first
        why = error.reason if isinstance(error, ssl.SSLError) and error.reason else type(error).__name__
        raise PreconditionFailed(
            f"tls_cert {settings.tls_cert} and tls_key {settings.tls_key} cannot be used ({why}); give a certificate "
            "and its key, both PEM, the key without a password, readable by whoever serves"
        ) from None


def _config(app: FastAPI | Starlette, settings: ServiceSettings, **own: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        **own,
        http=impatient(settings.body_seconds),
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(settings.shutdown_seconds)),
    )


def _metrics_app(service: Service) -> Starlette:
    routes = [Route("/metrics", partial(_metrics, service))]
    return Starlette(routes=routes, exception_handlers={500: service.broken})


async def _metrics(service: Service, _: Request) -> Response:
    return service.metrics_now()

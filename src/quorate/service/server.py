"""The process that serves: uvicorn on the address that the settings name, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quorate.errors import PreconditionFailed
from quorate.service.app import Service, create_app
from quorate.service.records import Records
from quorate.service.settings import ServiceSettings

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
            for each in server.sockets:
                host, port, *_ = each.getsockname()
                self._records.event("listening", host=host, port=port)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


class _ToRecords(logging.Handler):
    """Puts what uvicorn says into the service's own log: its words without what they are about."""

    def __init__(self, records: Records) -> None:
        super().__init__(logging.WARNING)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        """Log the fixed part of a message; its arguments and tracebacks may hold what was asked."""
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        self._records.event("server", said=str(record.msg).partition("\n")[0][:200] if not kind else None, kind=kind)


_CANNOT_LISTEN = "the service could not listen on {0.host}:{0.port}; choose another --port, or end what is there"


def serve(service: Service) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP; requests under way are answered first.

    Raises
    ------
    PreconditionFailed
        If the address cannot be had.
    """
    logger = logging.getLogger("uvicorn")
    logger.handlers, logger.propagate = [_ToRecords(service.records)], False
    try:
        asyncio.run(_serving(service))
    except SystemExit:  # with which uvicorn ends where it cannot listen
        raise PreconditionFailed(_CANNOT_LISTEN.format(service.settings)) from None


async def _serving(service: Service) -> None:
    settings = service.settings
    questions = _config(
        create_app(service),
        settings,
        host=settings.host,
        port=settings.port,
        lifespan="on",
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    servers = [_Server(questions, service.records)]
    if settings.metrics_port:  # of this machine alone, and so without TLS
        metrics = _config(_metrics_app(service), settings, host="127.0.0.1", port=settings.metrics_port, lifespan="off")
        servers.append(_Server(metrics, service.records))
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for server in servers:
            server.should_exit = True

    for number in STOPPING:
        loop.add_signal_handler(number, stop)
    try:
        results = await asyncio.gather(*(server.serve() for server in servers), return_exceptions=True)
    finally:
        for number in STOPPING:
            loop.remove_signal_handler(number)
    if not all(server.started for server in servers) or any(isinstance(each, BaseException) for each in results):
        raise PreconditionFailed(_CANNOT_LISTEN.format(settings))


def check_certificate(settings: ServiceSettings) -> None:
    """Refuse a certificate and key that no connection could be made with.

    Raises
    ------
    PreconditionFailed
        If one of the files cannot be read or is not PEM, or they do not belong together.

    Examples
    --------
    >>> check_certificate(ServiceSettings())
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return
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
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(settings.shutdown_seconds)),
    )


def _metrics_app(service: Service) -> Starlette:
    return Starlette(routes=[Route("/metrics", partial(_metrics, service))])


async def _metrics(service: Service, _: Request) -> Response:
    return service.metrics_now()

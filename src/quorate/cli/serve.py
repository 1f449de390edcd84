"""``quorate serve``: a finished run answers over HTTP."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from quorate.arguments import for_shell
from quorate.cli.options import run_folder, whole
from quorate.run.progress import progress


@click.command(name="serve")
@run_folder
@click.option("--host", help="Where to listen. [default: 127.0.0.1]")
@click.option("--port", type=whole, help="[default: 8470]")
@click.option(
    "--config", type=click.Path(dir_okay=False, path_type=Path), help="Settings. [default: service.toml in RUN]"
)
@click.option("--tls-cert", type=click.Path(dir_okay=False, path_type=Path), help="Certificate, PEM.")
@click.option("--tls-key", type=click.Path(dir_okay=False, path_type=Path), help="Its key, PEM.")
@click.option("--behind-proxy", is_flag=True, default=None, help="A proxy in front of it ends TLS.")
def command(
    run: Path,
    host: str | None,
    port: int | None,
    config: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: bool | None,
) -> None:
    """Serve RUN (default: here), which is finished: POST /v1/label, GET /v1/budget, /v1/guarantee, a page at /.

    The ensemble answers from what was kept back; each new point is charged durably before its noise is drawn, and a
    point that was asked before gets the same answer for free. When nothing is left, the student answers, marked as
    such. Whoever asks needs a key: quorate keys create. Ends at Ctrl-C or SIGTERM, when what is under way is answered.
    """
    from quorate.service.settings import FILE, read_service_settings

    own = run / FILE
    settings = read_service_settings(
        config if config is not None else own if own.exists() else None,
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        behind_proxy=behind_proxy,
    )
    _needs_the_extra()
    _refuse_busy(settings.host, settings.port)
    from quorate.folder.folder import RunFolder
    from quorate.service.app import Service
    from quorate.service.keys import KeyFile
    from quorate.service.open_run import opened
    from quorate.service.records import Log, Records
    from quorate.service.server import check_certificate, serve

    check_certificate(settings)
    keys = KeyFile(RunFolder(run).private)
    with ExitStack() as stack:
        with progress(quiet=False) as watch:
            served = stack.enter_context(opened(run, settings, watch=watch))
        left = served.answers.standing.answers_left
        scheme = "http" if settings.tls_cert is None else "https"
        click.echo(f"serving    {served.title} on {scheme}://{settings.host}:{settings.port}")
        click.echo(f"left       {'every prediction is free' if left is None else f'{left:,} answers'}")
        if not keys.keys():
            click.echo(
                f"key        none yet; make one: quorate keys create {for_shell(run)} --name NAME --scope ask "
                "--scope read"
            )
        log = Log.to_stderr()
        stack.callback(log.close)
        serve(Service(served, keys, settings, Records(write=log.write, dropped=lambda: log.dropped)))


def _refuse_busy(host: str, port: int) -> None:
    """Refuse an address that cannot be had, before anything says that it is served."""
    import socket

    from quorate.errors import PreconditionFailed

    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise PreconditionFailed(
            f"port {port} of {host} cannot be had ({error.strerror or error}); choose another with --port, or end what "
            "listens there"
        ) from None


def _needs_the_extra() -> None:
    from importlib.util import find_spec

    from quorate.errors import PreconditionFailed

    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise PreconditionFailed(f'not installed: {" and ".join(missing)}; install with: pip install "quorate[serve]"')

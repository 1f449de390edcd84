"""How a run is served: ``service.toml`` in its folder, then the environment, then the command line.

A file of its own and not a section of ``quorate.toml``: what the run is and what it costs is its owner's to say, how it
is served the operator's, who may mount another file.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from quorate.arguments import count, is_this_machine, nearest, one_of, real
from quorate.errors import InvalidParameter, PreconditionFailed, named, naming

FILE: Final = "service.toml"
LARGEST_PORT: Final = 65_535
LARGEST: Final = 10**9  # of any other number: more than any machine has, and less than a clock or a limit overflows at
PREFIX: Final = "QUORATE_SERVE_"

# Kubernetes gives every container variables about each Service; of one that is called "quorate-serve" these.
_OF_KUBERNETES: Final = re.compile(r"SERVICE_(HOST|PORT.*)|PORT_\d+_(TCP|UDP|SCTP).*|PORT=(tcp|udp|sctp)://.*")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceSettings:
    """How a run is served.

    `host`, `port`: where it listens. A host that is not of this machine alone needs `tls_cert` and `tls_key`, or
    `behind_proxy`.
    `tls_cert`, `tls_key`: files of a certificate and its key, PEM.
    `behind_proxy`: whether a proxy in front of it ends TLS.
    `after_budget`: what becomes of a new point once no answer is left: the student answers, marked as such, or the
    request is refused.
    `max_body`: bytes that a body may have.
    `max_rows`: rows that one request may have.
    `body_seconds`: how long a body may take to arrive; and the first request of a connection, from when it was opened.
    `max_waiting`: requests that may wait for an answer at a time.
    `max_connections`: connections that may be open at a time; further ones wait to be taken. Where the limit of the
    process on open files is lower and may not be raised, that holds, less some files of the service's own.
    `requests_per_minute`: how often one key may ask; 0 for no limit.
    `metrics_port`: a port of 127.0.0.1 on which ``/metrics`` needs no key; 0 for none.
    `shutdown_seconds`: how long requests under way may take after the service was told to stop.
    `trusted_types`: types of a student's file that are opened beside scikit-learn's own.
    """

    host: str = "127.0.0.1"
    port: int = 8470
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    after_budget: Literal["student", "refuse"] = "student"
    max_body: int = 1 << 20
    max_rows: int = 1_000
    body_seconds: float = 10.0
    max_waiting: int = 1_024
    max_connections: int = 2_048
    requests_per_minute: int = 0
    metrics_port: int = 0
    shutdown_seconds: float = 30.0
    trusted_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("port", "metrics_port"):
            count(name, getattr(self, name), at_most=LARGEST_PORT)
        count("requests_per_minute", self.requests_per_minute, at_most=LARGEST)
        for name in ("max_body", "max_rows", "max_waiting", "max_connections"):
            count(name, getattr(self, name), at_least=1, at_most=LARGEST)
        for name in ("body_seconds", "shutdown_seconds"):
            real(name, getattr(self, name), above=0, at_most=LARGEST)
        one_of("after_budget", self.after_budget, ("student", "refuse"))
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidParameter(f"{named('tls_cert')} and {named('tls_key')} go together; give both or neither")
        if not (self.on_loopback or self.tls_cert or self.behind_proxy):
            raise InvalidParameter(
                f"{named('host', self.host)} can be reached from other machines, and keys would travel in the clear: "
                f"give {named('tls_cert')} and {named('tls_key')}, or {named('behind_proxy')} where a proxy ends TLS, "
                f"or {named('host', '127.0.0.1')}"
            )

    @property
    def on_loopback(self) -> bool:
        """Whether this machine alone can reach it."""
        return is_this_machine(self.host)


def read_service_settings(
    path: Path | None, *, environment: Mapping[str, str] = os.environ, **given: Any
) -> ServiceSettings:
    """Read how a run is served; the command line goes before the environment, and that before the file.

    `path`: ``service.toml``; None where there is none. `environment`: ``QUORATE_SERVE_PORT=8471`` and the like. What
    Kubernetes sets there for a Service of that name is left alone. `**given`: of the command line; None where nothing
    was said. Raises InvalidParameter if a key is unknown or a value of the wrong kind; PreconditionFailed if the file
    is not TOML.
    """
    in_file: dict[str, Any] = {} if path is None else _of_file(path)
    in_environment = _of_environment(environment)
    typed = {name: value for name, value in given.items() if value is not None}
    names = {name: f"[service] {name}" for name in in_file}
    names |= {name: f"{PREFIX}{name.upper()}" for name in in_environment}
    with naming({name: called for name, called in names.items() if name not in typed}):
        return ServiceSettings(**{**in_file, **in_environment, **typed})


def _of_file(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise PreconditionFailed(f"there is no file {path}") from None
    except ValueError as error:  # no UTF-8, no TOML, or a number of thousands of digits
        raise PreconditionFailed(f"{path} is not valid TOML: {error}") from None
    section = document.pop("service", {})
    if document or not isinstance(section, dict):
        raise InvalidParameter(f"{path.name} has one section, [service], and nothing else")
    return {name: _typed(name, value, f"{path.name}: ", path.parent) for name, value in section.items()}


def _of_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values = {}
    for variable, text in environment.items():
        rest = variable.removeprefix(PREFIX)
        if rest == variable or _OF_KUBERNETES.fullmatch(rest) or _OF_KUBERNETES.fullmatch(f"{rest}={text}"):
            continue
        name = rest.lower()
        values[name] = _typed(name, _parsed(name, text), f"{variable}: ", Path())
    return values


def _parsed(name: str, text: str) -> Any:
    default = _DEFAULTS.get(name)
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(text, text)
    if isinstance(default, tuple):
        return [part for part in text.split(",") if part]
    if isinstance(default, int | float):
        try:
            return type(default)(text)
        except ValueError:
            return text
    return text


def _typed(name: str, value: Any, where: str, folder: Path) -> Any:
    if name not in _DEFAULTS:
        raise InvalidParameter(f"{where}there is no setting {name!r}{nearest(name, _DEFAULTS)}")
    default = _DEFAULTS[name]
    kinds: dict[type, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float), str: (str,), tuple: (list,)}
    wanted = kinds.get(type(default), (str,))
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise InvalidParameter(f"{where}{name} must be of type {wanted[-1].__name__}, got {value!r}")
    if default is None:
        return folder / str(value)
    return tuple(value) if isinstance(value, list) else value


_DEFAULTS: Final[dict[str, Any]] = {part.name: part.default for part in fields(ServiceSettings)}

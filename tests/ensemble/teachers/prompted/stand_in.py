"""A local stand-in for an endpoint: it speaks the protocol, keeps what it was asked, and misbehaves where told to."""

from __future__ import annotations

import json
import re
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: A way to answer: writes to the handler whatever it likes; gets what the model would have said.
Manner = Callable[[BaseHTTPRequestHandler, str], None]


def nearest_example(asked: dict[str, Any]) -> str:
    """A toy model: the label of the example that shares most words with the last row."""
    *shown, last = [each["content"] for each in asked["messages"][1:]]
    words = set(re.findall(r"[\w.-]+", last))
    pairs = list(zip(shown[::2], shown[1::2], strict=True))
    if not pairs:
        return "no examples"
    return max(pairs, key=lambda pair: len(words & set(re.findall(r"[\w.-]+", pair[0]))))[1]


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def reply(said: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]}).encode()


def well(handler: BaseHTTPRequestHandler, said: str) -> None:
    send(handler, reply(said))


class Endpoint:
    """A server of its own thread; `manner` may be changed while it runs."""

    def __init__(
        self,
        model: Callable[[dict[str, Any]], str] = nearest_example,
        manner: Manner = well,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.model, self.manner = model, manner
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    outer.asked.append(asked)
                    outer.headers.append(dict(self.headers))
                with suppress(OSError):  # whoever asked has gone
                    outer.manner(self, outer.model(asked))
                self.close_connection = True

            def log_message(self, *said: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


endpoint = Endpoint


def slow(handler: BaseHTTPRequestHandler, said: str) -> None:
    time.sleep(1.0)
    well(handler, said)


def drip(handler: BaseHTTPRequestHandler, said: str) -> None:
    """A byte now and then: no single wait is long."""
    body = reply(said)
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    for at in range(len(body)):
        handler.wfile.write(body[at : at + 1])
        handler.wfile.flush()
        time.sleep(0.05)


BAD: dict[str, Manner] = {
    "late": slow,
    "a byte at a time": drip,
    "not JSON": lambda handler, said: send(handler, b"<html>busy</html>"),
    "another JSON": lambda handler, said: send(handler, b'{"choices": [{"message": {"content": ["yes"]}}]}'),
    "deep JSON": lambda handler, said: send(handler, b"[" * 200_000),
    "no choices": lambda handler, said: send(handler, b'{"choices": []}'),
    "a sentence": lambda handler, said: send(handler, reply(f"The label is {said}.")),
    "an unknown class": lambda handler, said: send(handler, reply("perhaps")),
    "too long": lambda handler, said: send(handler, reply(said + " " * 400_000)),
    "refused": lambda handler, said: send(handler, b"{}", 401),
    "always busy": lambda handler, said: send(handler, b"{}", 503),
    "a redirect": lambda handler, said: send(handler, b"", 307, Location="http://127.0.0.2:9/v1/chat/completions"),
    "compressed": lambda handler, said: send(handler, reply(said), 200, Content_Encoding="gzip"),
    "cut short": lambda handler, said: (
        handler.send_response(200),
        handler.send_header("Content-Length", "5000"),
        handler.end_headers(),
        handler.wfile.write(reply(said)),
    )[0],
    "no HTTP": lambda handler, said: handler.wfile.write(b"hello\r\n\r\n") and None,
    "hangs up": lambda handler, said: handler.connection.close(),
}

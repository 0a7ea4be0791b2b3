"""A web server on this machine that misbehaves as told."""

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class FileServer:
    """Serves `content` at every address but those in `files`; each list holds one entry a request, used up in order."""

    content: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)  # path → content; when not empty, all else is a 404
    etag: str | None = '"v1"'
    ranges: bool = True
    shift: int = 0  # answers a range this many bytes off
    length: int | None = 0  # added to the true Content-Length; None: no such header
    statuses: list[int] = field(default_factory=list)  # answer this and nothing else
    drops: list[int] = field(default_factory=list)  # cut the connection after so many bytes of this answer
    stall: float = 0.0  # seconds of silence before the body
    location: str | None = None  # redirect everything to there
    requests: list[dict[str, str]] = field(default_factory=list)  # headers of each request, and its "path"
    url: str = ""


@pytest.fixture
def file_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "*")
    told = FileServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.requests.append({**dict(self.headers.items()), "path": self.path})
            content = told.files.get(self.path, told.content)
            if told.files and self.path not in told.files:
                self.send_error(404)
            elif told.statuses:
                self.send_error(told.statuses.pop(0))
            elif told.location:
                self.send_response(302)
                self.send_header("Location", told.location)
                self.end_headers()
            else:
                self.answer(content)

        def answer(self, content: bytes) -> None:
            wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = 0
            if wanted and told.ranges and self.headers.get("If-Range") == told.etag:
                start = int(wanted[1]) - told.shift
                if start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            body = content[start:]
            if told.length is not None:
                self.send_header("Content-Length", str(len(body) + told.length))
            if told.etag:
                self.send_header("ETag", told.etag)
            self.end_headers()
            time.sleep(told.stall)
            if told.drops:
                body = body[: told.drops.pop(0)]
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # the client may leave first
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    yield told
    server.shutdown()
    server.server_close()
    thread.join(timeout=5)

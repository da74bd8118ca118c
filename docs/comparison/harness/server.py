"""A server process on this machine, from its start to its end."""
import contextlib
import http.client
import json
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.requests import Request
from harness.processes import cpu_seconds, ending, kill_group

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 30.0


class ServerError(OSError):
    """An answer with a status that is no success."""


class Server:
    """A running server. The file `log` gets what it prints."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], port: int, log: pathlib.Path) -> None:
        self.port = port
        self._started = time.monotonic()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_s(self) -> float:
        return cpu_seconds(self.pid)

    def wait_for(self, request: Request) -> float:
        """Repeats a request until it succeeds: the seconds since the start."""
        deadline = self._started + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"the server {ending(self._process.returncode)}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.send(request)
                return time.monotonic() - self._started
            time.sleep(0.01)
        raise TimeoutError(f"no answer to {request.path} within {START_TIMEOUT_S} s")

    def send(self, request: Request, token: str = "") -> Any:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        body = request.body.encode() or None
        url = f"http://127.0.0.1:{self.port}{request.path}"
        message = urllib.request.Request(url, body, headers, method=request.method)
        try:
            with urllib.request.urlopen(message, timeout=120) as answer:
                content = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise ServerError(f"{request.path}: status {error.code}: {error.read().decode()[:1000]}") from error
        return json.loads(content) if content.startswith(("{", "[")) else content

    def stop(self) -> None:
        """Ends the server and the processes that it started."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
        kill_group(self.pid)
        self._process.wait()


@contextlib.contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], port: int, log: pathlib.Path) -> Iterator[Server]:
    server = Server(command, environment, port, log)
    try:
        yield server
    finally:
        server.stop()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def post(path: str, body: Any) -> Request:
    return Request("POST", path, json.dumps(body))


def get(path: str, **parameters: str | int) -> Request:
    return Request("GET", f"{path}?{urllib.parse.urlencode(parameters)}")

"""A headless Chromium for tests of pages, driven through its debugging protocol over two pipes."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.child import DEADLINE_SECONDS

#: Names of Debian's programs.
PROGRAMS = ("chromium-headless-shell", "chromium")


def find_browser() -> str | None:
    """Return the program of a Chromium, or `None`."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Browser:
    """One page in a headless Chromium; everything that its console says is kept.

    Args:
        page: A file, or the address of a page.
        profile: A folder for the browser's settings.
        offline: Whether the page has no network, not even the machine's own; what it asks for is a problem then.
    """

    def __init__(self, page: Path | str, profile: Path, *, offline: bool = True) -> None:
        program = find_browser()
        assert program is not None
        # Numbers of three digits and more, which the shell below does not clobber.
        theirs_in, self._out = (self._high(end) for end in os.pipe())
        self._in, theirs_out = (self._high(end) for end in os.pipe())
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "--window-size=1200,1400",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", program, *options],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._next = 0
        self._session: str | None = None
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self._offline = offline
        if offline:
            # What a page without a network would ask for fails, and is a problem.
            self.call(
                "Network.emulateNetworkConditions",
                offline=True,
                latency=0,
                downloadThroughput=0,
                uploadThroughput=0,
            )
        self.call("Page.navigate", url=page.as_uri() if isinstance(page, Path) else page)

    @staticmethod
    def _high(end: int) -> int:
        copy = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 100)
        os.close(end)
        return copy

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(DEADLINE_SECONDS)
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Evaluate an expression until it is true, and return its value."""
        end = time.monotonic() + DEADLINE_SECONDS
        while not (value := self.evaluate(script)):
            assert time.monotonic() < end, f"{script} did not become true; problems: {self.problems}"
            time.sleep(0.05)
        return value

    def choose_file(self, script: str, file: Path) -> None:
        """Choose a file in the input element that a JavaScript expression gives."""
        element = self.call("Runtime.evaluate", expression=script)["result"]["objectId"]
        self.call("DOM.setFileInputFiles", files=[str(file)], objectId=element)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Move the mouse, turn its wheel or press a button."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], DEADLINE_SECONDS)
            part = os.read(self._in, 1 << 16) if ready else b""
            assert part, "the browser has ended, or does not answer"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        self._note(answer.get("method"), answer.get("params", {}))
        return answer

    def _note(self, method: str | None, parameters: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            # Warnings of the driver, such as that no GPU draws, are of the machine and not of the page.
            if (parameters["entry"]["source"], parameters["entry"]["level"]) != ("rendering", "warning"):
                self.problems.append(str(parameters["entry"]))
        elif method == "Network.requestWillBeSent" and self._offline:
            url = parameters["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:")):
                self.problems.append(f"asks for {url}")

"""A headless Chromium for the tests of pages: opens a file and says what the console complained of and what the page asked the network for.

It speaks the DevTools protocol through a pipe: one JSON message after another, each ended by a zero byte.
"""

import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
MISSING = "Chromium is not installed (Debian: chromium)"
SECONDS = 60  # for a page to be drawn: much more than it takes


class Browser:
    """One process for all pages. Use it in a `with`, or call close()."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="scaletrace-chromium-")
        from_us, to_it = os.pipe()
        to_us, from_it = os.pipe()

        def on_3_and_4():  # where Chromium looks for the pipe
            a, b = os.dup(from_us), os.dup(from_it)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=on_3_and_4, close_fds=False,
            env={**os.environ, "HOME": self.folder})  # fmt: skip
        os.close(from_us)
        os.close(from_it)
        self.write_to, self.read_from, self.rest, self.last, self.events = to_it, to_us, b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for end in (self.write_to, self.read_from):
            os.close(end)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, until):
        """The next message, or None when this time has come."""
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read_from], [], [], left)[0]:
                return None
            data = os.read(self.read_from, 1 << 20)
            if not data:
                raise RuntimeError("Chromium ended")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_to, data):]
        until = time.monotonic() + SECONDS
        while True:
            answer = self.receive(until)
            if answer is None:
                raise RuntimeError(f"no answer to {method} after {SECONDS} s")
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, path, dark=False, width=1200, height=900):
        """The page, drawn."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.call("Page.navigate", url=path if "://" in path else pathlib.Path(path).resolve().as_uri())
        page.wait("document.readyState === 'complete' && location.href !== 'about:blank'")
        time.sleep(0.1)  # for what a page might ask for after it was loaded
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return page


class Page:
    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def evaluate(self, expression):
        """The value of an expression of JavaScript; what it throws is a RuntimeError."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        return answer["result"].get("value")

    def wait(self, expression):
        until = time.monotonic() + SECONDS
        while not self.evaluate(expression):
            if time.monotonic() > until:
                raise RuntimeError(f"not true after {SECONDS} s: {expression}")
            time.sleep(0.02)

    def problems(self):
        """Errors and warnings of the console, and requests to anything but the page itself: a line each."""
        found = []
        self.evaluate("1")  # what happened before has been told by then
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, what = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                details = what["exceptionDetails"]
                found.append("exception: " + details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
                found.append(f"console {what['type']}: " + " ".join(str(part.get("value", part.get("description"))) for part in what["args"]))
            elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                found.append(f"log {what['entry']['level']}: {what['entry']['text']} {what['entry'].get('url', '')}")
            elif method in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                url = what["request"]["url"] if "request" in what else what["url"]
                if url.split(":")[0] not in ("file", "data", "blob", "about"):
                    found.append("request: " + url)
        return found

    def screenshot(self, path, whole=False):
        import base64

        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def print_to(self, path):
        import base64

        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

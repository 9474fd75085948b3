"""Pages in a headless Chromium, driven over the pipe of its debugging protocol: what they show, load and say."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

COMMAND = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE_S = 60


class Chromium:
    """One browser; `with` ends it."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="numsan-chromium-", ignore_cleanup_errors=True)
        ours, theirs = os.pipe(), os.pipe()  # what we write, what it writes
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--no-first-run", "--disable-extensions", "--disable-background-networking",
                 f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}', "bash", COMMAND, *flags],
            pass_fds=(ours[0], theirs[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self.to, self.of = ours[1], theirs[0]
        self.buffer, self.number, self.events, self.answers = b"", 0, [], {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.of)
        self.profile.cleanup()

    def take(self, until):
        """Reads messages until one fits; answers to calls are kept by their number."""
        end = time.monotonic() + PATIENCE_S
        while True:
            while b"\0" in self.buffer:
                line, self.buffer = self.buffer.split(b"\0", 1)
                message = json.loads(line)
                if "id" in message:
                    self.answers[message["id"]] = message
                else:
                    self.events.append(message)
                if until(message):
                    return message
            ready, _, _ = select.select([self.of], [], [], max(0, end - time.monotonic()))
            data = os.read(self.of, 1 << 16) if ready else b""
            if not data:
                raise RuntimeError("chromium says nothing more")
            self.buffer += data

    def call(self, method, session=None, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        self.take(lambda answer: answer.get("id") == number)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, path, width=1400, height=900, theme="light", scripts=True):
        return Page(self, path, width, height, theme, scripts)


class Page:
    """A file that was loaded, `width` pixels wide, on a system of this theme."""

    def __init__(self, browser, path, width, height, theme, scripts):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.url = path.resolve().as_uri()
        self.call("Page.navigate", url=self.url)
        browser.take(lambda message: message.get("method") == "Page.loadEventFired" and
                     message["sessionId"] == self.session)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def events(self, *methods):
        return [message["params"] for message in self.browser.events
                if message.get("sessionId") == self.session and message["method"] in methods]

    def complaints(self):
        """Errors and warnings of its scripts and of the browser about it."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        said = self.events("Runtime.exceptionThrown")
        said += [event for event in self.events("Runtime.consoleAPICalled") if event["type"] in ("error", "warning")]
        return said + [event["entry"] for event in self.events("Log.entryAdded")
                       if event["entry"]["level"] in ("error", "warning")]

    def loaded(self):
        """Addresses that it asked for, but for its own and those that have their content in them."""
        asked = [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]
        return [url for url in asked if url.split("#")[0] != self.url and not url.startswith("data:")]

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def screenshot(self, path, whole=True):
        made = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(made["data"]))

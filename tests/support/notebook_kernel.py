"""A real kernel of Jupyter, and what its cells print."""
import pathlib
import time

import jupyter_client.manager
import run_numsan


class Kernel:
    """A kernel and what its cells print: stdout, stderr and results in one text. With `options` it runs under numsan;
    else numsan is not attached, and the package can start it again."""

    def __init__(self, folder, options=None):
        environment = {
            "PYTHONPATH": str(run_numsan.REPO / "python"), "NUMSAN_BUILD": str(run_numsan.BUILD),
            "NUMSAN_CACHE": str(run_numsan.CACHE), "IPYTHONDIR": str(folder / "ipython"), "NO_COLOR": "1"}
        if options is None:
            environment = run_numsan.plain_environment({**environment, "NUMSAN_OPTIONS": "report=none:history=16"})
        else:
            environment = run_numsan.attached([], options=options, env=environment)[1]
        environment.pop("PYTEST_CURRENT_TEST", None)  # else it leaves descriptors 1 and 2 as they are
        self.manager, self.client = jupyter_client.manager.start_new_kernel(cwd=str(folder), env=environment)
        self.process = self.manager.provisioner.pid

    def run(self, cell, answer=None, until=""):
        """(status, text), where what was written to a descriptor may come late: the text has `until` in it."""
        texts = []

        def take(message):
            content = message["content"]
            texts.append(content.get("text") or content.get("data", {}).get("text/plain") or
                         "".join(content.get("traceback", [])))

        def answer_it(message):
            texts.append(message["content"]["prompt"])
            self.client.input(answer)

        reply = self.client.execute_interactive(cell, allow_stdin=answer is not None, stdin_hook=answer_it,
                                                output_hook=take, timeout=120)
        self.number = reply["content"]["execution_count"]
        while until not in "".join(texts):
            texts.append(self.client.get_iopub_msg(timeout=30)["content"].get("text", ""))
        return reply["content"]["status"], "".join(texts)

    def wait_for_restart(self):
        """The same process, with another environment."""
        environment, deadline = pathlib.Path(f"/proc/{self.process}/environ"), time.monotonic() + 60
        while b"libnumsan.so" not in environment.read_bytes():
            assert time.monotonic() < deadline, "the kernel did not start again"
            time.sleep(0.05)
        self.client.wait_for_ready(timeout=60)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

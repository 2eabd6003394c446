"""A server in a process of its own, for tests that kill it."""

import subprocess
import sys


class ServerProcess:
    """`pyritemq serve` on a folder; started again on the same one, it is a restart."""

    def __init__(self, folder, properties):
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        (folder / "broker.conf").write_text(text)
        command = [sys.executable, "-m", "pyritemq.server", "serve", "--listen", "127.0.0.1"]
        command += ["--store", str(folder / "store"), "--advertise", "127.0.0.1"]
        command += ["--namesrv-port", "0", "--broker-port", "0", "-c", str(folder / "broker.conf")]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = (line for line in self._process.stdout if line.startswith("The broker["))
        self.address = next(lines).split(", ")[1].split("]")[0]

    def end(self, number):
        """Send a signal and return the exit code."""
        self._process.send_signal(number)
        return self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self._process.kill()
        with self._process:
            self._process.wait()

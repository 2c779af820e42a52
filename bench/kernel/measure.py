"""Measure one session of a kernel and print the seconds as JSON.

Usage: measure.py KERNEL    (a kernel's name, as Jupyter lists it)
"""

import json
import sys
import time

from jupyter_client.manager import start_new_kernel

GO = {
    "first": "%%\nfmt.Println(1)",
    "warm": "%%\nfmt.Println({i})",
    "complete": "%%\nfmt.Printl",
}
PYTHON = {"first": "print(1)", "warm": "print({i})", "complete": "import os\nos.pat"}


def timed(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def main():
    kernel = sys.argv[1]
    cells = PYTHON if kernel.startswith("python") else GO
    seconds = {}
    sessions = []
    seconds["start"] = timed(lambda: sessions.append(start_new_kernel(kernel_name=kernel, startup_timeout=300)))
    manager, client = sessions[0]

    def run(code):
        reply = client.execute_interactive(code, output_hook=lambda message: None, timeout=300)
        assert reply["content"]["status"] == "ok", reply["content"]

    def complete():
        client.complete(cells["complete"], len(cells["complete"]))
        reply = client.get_shell_msg(timeout=300)
        assert reply["content"]["matches"], reply["content"]

    try:
        seconds["first cell"] = timed(lambda: run(cells["first"]))
        warm = [timed(lambda: run(cells["warm"].replace("{i}", str(i)))) for i in range(5)]
        seconds["warm cell"] = sorted(warm)[2]
        seconds["first completion"] = timed(complete)
        seconds["next completion"] = sorted(timed(complete) for _ in range(5))[2]
    finally:
        manager.shutdown_kernel()
    print(json.dumps(seconds))


main()

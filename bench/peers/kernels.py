"""Measure one session of a kernel and print the seconds as JSON.

Usage: kernels.py KERNEL FOLDER

KERNEL is a kernel's name, as Jupyter lists it. FOLDER has the go.mod and go.sum of a module with GoMLX.
"""

import glob
import json
import os
import sys
import time

from jupyter_client.manager import start_new_kernel

GO = {
    "first": "%%\nfmt.Println(1)",
    "warm": "%%\nfmt.Println({i})",
    "complete": "%%\nfmt.Printl",
    "import": """import (
    "github.com/gomlx/compute"
    _ "github.com/gomlx/go-xla/compute/xla"
    "github.com/gomlx/gomlx/core/graph"
)""",
    "xla": """%%
backend, err := compute.NewWithConfig("xla:cpu")
if err != nil {{
    panic(err)
}}
y := graph.MustExecOnce(backend, func(x *graph.Node) *graph.Node {{ return graph.ReduceAllSum(graph.Square(x)) }}, []float32{{1, 2, {i}}})
fmt.Println(y.Value())""",
    "complete imported": "%%\ngraph.ReduceAllS",
}
PYTHON = {"first": "print(1)", "warm": "print({i})", "complete": "import os\nos.pat"}
# GoNB starts with an empty module, and fetches a cell's imports each time that the cell runs.
MODULE = "!*cp {folder}/go.mod {folder}/go.sum .\n%noautoget"


def timed(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


class Session:
    """A session of a kernel."""

    def __init__(self, kernel):
        self.manager, self.client = start_new_kernel(kernel_name=kernel, startup_timeout=300)

    def run(self, code):
        reply = self.client.execute_interactive(code, output_hook=lambda message: None, timeout=600)["content"]
        assert reply["status"] == "ok", reply

    def matches(self, code):
        self.client.complete(code, len(code))
        return self.client.get_shell_msg(timeout=300)["content"]["matches"]

    def complete(self, code):
        assert self.matches(code), code

    def processor_time(self):
        """Return the processor time of GoNB's ended children and their children, in seconds.

        This is the time for building and running cells, without gopls.
        """
        pids = [self.manager.provisioner.pid]
        for pid in pids:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as comm:
                if comm.read().strip() == "gonb":
                    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                        fields = stat.read().rsplit(")", 1)[1].split()
                    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
            for task in glob.glob(f"/proc/{pid}/task/*/children"):
                with open(task, encoding="utf-8") as children:
                    pids += map(int, children.read().split())
        raise RuntimeError("no GoNB among the kernel's processes")

    def cells(self, code, n):
        """Return the median time of n different cells."""
        return sorted(timed(lambda i=i: self.run(code.format(i=i))) for i in range(n))[n // 2]

    def completions(self, code, n):
        return sorted(timed(lambda: self.complete(code)) for _ in range(n))[n // 2]


def main():
    kernel, folder = sys.argv[1:]
    cells = PYTHON if kernel.startswith("python") else GO
    seconds, sessions = {}, []
    seconds["start"] = timed(lambda: sessions.append(Session(kernel)))
    session = sessions[0]
    try:
        seconds["first cell"] = timed(lambda: session.run(cells["first"]))
        seconds["warm cell"] = session.cells(cells["warm"], 5)
        seconds["first completion"] = timed(lambda: session.complete(cells["complete"]))
        seconds["next completion"] = session.completions(cells["complete"], 5)
        if "xla" in cells:
            if kernel != "gonbatch":
                session.run(MODULE.format(folder=folder))
            session.run(cells["import"])
            session.run(cells["xla"].format(i=1000))
            begin = session.processor_time()
            seconds["XLA cell"] = session.cells(cells["xla"], 5)
            seconds["its CPU time"] = (session.processor_time() - begin) / 5
            if any(session.matches(cells["complete imported"]) for _ in range(10)):  # GoNB has none while gopls is reading GoMLX
                seconds["completion in GoMLX"] = session.completions(cells["complete imported"], 5)
    finally:
        session.manager.shutdown_kernel()
    print(json.dumps(seconds))


main()

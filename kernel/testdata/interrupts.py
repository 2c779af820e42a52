"""Interrupt cells on the gonbatch kernel at random times: each must end.

Prints "ok", or fails and names the cell that keeps running.

Usage: interrupts.py SEED CELLS
"""

import random
import sys
import time

from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (the kernels' ports)

PATIENCE = 600  # seconds
ENDS = 120  # seconds after an interrupt
CELLS = ["%%\nfmt.Println(-{i})\ntime.Sleep(time.Hour)", "%%\nfmt.Println(-{i})\nfor {{\n}}", "!echo -{i}; sleep 3600", "%%bash\necho -{i}\nsleep 3600"]

seed, cells = int(sys.argv[1]), int(sys.argv[2])
choose = random.Random(seed)
manager, client = start_new_kernel(kernel_name="gonbatch", startup_timeout=PATIENCE)


def message(ident, wanted):
    """Wait for a message of a cell, and return how long that took, in seconds."""
    begin = time.monotonic()
    while True:
        got = client.get_iopub_msg(timeout=PATIENCE)
        if got["parent_header"].get("msg_id") == ident and wanted(got):
            return time.monotonic() - begin


def state(name):
    return lambda got: got["content"].get("execution_state") == name


def interrupt(i, cell, after):
    """Interrupt a cell the given seconds after it starts, or after its first output."""
    ident = client.execute(cell, allow_stdin=False)
    message(ident, state("busy"))
    took = 0
    if after is None:
        took = message(ident, lambda got: got["msg_type"] == "stream")
    else:
        time.sleep(after)
    manager.interrupt_kernel()
    try:
        while (reply := client.get_shell_msg(timeout=ENDS))["parent_header"].get("msg_id") != ident:
            pass
    except Exception as error:
        sys.exit(f"seed {seed}: cell {i}, interrupted after {after} s, goes on: {cell!r} {error!r}")
    if reply["content"].get("ename") != "Interrupted":
        sys.exit(f"seed {seed}: cell {i}, interrupted after {after} s: {cell!r} {reply['content']}")
    message(ident, state("idle"))
    return took


# How long a cell takes until it runs: interrupts come before and after that.
times = [max(interrupt(i, cell.format(i=i), None) for i in (1, 2)) for cell in CELLS]
for i in range(3, 3 + cells):
    kind = choose.randrange(len(CELLS))
    interrupt(i, CELLS[kind].format(i=i), choose.uniform(0, 1.2 * times[kind]))
client.stop_channels()
manager.shutdown_kernel()
print("ok")

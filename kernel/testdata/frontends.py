"""Connect several front ends to one gonbatch kernel, some of which misbehave. Print "ok", or fail."""

import atexit
import glob
import signal
import socket
import subprocess
import sys
import time

from jupyter_client.manager import start_new_kernel

PATIENCE = 600  # seconds
MEGABYTES = 200

# A second front end executes cells and prints their output. It is stopped, as with Ctrl-Z, and
# continued.
SECOND = """
import sys
from jupyter_client import BlockingKernelClient

import ports  # noqa: F401 (the kernels' ports)
client = BlockingKernelClient(connection_file=sys.argv[1])
client.load_connection_file()
client.start_channels()
for line in sys.stdin:
    client.wait_for_ready(timeout=600)
    texts = []
    client.execute_interactive(line, output_hook=lambda m: texts.append(m["content"].get("text", "")), timeout=600)
    print("".join(texts), end="", flush=True)
"""


def check(ok, *what):
    if not ok:
        sys.exit(" ".join(map(str, what)))


def memory(pid):
    """Return the most memory that a process has used, in megabytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))


def gonb(pid):
    """Return the PID of GoNB, a child of the kernel."""
    for name in glob.glob(f"/proc/{pid}/task/*/children"):
        with open(name, encoding="ascii") as children:
            for child in children.read().split():
                with open(f"/proc/{child}/comm", encoding="ascii") as comm:
                    if comm.read().strip() == "gonb":
                        return int(child)
    sys.exit("no GoNB")


manager, client = start_new_kernel(kernel_name="gonbatch", startup_timeout=PATIENCE)
info = manager.get_connection_info()
ports = [info[name] for name in ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")]


def execute(code):
    size, last = 0, ""

    def show(message):
        nonlocal size, last
        text = message["content"].get("text", "")
        size, last = size + len(text), text or last

    reply = client.execute_interactive(code, output_hook=show, timeout=PATIENCE)["content"]
    check(reply["status"] == "ok", reply)
    return size, last


# Connections to each port that send nothing, or nonsense.
strangers = []
for port in ports:
    for i in range(100):
        stranger = socket.create_connection(("127.0.0.1", port))
        if i % 10 == 0:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        strangers.append(stranger)
# A client that completes the handshake with the heartbeat port and then sends something malformed.
greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL" + bytes(48)
ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
malformed = socket.create_connection(("127.0.0.1", info["hb_port"]))
malformed.sendall(greeting + b"\x04" + bytes([len(ready)]) + ready + b"\x00\x05abcde" + b"\x40\xff")

second = subprocess.Popen(
    [sys.executable, "-c", SECOND, manager.connection_file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
)
atexit.register(second.kill)  # It may be stopped, and would then never end.
second.stdin.write('!echo "second"\n')
check(second.stdout.readline() == "second\n", "the second front end is not served")

# The heartbeat still works.
client.hb_channel.unpause()
beats = time.monotonic()
while not client.hb_channel.is_beating():
    check(time.monotonic() < beats + PATIENCE, "the heart does not beat")
    time.sleep(0.1)

# The second front end is stopped while there is a lot of output.
second.send_signal(signal.SIGSTOP)
size, last = execute(f"!head -c {MEGABYTES}000000 /dev/zero | tr '\\0' x | fold -w 100; echo end")
check(size > MEGABYTES * 1_000_000 and last.endswith("end\n"), "put out:", size, last[-20:])
kernel = manager.provisioner.process.pid
for pid in (kernel, gonb(kernel)):
    check(memory(pid) < MEGABYTES, f"process {pid} of kernel {kernel} has used {memory(pid)} MB of memory")
check(execute("!echo again")[1] == "again\n", "no output")

# It continues, and is served again.
second.send_signal(signal.SIGCONT)
second.stdin.write('!echo "continued"\n')
check(second.stdout.readline() == "continued\n", "the second front end is not served again")
second.stdin.close()
second.wait(timeout=PATIENCE)
manager.shutdown_kernel()
print("ok")

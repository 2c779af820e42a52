"""Play a sequence of messages to a new session of the gonbatch kernel, through sockets like VS Code's.

Usage: vscode.py SEQUENCE.json    (see vscode/README.md)

Prints nothing if every expected message has arrived. Otherwise it fails, and prints the expected
message and what came instead.
"""

import json
import sys
import time
import uuid

import zmq
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session

import ports  # noqa: F401 (the kernels' ports)

PATIENCE = 600  # seconds


class Sockets:
    def __init__(self, info):
        self.session = Session(key=info["key"].encode() if isinstance(info["key"], str) else info["key"])
        self.context = zmq.Context()
        routing_id = str(uuid.uuid4()).encode()
        self.sockets, self.poller = {}, zmq.Poller()
        for channel in ("shell", "control", "stdin", "iopub"):
            socket = self.context.socket(zmq.SUB if channel == "iopub" else zmq.DEALER)
            if channel == "iopub":
                socket.subscribe(b"")
            else:
                socket.routing_id = routing_id
            socket.connect(f"tcp://{info['ip']}:{info[channel + '_port']}")
            self.sockets[channel] = socket
            self.poller.register(socket, zmq.POLLIN)
        self.sent, self.came = {}, []

    def send(self, step):
        message = self.session.msg(step["type"], step["content"], metadata=step.get("metadata", {}))
        self.sent[step["as"]] = message["header"]["msg_id"]
        self.session.send(self.sockets[step["send"]], message)

    def receive(self, milliseconds):
        for socket, _ in self.poller.poll(milliseconds):
            channel = next(name for name, s in self.sockets.items() if s is socket)
            _, parts = self.session.feed_identities(socket.recv_multipart())
            self.came.append((channel, self.session.deserialize(parts)))

    def take(self, step, channel):
        """Remove and return the first message that matches the step, or return None."""
        for i, (where, message) in enumerate(self.came):
            if (
                where == channel and message["msg_type"] == step["type"]
                and message["parent_header"].get("msg_id") == self.sent[step["of"]]
                and is_part(step.get("content", {}), message["content"])
            ):
                return self.came.pop(i)
        return None

    def wait(self, step):
        deadline = time.monotonic() + PATIENCE
        while self.take(step, step["await"]) is None:
            if time.monotonic() > deadline:
                came = "\n".join(f"{where} {m['msg_type']} {m['content']}" for where, m in self.came)
                sys.exit(f"awaited {step}\ncame:\n{came}")
            self.receive(200)


def is_part(part, whole):
    """Report whether whole has part: each value of a dict, each element of a list."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and is_part(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(is_part(x, y) for y in whole) for x in part)
    return part == whole


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        steps = json.load(file)["steps"]
    manager = KernelManager(kernel_name="gonbatch")
    manager.start_kernel()
    try:
        sockets = Sockets(manager.get_connection_info())
        time.sleep(1)  # For iopub to connect. VS Code instead repeats a request until the first status arrives.
        for step in steps:
            if "send" in step:
                sockets.send(step)
            elif "await" in step:
                sockets.wait(step)
            else:
                sockets.receive(0)
                if sockets.take(step, step["never"]) is not None:
                    sys.exit(f"came, but must not: {step}")
    finally:
        manager.shutdown_kernel(now=True)


main()

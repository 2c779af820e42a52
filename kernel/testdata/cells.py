"""Run cells on the gonbatch kernel and print, as JSON, how each ended.

A cell's end is [status, ename, evalue, output].

A cell that waits is interrupted after three seconds. A kernel that dies is restarted.
"""

import json
import sys
import threading

from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (the kernels' ports)

manager, client = start_new_kernel(kernel_name="gonbatch", startup_timeout=600)
ends = []
for code in json.load(sys.stdin):
    texts = []

    def hook(message):
        content = message["content"]
        if message["msg_type"] == "execute_result":
            texts.append("result " + " ".join(sorted(content["data"])) + ": " + content["data"]["text/plain"])
        if message["msg_type"] == "display_data":
            texts.append("display " + " ".join(sorted(content["data"])) + "\n")
        texts.append(content.get("text", "") + "\n".join(content.get("traceback", [])))

    timer = threading.Timer(3, manager.interrupt_kernel) if "sleep" in code else None
    if timer:
        timer.start()
    reply = client.execute_interactive(code, output_hook=hook, timeout=600)["content"]
    if timer:
        timer.cancel()
    ends.append([reply["status"], reply.get("ename", ""), reply.get("evalue", ""), "".join(texts)])
    if reply.get("ename") == "KernelDied":
        manager.restart_kernel(now=True)
        client.wait_for_ready(timeout=600)
manager.shutdown_kernel()
print(json.dumps(ends))

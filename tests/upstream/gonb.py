"""Run each list of cells in a GoNB of its own, and print what they print, as JSON.

The argument is a JSON list of lists of cells. What is printed has a text for each list: the cells'
output, with "ended" if GoNB ended.
"""

import json
import queue
import sys

from jupyter_client.manager import start_new_kernel


def output(cells):
    manager, client = start_new_kernel(kernel_name="gonb", startup_timeout=300)
    said = []
    try:
        for cell in cells:
            request = client.execute(cell)
            while True:
                try:
                    message = client.get_iopub_msg(timeout=1)
                except queue.Empty:
                    if manager.is_alive():
                        continue
                    return "".join(said) + "ended"
                content = message["content"]
                if message["parent_header"].get("msg_id") != request:
                    continue
                if message["msg_type"] == "stream":
                    said.append(content["text"])
                elif message["msg_type"] == "error":
                    said += content["traceback"]
                elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                    break
    finally:
        manager.shutdown_kernel(now=True)
    return "".join(said)


print(json.dumps([output(cells) for cells in json.loads(sys.argv[1])]))

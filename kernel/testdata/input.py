"""Run cells that read input on the gonbatch kernel, and print the result of each as JSON.

Standard input: a list of {"code", "answers", "expressions"}; answers is null if the client does not
answer requests for input. Or {"raw", "metadata"}: those of an execute_request, as JSON texts.
Standard output: a list of {"status", "text", "passwords", "expressions"}.
"""

import json
import sys

from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (the kernels' ports)

manager, client = start_new_kernel(kernel_name="gonbatch", startup_timeout=600)
ends = []
for cell in json.load(sys.stdin):
    if cell.get("raw"):
        message = client.session.msg("execute_request", metadata=json.loads(cell["metadata"]))
        message["content"] = cell["raw"]
        client.shell_channel.send(message)
        reply = client.get_shell_msg(timeout=600)["content"]
        ends.append({"status": reply["status"], "text": reply.get("ename", ""), "passwords": [], "expressions": {}})
        continue
    texts, passwords, answers = [], [], list(cell.get("answers") or [])

    def show(message):
        texts.append(message["content"].get("text", ""))

    def ask(message):
        passwords.append(message["content"]["password"])
        client.input(answers.pop(0))

    reply = client.execute_interactive(
        cell["code"], output_hook=show, stdin_hook=ask, allow_stdin=cell.get("answers") is not None,
        user_expressions=cell.get("expressions") or {}, timeout=600,
    )["content"]
    ends.append({"status": reply["status"], "text": "".join(texts), "passwords": passwords, "expressions": reply.get("user_expressions", {})})
manager.shutdown_kernel()
print(json.dumps(ends))

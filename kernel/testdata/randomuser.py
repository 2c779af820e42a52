"""Run random cells on the gonbatch kernel, from two front ends, and check them against a model.

Usage: randomuser.py SEED CELLS

Prints "ok", or fails and prints the cells that led to the failure.
"""

import random
import sys
import time

from jupyter_client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (the kernels' ports)

PATIENCE = 600  # seconds
seed, cells = int(sys.argv[1]), int(sys.argv[2])
choose = random.Random(seed)
manager, client = start_new_kernel(kernel_name="gonbatch", startup_timeout=PATIENCE)
log = []


def fail(*what):
    sys.exit(f"seed {seed}: " + " ".join(map(str, what)) + "\ncells:\n" + "\n---\n".join(log[-8:]))


class FrontEnd:
    """A front end with its own sockets."""

    def __init__(self):
        self.client = BlockingKernelClient(connection_file=manager.connection_file)
        self.client.load_connection_file()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    def send(self, code):
        log.append(code)
        return self.client.execute(code, allow_stdin=False)

    def result(self, ident, code):
        """Check the kernel's states, and return the reply to a cell, its streams and its result."""
        reply = self.reply(ident)
        texts, result, states = {"stdout": "", "stderr": ""}, None, []
        while not states or states[-1] != "idle":
            try:
                message = self.client.get_iopub_msg(timeout=PATIENCE)
            except Exception as error:
                fail("no idle of", repr(code), error)
            if message["parent_header"].get("msg_id") != ident:
                continue
            content = message["content"]
            if message["msg_type"] == "status":
                states.append(content["execution_state"])
            elif message["msg_type"] == "stream":
                texts[content["name"]] += content["text"]
            elif message["msg_type"] == "execute_result":
                result = content["data"]["text/plain"]
        if set(states[:-1]) - {"busy"}:  # a concurrent interrupt makes the kernel report it again
            fail("states", states, "of", repr(code))
        return reply, texts, result

    def wait_busy(self, ident):
        """Wait until a cell has begun: an interrupt before that affects no cell."""
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") == ident and message["content"].get("execution_state") == "busy":
                return

    def reply(self, ident):
        while True:
            try:
                message = self.client.get_shell_msg(timeout=PATIENCE)
            except Exception as error:
                fail("no reply", error)
            if message["parent_header"].get("msg_id") == ident:
                return message["content"]


fronts = [FrontEnd(), FrontEnd()]


class Model:
    """The variables that the cells have declared."""

    def __init__(self):
        self.vars, self.kept, self.count = {}, {}, 0


model = Model()


def name():
    return choose.choice("abcdefgh") + choose.choice(["", "1", "ä", "名"])


def declare():
    """Declare a variable with a number, or redeclare it with another number."""
    variable, value = name(), choose.randrange(1000)
    model.vars[variable] = value
    said = "" if model.kept.pop(variable, False) else f"%keep -d {variable}: {variable} is not kept\n"
    comment = choose.choice(["", "// c\n", "/* %%\n!false\n*/\n" if False else "/* a\nb */\n"])
    return f"{comment}%keep -d {variable}\nvar {variable} = {value}\n", "ok", said, None


def expression():
    if not model.vars:
        return declare()
    variable = choose.choice(list(model.vars))
    return f"{variable}*2 + 1 // {variable}", "ok", "", str(model.vars[variable] * 2 + 1)


def keep():
    if not model.vars:
        return declare()
    variable = choose.choice(list(model.vars))
    model.vars[variable] += 7
    model.kept[variable] = True
    return f"%keep {variable}\n%%\n{variable} = {model.vars[variable]}", "ok", "", None


def change():
    """Change a variable. The change lasts only if the variable is kept."""
    if not model.vars:
        return declare()
    variable = choose.choice(list(model.vars))
    before = model.vars[variable]
    if variable in model.kept:
        model.vars[variable] += 1
    return f"%%\n{variable}++\nfmt.Println({variable})", "ok", f"{before + 1}\n", None


def output():
    """Print a lot of output, possibly with characters of several bytes."""
    char, count = choose.choice(["x", "ä", "名", "𝄞"]), choose.randrange(60_000)
    return f'%%\nfmt.Print("a" + strings.Repeat("{char}", {count}))', "ok", "a" + char * count, None


def lines():
    count = choose.randrange(3000)
    return f"%%\nfor i := range {count} {{\n\tfmt.Println(i)\n}}", "ok", "".join(f"{i}\n" for i in range(count)), None


def shell():
    status = choose.choice([0, 0, 1, 3])
    text = choose.choice(["x", "ä名", "a  b", "'", '"'])
    quoted = text.replace("'", "'\"'\"'")
    return f"!printf '%s' '{quoted}'; exit {status}", "ok" if status == 0 else "error", text, None


def panics():
    return '%%\nfmt.Print("before")\npanic("boom")', "error", "before", None


def mistake():
    return "%%\nfmt.Println(1)\nundefined_name()", "error", "", None


def raw():
    text = choose.choice(["a\\nb", "\\t", "x %% y", " %% ", " !no", "// c", "/* c", "\\", "'", '"'])
    return f"%%\nfmt.Print(`{text}`, 1) // `\n", "ok", f"{text}1" if text[-1:].isdigit() else text + "1", None


def writefile():
    return "%%writefile f.txt\n%%\n!x\nä", "ok", None, None


def interrupted():
    return choose.choice(["%%\ntime.Sleep(time.Hour)", "!sleep 3600", "%%bash\nsleep 3600", "%%\nfor {\n}"]), "interrupt", "", None


kinds = [declare, declare, expression, expression, keep, change, output, lines, shell, panics, mistake, raw, writefile, interrupted]


def check(front, ident, cell):
    code, status, text, result = cell
    reply, texts, got = front.result(ident, code)
    if status == "interrupt":
        if reply["status"] != "error" or reply["ename"] != "Interrupted":
            fail("an interrupted cell", repr(code), reply)
        return
    if reply["status"] != status:
        fail("status", reply, "of", repr(code), "want", status, texts["stderr"][-2000:])
    if text is not None and texts["stdout"] != text:
        at = next((i for i, (a, b) in enumerate(zip(texts["stdout"], text)) if a != b), min(len(text), len(texts["stdout"])))
        fail("put out", len(texts["stdout"]), "want", len(text), "at", at, repr(texts["stdout"][max(0, at - 20):at + 20]), "of", repr(code[:200]))
    if got != result:
        fail("result", got, "want", result, "of", repr(code))
    if reply["execution_count"] != model.count + 1:
        fail("count", reply["execution_count"], "want", model.count + 1)


for i in range(cells):
    front = choose.choice(fronts)
    cell = choose.choice(kinds)()
    if choose.random() < 0.3:
        cell = (cell[0].replace("\n", "\r\n"), *cell[1:])
    ident = front.send(cell[0])
    if cell[1] == "interrupt":
        front.wait_busy(ident)
        time.sleep(choose.choice([0.0, 0.02, 0.1, 0.3, 1, 2]))
        manager.interrupt_kernel()
        check(front, ident, cell)
    else:
        check(front, ident, cell)
    model.count += 1
for front in fronts:
    front.client.stop_channels()
manager.shutdown_kernel()
print("ok")

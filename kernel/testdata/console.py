"""Play a user of `jupyter console` with the gonbatch kernel, and print what each step showed, as JSON.

Standard input: a list of {"type": keys, "want": regular expression}; "^C" interrupts, "^D" ends the
console. If the text that a step wants does not appear in time, the program fails and quotes the screen.
"""

import json
import os
import re
import sys
import time

import pexpect

PATIENCE = 600  # seconds
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")

environment = dict(os.environ, TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1", COLUMNS="120", LINES="40")
console = pexpect.spawn(
    sys.executable, ["-m", "jupyter_console", "--kernel=gonbatch", "--ZMQTerminalInteractiveShell.kernel_timeout=600"],
    env=environment, dimensions=(40, 120), encoding="utf-8", timeout=1,
)
screen = ""


def wait(pattern):
    """Read until the output since the last call matches the pattern, and return it."""
    global screen
    deadline = time.monotonic() + PATIENCE
    while not re.search(pattern, screen, re.DOTALL):
        if time.monotonic() > deadline:
            sys.exit(f"waited for {pattern!r}; the screen:\n{screen}")
        try:
            screen = ESCAPES.sub("", screen + console.read_nonblocking(4096, timeout=0.5))
        except pexpect.TIMEOUT:
            pass
        except pexpect.EOF:
            if not re.search(pattern, screen, re.DOTALL):
                sys.exit(f"the console ended; waited for {pattern!r}; the screen:\n{screen}")
    shown, screen = screen, ""
    return shown


shown = [wait(r"In \[1\]: ")]
for step in json.load(sys.stdin):
    if step["type"] == "^C":
        console.sendintr()
    elif step["type"] == "^D":
        console.sendeof()
    else:
        console.send(step["type"])
    shown.append(wait(step["want"]))
console.expect(pexpect.EOF, timeout=PATIENCE)
print(json.dumps(shown))

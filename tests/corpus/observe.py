"""Execute a notebook cell by cell with nbclient and print what each cell did.

Usage: observe.py [--go-on] NOTEBOOK KERNEL FOLDER SECONDS [PRELUDE]

Prints one JSON object: {"cells": [{"number": 1, "status": "ok", "stdout": "", "stderr": "",
"error": ""}]}, with an element for each code cell and its position among all cells. A cell after one
that failed is "not run", as is a cell tagged skip-execution. PRELUDE is code that the kernel
executes before the first cell. FOLDER is the kernel's working folder. The notebook file does not
change.

With --go-on, cells after one that failed run too, as for a user who runs one after the other; a cell
that takes too long is interrupted; and "rich" has the kinds of what a cell shows besides text.
"""

import argparse
import asyncio
import json

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

import ports  # noqa: F401 (the kernels' ports)

PATIENCE = 3  # A cell is given up after this many time limits.


def stream(cell, name):
    return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == name)


def failure(cell):
    return "\n".join(f"{o.ename}: {o.evalue}" for o in cell.outputs if o.output_type == "error")


def rich(cell):
    shown = (o.data for o in cell.outputs if o.output_type in ("display_data", "execute_result"))
    return " ".join(sorted({kind for data in shown for kind in data if data[kind] and kind != "text/plain"}))


async def prepare(client, prelude):
    reply = await client.kc.execute(prelude, silent=True, store_history=False, reply=True, timeout=600)
    if reply["content"]["status"] != "ok":
        raise SystemExit(f"the prelude failed: {reply['content']}")


async def run(client, cell, index, args):
    """Run one cell and return its status, and whether the notebook ends here."""
    try:
        execution = client.async_execute_cell(cell, index)
        if args.go_on:
            execution = asyncio.wait_for(execution, PATIENCE * args.seconds)
        await execution
        return ("error" if failure(cell) else "ok"), False
    except CellExecutionError:
        return "error", True
    except (TimeoutError, asyncio.TimeoutError, CellTimeoutError, DeadKernelError):
        if not args.go_on:
            raise
        return "error", True


async def observe(notebook, args):
    client = NotebookClient(
        notebook,
        kernel_name=args.kernel,
        timeout=args.seconds,
        startup_timeout=600,
        resources={"metadata": {"path": args.folder}},
        allow_errors=args.go_on,
        interrupt_on_timeout=args.go_on,
    )
    cells, stopped = [], False
    async with client.async_setup_kernel():
        if args.prelude:
            await prepare(client, args.prelude)
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            status = "not run"
            if not stopped and client.skip_cells_with_tag not in cell.metadata.get("tags", []):
                status, stopped = await run(client, cell, index, args)
            seen = {
                "number": index + 1,
                "status": status,
                "stdout": stream(cell, "stdout"),
                "stderr": stream(cell, "stderr"),
                "error": failure(cell),
            }
            if args.go_on:
                seen["rich"] = rich(cell)
            cells.append(seen)
    return cells


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--go-on", action="store_true")
    parser.add_argument("notebook")
    parser.add_argument("kernel")
    parser.add_argument("folder")
    parser.add_argument("seconds", type=int)
    parser.add_argument("prelude", nargs="?", default="")
    args = parser.parse_args()
    notebook = nbformat.read(args.notebook, as_version=4)
    print(json.dumps({"cells": asyncio.run(observe(notebook, args))}))


main()

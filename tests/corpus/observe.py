"""Execute a notebook cell by cell with nbclient and print what each cell did.

Usage: observe.py NOTEBOOK KERNEL FOLDER SECONDS [PRELUDE]

Prints one JSON object: {"cells": [{"number": 1, "status": "ok", "stdout": "", "stderr": "", "error": ""}]}: one for each code cell,
with its position among all cells. A cell behind one that failed is "not run", as is one tagged skip-execution. PRELUDE is code
that the kernel executes before the first cell. The notebook file is not changed; FOLDER is the kernel's working folder.
"""

import asyncio
import json
import sys

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def stream(cell, name):
    return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == name)


def failure(cell):
    return "\n".join(f"{o.ename}: {o.evalue}" for o in cell.outputs if o.output_type == "error")


async def prepare(client, prelude):
    reply = await client.kc.execute(prelude, silent=True, store_history=False, reply=True, timeout=600)
    if reply["content"]["status"] != "ok":
        raise SystemExit(f"the prelude failed: {reply['content']}")


async def observe(notebook, kernel, folder, seconds, prelude):
    client = NotebookClient(
        notebook, kernel_name=kernel, timeout=seconds, startup_timeout=600, resources={"metadata": {"path": folder}}
    )
    cells, stopped = [], False
    async with client.async_setup_kernel():
        if prelude:
            await prepare(client, prelude)
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            status = "not run"
            if not stopped and client.skip_cells_with_tag not in cell.metadata.get("tags", []):
                try:
                    await client.async_execute_cell(cell, index)
                    status = "error" if failure(cell) else "ok"
                except CellExecutionError:
                    status, stopped = "error", True
            cells.append(
                {
                    "number": index + 1,
                    "status": status,
                    "stdout": stream(cell, "stdout"),
                    "stderr": stream(cell, "stderr"),
                    "error": failure(cell),
                }
            )
    return cells


def main():
    path, kernel, folder, seconds, *prelude = sys.argv[1:]
    notebook = nbformat.read(path, as_version=4)
    cells = asyncio.run(observe(notebook, kernel, folder, int(seconds), "".join(prelude)))
    print(json.dumps({"cells": cells}))


main()

"""Execute a notebook with nbclient and print what its cells put out.

Usage: execute.py NOTEBOOK KERNEL FOLDER SECONDS

Prints one JSON object: {"outputs": [text of each code cell], "stderr": [what of it is from stderr], "pictures": [[each code cell's PNGs in base64]], "error": text or null}. The notebook file is not changed; FOLDER is
the kernel's working folder.
"""

import json
import sys

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import ports  # noqa: F401 (the kernels' ports)


def text_of(output):
    """The plain text of one output of a cell."""
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return "\n".join([f"{output.ename}: {output.evalue}", *output.traceback])
    data = output.data
    return "".join(data.get("text/plain", data.get("text/html", data.get("text/markdown", ""))))


def pictures_of(cell):
    """The PNGs that a cell shows, in base64."""
    return [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]


def main():
    path, kernel, folder, seconds = sys.argv[1:]
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        kernel_name=kernel,
        timeout=int(seconds),
        startup_timeout=600,
        resources={"metadata": {"path": folder}},
    )
    error = None
    try:
        client.execute()
    except CellExecutionError as failure:
        error = str(failure)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    texts = ["".join(map(text_of, cell.outputs)) for cell in cells]
    stderr = ["".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stderr") for cell in cells]
    print(json.dumps({"outputs": texts, "stderr": stderr, "pictures": [pictures_of(cell) for cell in cells], "error": error}))


main()

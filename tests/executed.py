"""Validate executed notebooks with nbformat, render them with nbconvert, and print their cells.

Usage: executed.py < NAMES

For each line of its input, the name of a notebook, it prints a line with a JSON object: {"cells": [{"count", "status", "text", "types", "error"}], for the code
cells, "metadata": the notebook's, "html": the page}; or {"failure": why it can't}.
"""

import json
import sys
import traceback

import nbformat
from nbconvert import HTMLExporter


def describe(cell):
    """Return a summary of a code cell's output."""
    error = [f"{o.ename}: {o.evalue}\n" + "\n".join(o.traceback) for o in cell.outputs if o.output_type == "error"]
    return {
        "count": cell.execution_count or 0,
        "status": cell.metadata.papermill.status,
        "text": "".join(f"{o.name}: {o.text}" for o in cell.outputs if o.output_type == "stream"),
        "types": sorted(mime for o in cell.outputs if o.output_type == "display_data" for mime in o.data),
        "error": "".join(error),
    }


def read(name):
    """Return what Jupyter's tools find in a notebook."""
    notebook = nbformat.read(name, as_version=4)
    nbformat.validate(notebook)
    page, _ = HTMLExporter().from_notebook_node(notebook)
    cells = [describe(cell) for cell in notebook.cells if cell.cell_type == "code"]
    return {"cells": cells, "metadata": notebook.metadata, "html": page}


for line in sys.stdin:
    try:
        answer = read(line.rstrip("\n"))
    except Exception:
        answer = {"failure": traceback.format_exc()}
    print(json.dumps(answer), flush=True)

"""Validate an executed notebook with nbformat, render it with nbconvert, and print its cells.

Usage: executed.py NOTEBOOK

Prints one JSON object: {"cells": [{"count", "status", "text", "types", "error"}], for the code
cells, "metadata": the notebook's, "html": the page}.
"""

import json
import sys

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


def main():
    notebook = nbformat.read(sys.argv[1], as_version=4)
    nbformat.validate(notebook)
    page, _ = HTMLExporter().from_notebook_node(notebook)
    cells = [describe(cell) for cell in notebook.cells if cell.cell_type == "code"]
    print(json.dumps({"cells": cells, "metadata": notebook.metadata, "html": page}))


main()

"""A sweep with papermill and nbconvert in one process: papermill_sweep.py NOTEBOOK FOLDER BEGIN N."""

import pathlib
import subprocess
import sys

import papermill
from nbconvert.exporters import PythonExporter

notebook, folder, begin, n = sys.argv[1:]
exporter = PythonExporter()
for seed in range(1, int(n) + 1):
    prepared = pathlib.Path(folder, f"{seed}.ipynb")
    papermill.execute_notebook(notebook, str(prepared), {"seed": seed}, prepare_only=True, progress_bar=False)
    script = prepared.with_suffix(".py")
    script.write_text(exporter.from_filename(str(prepared))[0])
    subprocess.run(["sbatch", "--begin", begin, "--wrap", f"python {script}"], check=True, stdout=subprocess.DEVNULL)

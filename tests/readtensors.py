"""Read a safetensors file with Python's own library, print it as JSON, and write a copy.

Usage: readtensors.py PATH COPY
"""

import base64
import json
import sys

import ml_dtypes  # noqa: F401  It adds bfloat16 to NumPy.
import numpy
from safetensors import safe_open
from safetensors.numpy import save_file

path, copy = sys.argv[1:]
found, tensors = {}, {}
with safe_open(path, framework="np") as f:
    metadata = f.metadata()
    for name in f.keys():
        tensor = tensors[name] = f.get_tensor(name)
        found[name] = {
            "dtype": str(tensor.dtype),
            "shape": list(tensor.shape),
            "bytes": base64.b64encode(numpy.ascontiguousarray(tensor).tobytes()).decode(),
        }
save_file(tensors, copy, metadata=metadata)
json.dump({"tensors": found, "metadata": metadata}, sys.stdout)

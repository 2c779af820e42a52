"""Copy and save tensors as PyTorch programs do, and print the seconds of each as one JSON line.

It uses one thread. The time of a save includes fsync; files are read from the page cache.
"""

import argparse
import json
import os
import time

import safetensors
import safetensors.torch
import torch


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def sync(path):
    with open(path, "rb") as f:
        os.fsync(f.fileno())


def torch_save(tensors, path):
    with open(path, "wb") as f:
        torch.save(tensors, f)
        f.flush()
        os.fsync(f.fileno())


def safetensors_save(tensors, path):
    safetensors.torch.save_file(tensors, path)
    sync(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensors", type=int)
    parser.add_argument("--side", type=int)
    parser.add_argument("folder")
    args = parser.parse_args()
    torch.set_num_threads(1)  # More are slower if other work runs.
    tensors = {f"tensor_{i}": torch.arange(args.side**2, dtype=torch.float32).reshape(args.side, args.side) * (i + 1) for i in range(args.tensors)}

    found = {"version": torch.__version__, "safetensors_version": safetensors.__version__}
    copies = {}
    found["copy_first"] = seconds(lambda: copies.update({name: t.detach().clone() for name, t in tensors.items()}))
    found["copy"] = seconds(lambda: [copies[name].copy_(t) for name, t in tensors.items()])
    saves = {"torch": torch_save, "safetensors": safetensors_save}
    loads = {"torch": lambda path: torch.load(path, weights_only=True), "safetensors": safetensors.torch.load_file}
    for kind in saves:
        path = os.path.join(args.folder, kind)
        os.sync()
        found[f"{kind}_save"] = seconds(lambda: saves[kind](copies, path))
        # This reads every byte, because safetensors only maps the file.
        found[f"{kind}_load"] = seconds(lambda: [t.view(torch.uint8).max() for t in loads[kind](path).values()])
        os.remove(path)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""Time torch.distributed.all_reduce over gloo, as bench/allreduce does.

The environment has WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT, as with torchrun. Each argument is
BYTES:CHAIN:BLOCKS. Rank 0 prints one JSON line.
"""

import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist


def take(size, chain, blocks, rank, world):
    """Return the median time of an all-reduce, in microseconds."""
    values = torch.full((size // 4,), float(rank + 1))
    dist.all_reduce(values)
    assert bool((values == world * (world + 1) / 2).all()), f"the sum is {values}"
    times = []
    for i in range(1 + blocks):
        start = time.perf_counter()
        for _ in range(chain):
            dist.all_reduce(values)
        if i > 0:  # The first block is a warm-up.
            times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times) / chain


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    micros = [take(*map(int, turn.split(":")), rank, world) for turn in sys.argv[1:]]
    if rank == 0:
        print(json.dumps({"version": torch.__version__, "micros": micros}))
    dist.destroy_process_group()


main()

"""The CNN's training step in PyTorch, data-parallel by DistributedDataParallel over gloo.

The environment has WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT, as torchrun sets them. Rank 0 prints one JSON line.
"""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WARM_UP = 5


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 128), nn.ReLU(), nn.Linear(128, 10),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64, help="images a rank")
    args = parser.parse_args()
    world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = cnn()
    if world > 1:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss_of = nn.CrossEntropyLoss()
    images, labels = torch.rand(args.batch, 1, 28, 28), torch.arange(args.batch) % 10

    for step in range(WARM_UP + args.steps):
        if step == WARM_UP:
            start = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()
    seconds = time.perf_counter() - start

    if rank == 0:
        print(json.dumps({
            "version": torch.__version__,
            "images_per_second": args.batch * world * args.steps / seconds,
            "ms_per_step": seconds / args.steps * 1e3,
        }))
    if world > 1:
        dist.destroy_process_group()


main()

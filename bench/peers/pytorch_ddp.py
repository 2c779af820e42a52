"""A network's training step in PyTorch, data-parallel with DistributedDataParallel over gloo.

The environment has WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT, as with torchrun. Rank 0 prints
one JSON line.

--best uses the settings that were fastest on CPUs: channels last, and the fused optimizer. The benchmark
then also makes malloc keep its memory. (With torch.compile, a step takes twice as long.)
"""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from clock import Clock
from networks import NETWORKS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=NETWORKS, default="cnn")
    parser.add_argument("--best", action="store_true", help="use the fastest settings in place of the defaults")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda for one rank on a GPU")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="inputs a rank")
    args = parser.parse_args()
    world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = args.best  # As XLA does.
    network, make_optimizer, make_inputs = NETWORKS[args.model]
    model, (inputs, labels) = network(), make_inputs(args.batch)
    if args.best and inputs.dim() == 4:
        model, inputs = model.to(memory_format=torch.channels_last), inputs.contiguous(memory_format=torch.channels_last)
    model, inputs, labels = model.to(args.device), inputs.to(args.device), labels.to(args.device)
    if world > 1:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    optimizer = make_optimizer(model.parameters(), args.best or None)
    loss_of = nn.CrossEntropyLoss()

    clock = Clock()
    for _ in range(args.warm_up + args.steps):
        optimizer.zero_grad()
        loss = loss_of(model(inputs), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        clock.tick()

    if rank == 0:
        print(json.dumps({"version": torch.__version__, **clock.figures(args.batch * world, args.warm_up)}))
    if world > 1:
        dist.destroy_process_group()


main()

"""A network's training step in PyTorch, data-parallel with DistributedDataParallel over gloo.

The environment has WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT, as with torchrun. Rank 0 prints
one JSON line.

--best uses the settings that were fastest on CPUs: images in channels-last order, the fused
optimizer, and in DDP gradients that are views of its buckets and a static graph. (zero_grad sets
gradients to None by default, and on CPUs loss.item() waits for nothing.) The benchmark then also
makes malloc keep its memory, in huge pages.

--compile is torch.compile. It is not among the best settings, because it made no step faster: with
them and one rank, on a busy machine, the processor time of a step was 76 ms instead of 45 for the
CNN, 1,235 instead of 1,149 for the GPT, and 778 instead of 773 for the MLP.

--zero1 divides the optimizer's state over the ranks: ZeroRedundancyOptimizer.
"""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from clock import Clock
from networks import NETWORKS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=NETWORKS, default="cnn")
    parser.add_argument("--best", action="store_true", help="use the fastest settings in place of the defaults")
    parser.add_argument("--compile", action="store_true", help="compile the step's model")
    parser.add_argument("--zero1", action="store_true", help="divide the optimizer's state over the ranks")
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
        # Every network here uses all of its parameters in the same way in each step.
        model = DistributedDataParallel(model, **(dict(gradient_as_bucket_view=True, static_graph=True) if args.best else {}))
    if args.compile:
        model = torch.compile(model)
    optimizer_of = lambda parameters: make_optimizer(parameters, args.best or None)
    if args.zero1:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_of, parameters_as_bucket_view=True)
    else:
        optimizer = optimizer_of(model.parameters())
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

"""The CNN's training in PyTorch, on random images.

It uses Lightning's Trainer, or a hand-written loop with the same model and loader, or both in turns,
step by step.

The environment has WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT, as with torchrun. Rank 0 prints
one JSON line.
"""

import argparse
import json
import os
import resource
import statistics
import tempfile
import time

# If this is set, Lightning knows that it need not start the other ranks itself.
os.environ["LOCAL_RANK"] = os.environ["RANK"]

import lightning
import torch
import torch.distributed as dist
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

WARM_UP = 5
IMAGES = 10_000


def network(name):
    if name == "linear":
        return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 10))
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 128), nn.ReLU(), nn.Linear(128, 10),
    )


def cpu_time():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Clock:
    def __init__(self, steps):
        self.done, self.last = 0, WARM_UP + steps

    def step(self):
        self.done += 1
        if self.done == WARM_UP:
            self.start, self.cpu = time.perf_counter(), cpu_time()
        if self.done == self.last:
            self.seconds, self.cpu = time.perf_counter() - self.start, cpu_time() - self.cpu
        return self.done >= self.last


class Pairs(lightning.Callback):
    """Take a bare step after each of Lightning's, and record how much longer Lightning's takes."""

    def __init__(self, steps):
        self.steps, self.ended, self.over = steps, None, []

    def on_train_batch_end(self, *_):
        began = time.perf_counter()
        next(self.steps)
        ended = time.perf_counter()
        if self.ended is not None:
            self.over.append((began - self.ended) - (ended - began))
        self.ended = ended


class Digits(lightning.LightningModule):
    def __init__(self, model, clock):
        super().__init__()
        self.model, self.clock, self.loss_of = model, clock, nn.CrossEntropyLoss()

    def training_step(self, batch, _):
        images, labels = batch
        loss = self.loss_of(self.model(images), labels)
        self.log("train/loss", loss)
        return loss

    def on_train_batch_end(self, *_):
        self.clock.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


def loader(batch, world, rank, own_sampler):
    data = TensorDataset(torch.rand(IMAGES, 1, 28, 28), torch.arange(IMAGES) % 10)
    if own_sampler and world > 1:
        return DataLoader(data, batch, sampler=DistributedSampler(data, world, rank), drop_last=True)
    return DataLoader(data, batch, shuffle=True, drop_last=True)


def bare(model, clock, args, world, rank):
    if world > 1:
        dist.init_process_group("gloo")
    for _ in bare_steps(model, args, world, rank):
        if clock.step():
            return


def bare_steps(model, args, world, rank):
    if world > 1:
        model = DistributedDataParallel(model)
    optimizer, loss_of = torch.optim.Adam(model.parameters(), 1e-3), nn.CrossEntropyLoss()
    batches = loader(args.batch, world, rank, True)
    while True:
        for images, labels in batches:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            loss.item()
            yield


def by_lightning(model, clock, args, world, rank, callbacks=()):
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu", devices=world, strategy="ddp" if world > 1 else "auto", max_steps=clock.last + 1, max_epochs=-1,
            default_root_dir=folder, logger=CSVLogger(folder), log_every_n_steps=50, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, callbacks=list(callbacks),
        )
        trainer.fit(Digits(model, clock), loader(args.batch, world, rank, False))


def in_turns(model, clock, args, world, rank):
    pairs = Pairs(bare_steps(network(args.model), args, world, rank))
    by_lightning(model, clock, args, world, rank, [pairs])
    clock.over = pairs.over[WARM_UP:]


LOOPS = {"bare": bare, "trainer": by_lightning, "both": in_turns}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--loop", choices=sorted(LOOPS), default="trainer")
    parser.add_argument("--model", choices=["cnn", "linear"], default="cnn")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64, help="images a rank")
    args = parser.parse_args()
    world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])

    torch.set_num_threads(1)
    torch.manual_seed(0)
    clock = Clock(args.steps)
    LOOPS[args.loop](network(args.model), clock, args, world, rank)
    if rank == 0:
        over = {}
        if args.loop == "both":
            over = {"over_ms": statistics.median(clock.over) * 1e3, "mean_over_ms": statistics.mean(clock.over) * 1e3}
            clock.seconds, clock.cpu = clock.seconds / 2, clock.cpu / 2  # A step is half of a turn.
        print(json.dumps({
            **over,
            "version": torch.__version__ if args.loop == "bare" else lightning.__version__,
            "images_per_second": args.batch * world * args.steps / clock.seconds,
            "ms_per_step": clock.seconds / args.steps * 1e3,
            "cpu_ms_per_step": clock.cpu / args.steps * 1e3,
        }))
    if world > 1 and dist.is_initialized():
        dist.destroy_process_group()


main()

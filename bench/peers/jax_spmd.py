"""A network's training step in JAX, data-parallel with SPMD sharding and gloo collectives.

The environment has WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT, as with torchrun. Rank 0 prints
one JSON line.
"""

import argparse
import json
import os

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from clock import Clock
from jax_networks import NETWORKS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=NETWORKS, default="cnn")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="inputs a rank")
    args = parser.parse_args()
    env = os.environ
    world, rank = int(env["WORLD_SIZE"]), int(env["RANK"])
    if world > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}", world, rank)

    network, (init, update), make_inputs = NETWORKS[args.model]
    mesh = Mesh(np.array(jax.devices()), ("data",))
    replicated, sharded = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    place = lambda sharding: lambda x: jax.make_array_from_process_local_data(sharding, np.asarray(x))
    params, buffers = network.init(np.random.default_rng(0))
    state = jax.tree.map(place(replicated), (params, buffers, init(params)))
    del params, buffers
    inputs, labels = map(place(sharded), make_inputs(args.batch))

    def train_step(state, inputs, labels):
        params, buffers, optimizer = state
        (loss, buffers), grads = jax.value_and_grad(network.loss, has_aux=True)(params, buffers, inputs, labels)
        params, optimizer = update(params, grads, optimizer)
        return (params, buffers, optimizer), loss

    step_fn = jax.jit(train_step, donate_argnums=0, out_shardings=(replicated, replicated))
    clock = Clock()
    for _ in range(args.warm_up + args.steps):
        state, loss = step_fn(state, inputs, labels)
        jax.block_until_ready(loss)
        clock.tick()

    if rank == 0:
        print(json.dumps({"version": jax.__version__, **clock.figures(args.batch * world, args.warm_up)}))


main()

"""The CNN's training step in JAX, data-parallel with SPMD sharding and gloo collectives.

The environment has WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT, as with torchrun. Rank 0 prints
one JSON line.
"""

import argparse
import json
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from clock import Clock

LEARNING_RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-7


def initial_params():
    conv1, conv2, dense1, dense2 = jax.random.split(jax.random.key(0), 4)
    normal = jax.random.normal
    return {
        "conv1": normal(conv1, (3, 3, 1, 32)) * 0.1, "conv1_bias": jnp.zeros(32),
        "conv2": normal(conv2, (3, 3, 32, 64)) * 0.05, "conv2_bias": jnp.zeros(64),
        "dense1": normal(dense1, (7 * 7 * 64, 128)) * 0.02, "dense1_bias": jnp.zeros(128),
        "dense2": normal(dense2, (128, 10)) * 0.1, "dense2_bias": jnp.zeros(10),
    }


def conv_relu(x, weights, bias):
    return jax.nn.relu(lax.conv_general_dilated(x, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias)


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def loss_of(p, images, labels):
    x = max_pool(conv_relu(images, p["conv1"], p["conv1_bias"]))
    x = max_pool(conv_relu(x, p["conv2"], p["conv2_bias"]))
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ p["dense1"] + p["dense1_bias"])
    logits = x @ p["dense2"] + p["dense2_bias"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def train_step(state, images, labels):
    """Take one step of Adam."""
    params, mean, variance, count = state
    loss, grads = jax.value_and_grad(loss_of)(params, images, labels)
    count = count + 1
    mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, mean, grads)
    variance = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, variance, grads)
    scale1, scale2 = 1 / (1 - BETA1**count), 1 / (1 - BETA2**count)
    params = jax.tree.map(
        lambda p, m, v: p - LEARNING_RATE * (m * scale1) / (jnp.sqrt(v * scale2) + EPSILON), params, mean, variance)
    return (params, mean, variance, count), loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="images a rank")
    args = parser.parse_args()
    env = os.environ
    world, rank = int(env["WORLD_SIZE"]), int(env["RANK"])
    if world > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}", world, rank)

    mesh = Mesh(np.array(jax.devices()), ("data",))
    replicated, sharded = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    place = lambda sharding: lambda x: jax.make_array_from_process_local_data(sharding, np.asarray(x))
    params = initial_params()
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = jax.tree.map(place(replicated), (params, zeros, zeros, jnp.float32(0)))
    images = place(sharded)(np.random.rand(args.batch, 28, 28, 1).astype("float32"))
    labels = place(sharded)((np.arange(args.batch) % 10).astype("int32"))
    step_fn = jax.jit(train_step, donate_argnums=0, out_shardings=(replicated, replicated))

    clock = Clock()
    for _ in range(args.warm_up + args.steps):
        state, loss = step_fn(state, images, labels)
        jax.block_until_ready(loss)
        clock.tick()

    if rank == 0:
        print(json.dumps({"version": jax.__version__, **clock.figures(args.batch * world, args.warm_up)}))


main()

"""The networks of the benchmark in JAX, the same as those of bench/step."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

MLP_WIDTH = 4096
VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 256, 256, 6, 6, 384


def weights(rng, *shape, scale=None):
    """Return normally distributed weights, by default as He et al. (2015)."""
    scale = scale or (2 / np.prod(shape[:-1])) ** 0.5
    return jnp.asarray(rng.standard_normal(shape, dtype="float32") * scale)


def layer(rng, *shape, scale=None):
    return weights(rng, *shape, scale=scale), jnp.zeros(shape[-1])


def dense(p, x):
    return x @ p[0] + p[1]


def convolution(w, x, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def class_loss(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


class CNN:
    def init(self, rng):
        return [layer(rng, 3, 3, 1, 32), layer(rng, 3, 3, 32, 64), layer(rng, 7 * 7 * 64, 128), layer(rng, 128, 10)], ()

    def loss(self, params, state, images, labels):
        x = images
        for w, b in params[:2]:
            x = jax.nn.relu(convolution(w, x) + b)
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = jax.nn.relu(dense(params[2], x.reshape(x.shape[0], -1)))
        return class_loss(dense(params[3], x), labels), state


class ResNet18:
    WIDTHS = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))

    def init(self, rng):
        params, state = {}, {}

        def add(name, *shape):
            params[name] = weights(rng, *shape), jnp.ones(shape[-1]), jnp.zeros(shape[-1])
            state[name] = jnp.zeros(shape[-1]), jnp.ones(shape[-1])

        add("stem", 3, 3, 3, 64)
        inputs = 64
        for i, (outputs, stride) in enumerate(self.WIDTHS):
            add(f"{i}a", 3, 3, inputs, outputs)
            add(f"{i}b", 3, 3, outputs, outputs)
            if stride != 1 or inputs != outputs:
                add(f"{i}s", 1, 1, inputs, outputs)
            inputs = outputs
        params["dense"] = layer(rng, 512, 10)
        return params, state

    def loss(self, params, state, images, labels):
        new = {}

        def convolved(name, x, stride=1):
            w, scale, shift = params[name]
            y = convolution(w, x, stride)
            mean, variance = jnp.mean(y, (0, 1, 2)), jnp.var(y, (0, 1, 2))
            new[name] = tuple(0.9 * old + 0.1 * now for old, now in zip(state[name], (mean, variance)))
            return (y - mean) * (lax.rsqrt(variance + 1e-5) * scale) + shift

        x = jax.nn.relu(convolved("stem", images))
        for i, (_, stride) in enumerate(self.WIDTHS):
            y = convolved(f"{i}b", jax.nn.relu(convolved(f"{i}a", x, stride)))
            x = jax.nn.relu(y + (convolved(f"{i}s", x, stride) if f"{i}s" in params else x))
        return class_loss(dense(params["dense"], jnp.mean(x, (1, 2))), labels), new


class MLP:
    def init(self, rng):
        return [layer(rng, MLP_WIDTH, MLP_WIDTH) for _ in range(6)] + [layer(rng, MLP_WIDTH, 10)], ()

    def loss(self, params, state, x, labels):
        for p in params[:-1]:
            x = jax.nn.relu(dense(p, x))
        return class_loss(dense(params[-1], x), labels), state


def normalized(p, x):
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p[0] + p[1]


def rotated(x, cos, sin):
    """Rotate the pairs of x by the angles of their places (Su et al., RoFormer, 2021)."""
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate((a * cos - b * sin, b * cos + a * sin), -1)


class GPT:
    def init(self, rng):
        norm = lambda: (jnp.ones(WIDTH), jnp.zeros(WIDTH))
        decoder = lambda: {
            "norm1": norm(), "qkv": layer(rng, WIDTH, 3 * WIDTH, scale=0.02), "attended": layer(rng, WIDTH, WIDTH, scale=0.006),
            "norm2": norm(), "hidden": layer(rng, WIDTH, 4 * WIDTH, scale=0.02), "projection": layer(rng, 4 * WIDTH, WIDTH, scale=0.006),
        }
        return {"tokens": weights(rng, VOCABULARY, WIDTH, scale=0.02), "layers": [decoder() for _ in range(LAYERS)], "last": norm()}, ()

    def attention(self, p, x, cos, sin):
        batch, n, _ = x.shape
        qkv = dense(p["qkv"], normalized(p["norm1"], x)).reshape(batch, n, 3, HEADS, WIDTH // HEADS)
        q, k, v = (qkv[:, :, i] for i in range(3))
        y = jax.nn.dot_product_attention(rotated(q, cos, sin), rotated(k, cos, sin), v, is_causal=True)
        return dense(p["attended"], y.reshape(batch, n, WIDTH))

    def loss(self, params, state, tokens, labels):
        pairs = WIDTH // HEADS // 2
        angles = jnp.arange(CONTEXT)[:, None] * 10000 ** (-jnp.arange(pairs) / pairs)
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        x = params["tokens"][tokens]
        for p in params["layers"]:
            x = x + self.attention(p, x, cos, sin)
            x = x + dense(p["projection"], jax.nn.gelu(dense(p["hidden"], normalized(p["norm2"], x))))
        return class_loss(normalized(params["last"], x) @ params["tokens"].T, labels), state


def adam(rate):
    """Kingma and Ba (2014)."""

    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return zeros, zeros, jnp.float32(0)

    def update(params, grads, state):
        mean, variance, count = state
        count = count + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        variance = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, variance, grads)
        scale1, scale2 = 1 / (1 - 0.9**count), 1 / (1 - 0.999**count)
        step = lambda p, m, v: p - rate * (m * scale1) / (jnp.sqrt(v * scale2) + 1e-7)
        return jax.tree.map(step, params, mean, variance), (mean, variance, count)

    return init, update


def sgd(rate, momentum):
    def init(params):
        return jax.tree.map(jnp.zeros_like, params)

    def update(params, grads, velocity):
        velocity = jax.tree.map(lambda v, g: momentum * v + g, velocity, grads)
        return jax.tree.map(lambda p, v: p - rate * v, params, velocity), velocity

    return init, update


def images(*size):
    """Return a function that makes random images of a size in ten classes."""
    return lambda n: (np.random.rand(n, *size).astype("float32"), (np.arange(n) % 10).astype("int32"))


def texts(n):
    """Make random tokens, and those that come next."""
    tokens = np.random.randint(VOCABULARY, size=n * CONTEXT + 1, dtype="int32")
    return tokens[:-1].reshape(n, CONTEXT), tokens[1:].reshape(n, CONTEXT)


# Each network, its optimizer, and its inputs with their labels.
NETWORKS = {
    "cnn": (CNN(), adam(1e-3), images(28, 28, 1)),
    "resnet18": (ResNet18(), sgd(0.01, 0.9), images(32, 32, 3)),
    "mlp": (MLP(), adam(1e-4), images(MLP_WIDTH)),
    "gpt": (GPT(), adam(1e-4), texts),
}

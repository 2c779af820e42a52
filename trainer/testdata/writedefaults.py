"""Writes defaults.json: what PyTorch's layers, losses, optimizers and initializers do by default.

    uv run --with torch==2.15.0,numpy==2.4.6 trainer/testdata/writedefaults.py
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

X = torch.tensor([[0.5, -1.5, 2.0, 0.01], [1.0, 0.25, -3.0, 0.02], [-0.75, 0.1, 0.3, -0.01]])
CLASSES = torch.tensor([2, 0, 3])
TARGETS = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
WEIGHTS = [1.0, -2.0, 0.5]
GRADIENTS = [[0.3, -1.0, 1e-7], [0.1, 2.0, -3e-7], [-0.4, 0.5, 2e-7]]  # So small that epsilon counts.


def flat(tensor):
    return [float(x) for x in tensor.detach().flatten()]


def batch_norm():
    norm = nn.BatchNorm1d(4)
    train = flat(norm(X))
    norm(2 * X)
    norm.eval()
    return {"batch norm in training": train, "batch norm's running mean": flat(norm.running_mean),
            "batch norm's running variance": flat(norm.running_var)}


def trained(optimizer, **options):
    weights = nn.Parameter(torch.tensor(WEIGHTS))
    optimizer = optimizer([weights], **options)
    for gradient in GRADIENTS:
        weights.grad = torch.tensor(gradient)
        optimizer.step()
    return flat(weights)


def spread(tensor):
    """The standard deviation, and the mean size: for uniform numbers 0.866 of it, for normal ones 0.798."""
    return [float(tensor.detach().std()), float(tensor.detach().abs().mean())]


torch.manual_seed(1)
dense, convolution = nn.Linear(400, 300), nn.Conv2d(40, 50, 3)
dropped = nn.Dropout(0.3)(torch.ones(100000))
values = {
    **batch_norm(),
    "layer norm": flat(nn.LayerNorm(4)(X)),
    "RMS norm": flat(nn.RMSNorm(4)(X)),
    "leaky ReLU": flat(nn.LeakyReLU()(X)),
    "GELU": flat(nn.GELU()(X)),
    "SiLU": flat(nn.SiLU()(X)),
    "SELU": flat(nn.SELU()(X)),
    "hard sigmoid": flat(nn.Hardsigmoid()(X)),
    "hard swish": flat(nn.Hardswish()(X)),
    "dropout of 0.3": [float(dropped.max()), float((dropped == 0).float().mean())],
    "cross-entropy": flat(F.cross_entropy(X, CLASSES)),
    "cross-entropy with label smoothing of 0.1": flat(F.cross_entropy(X, CLASSES, label_smoothing=0.1)),
    "mean squared error": flat(F.mse_loss(X, TARGETS)),
    "mean absolute error": flat(F.l1_loss(X, TARGETS)),
    "Huber loss": flat(F.huber_loss(X, TARGETS)),
    "binary cross-entropy with logits": flat(F.binary_cross_entropy_with_logits(X, TARGETS)),
    "Adam": trained(torch.optim.Adam),
    "AdamW": trained(torch.optim.AdamW),
    "Adamax": trained(torch.optim.Adamax),
    "RMSprop": trained(torch.optim.RMSprop),
    "SGD": trained(torch.optim.SGD),
    "SGD with momentum": trained(torch.optim.SGD, momentum=0.9),
    "weights of a dense layer": spread(dense.weight),
    "biases of a dense layer": spread(dense.bias),
    "weights of a convolution": spread(convolution.weight),
    "biases of a convolution": spread(convolution.bias),
    "an embedding": spread(nn.Embedding(1000, 100).weight),
}
inputs = {"x": flat(X), "classes": flat(CLASSES), "targets": flat(TARGETS), "weights": WEIGHTS, "gradients": sum(GRADIENTS, [])}
lines = [f"{json.dumps(name)}: {json.dumps([float(f'{x:.9g}') for x in all])}" for name, all in {**inputs, **values}.items()]
path = pathlib.Path(__file__).with_name("defaults.json")
path.write_text("{\n" + ",\n".join(lines) + "\n}\n")

"""The networks of the benchmark in PyTorch, the same as those of bench/step."""

import torch
import torch.nn.functional as F
from torch import nn

MLP_WIDTH = 4096


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 128), nn.ReLU(), nn.Linear(128, 10),
    )


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18():
    layers, inputs = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(inputs, outputs, stride), Residual(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def mlp():
    layers = []
    for _ in range(6):
        layers += [nn.Linear(MLP_WIDTH, MLP_WIDTH), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(MLP_WIDTH, 10))


VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 256, 256, 6, 6, 384


def rotated(x, cos, sin):
    """Rotate the pairs of x by the angles of their places (Su et al., RoFormer, 2021)."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.attended = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.hidden, self.projection = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, cos, sin):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(rotated(q, cos, sin), rotated(k, cos, sin), v, is_causal=True)
        x = x + self.attended(y.transpose(1, 2).flatten(2))
        return x + self.projection(F.gelu(self.hidden(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.last = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.layers = nn.ModuleList(Decoder() for _ in range(LAYERS))
        pairs = WIDTH // HEADS // 2
        angles = torch.arange(CONTEXT)[:, None] * 10000 ** (-torch.arange(pairs) / pairs)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return F.linear(self.last(x), self.tokens.weight).flatten(0, 1)


def images(*size):
    """Return a function that makes random images of a size in ten classes."""
    return lambda n: (torch.rand(n, *size), torch.arange(n) % 10)


def texts(n):
    """Make random tokens, and those that come next."""
    tokens = torch.randint(VOCABULARY, (n * CONTEXT + 1,))
    return tokens[:-1].view(n, CONTEXT), tokens[1:]


def adam(rate):
    return lambda parameters, fused: torch.optim.Adam(parameters, rate, fused=fused)


def sgd(parameters, fused):
    return torch.optim.SGD(parameters, 0.01, momentum=0.9, fused=fused)


# Each network, its optimizer, and its inputs with their labels.
NETWORKS = {
    "cnn": (cnn, adam(1e-3), images(1, 28, 28)),
    "resnet18": (resnet18, sgd, images(3, 32, 32)),
    "mlp": (mlp, adam(1e-4), images(MLP_WIDTH)),
    "gpt": (GPT, adam(1e-4), texts),
}

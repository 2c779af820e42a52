"""Writes gpt.json: the losses of a small GPT in PyTorch that learns the text of LICENSE with Adam.

    uv run --with torch==2.15.0,numpy==2.4.6 models/testdata/gpt.py

The tests make the same weights and batches, and train models.GPT. PyTorch computes in double
precision, so that the losses don't depend on the machine.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

from weights import weights

VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 128, 32, 2, 4, 64
BATCH, UPDATES, RATE = 8, 50, 2e-3


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.projection = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, n, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        return self.projection(y.transpose(1, 2).reshape(batch, n, WIDTH))


def rotated(x):
    """Rotary positions (Su et al., 2021): pair i, i + half at place p by p * 10000^(-i/half)."""
    n, half = x.shape[-2], x.shape[-1] // 2
    rate = 10_000 ** (-torch.arange(half, dtype=x.dtype) / half)
    angle = torch.arange(n, dtype=x.dtype)[:, None] * rate
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.hidden, self.projection = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.projection(F.gelu(self.hidden(self.norm(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.last = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.ModuleList(Attention() for _ in range(LAYERS))
        self.mlp = nn.ModuleList(Perceptron() for _ in range(LAYERS))

    def forward(self, tokens):
        x = self.tokens(tokens)
        for attention, mlp in zip(self.attention, self.mlp):
            x = x + attention(x)
            x = x + mlp(x)
        return F.linear(self.last(x), self.tokens.weight)


def batch(text, update):
    """The windows of an update, and the same windows one byte later."""
    starts = [(update * BATCH + row) * CONTEXT for row in range(BATCH)]
    rows = [[text[(start + i) % len(text)] for i in range(CONTEXT + 1)] for start in starts]
    rows = torch.tensor(rows)
    return rows[:, :-1], rows[:, 1:]


def main():
    folder = pathlib.Path(__file__).parent
    text = (folder / "../../LICENSE").read_bytes()
    model = GPT().double()
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(weights(name, value.shape))
    adam, losses = torch.optim.Adam(model.parameters(), RATE), []
    for update in range(UPDATES):
        inputs, labels = batch(text, update)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(float(f"{loss.item():.9g}"))
    (folder / "gpt.json").write_text(json.dumps({"losses": losses}, indent=0) + "\n")


if __name__ == "__main__":
    main()

"""Writes pytorch.json: what networks in PyTorch compute from weights that the tests make too.

    uv run --with torch==2.15.0,torchvision==0.29.2,timm==1.0.31 models/testdata/pytorch.py

ViT is timm's and ResNet-50 torchvision's. So is ResNet-18, with the usual first layer for CIFAR.
The U-Net has the structure and names of github.com/milesial/Pytorch-UNet, the DCGAN those of
github.com/pytorch/examples. The GPT is the one of gpt.py.
"""

import json
import pathlib

import timm.models.vision_transformer
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

import gpt
from weights import noise, weights


class Down(nn.Module):
    def __init__(self, inputs, outputs, normalized):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), Double(inputs, outputs, normalized))

    def forward(self, x):
        return self.maxpool_conv(x)


class Double(nn.Module):
    def __init__(self, inputs, outputs, normalized):
        super().__init__()
        layers = []
        for size in (inputs, outputs):
            layers.append(nn.Conv2d(size, outputs, 3, padding=1, bias=not normalized))
            layers += [nn.BatchNorm2d(outputs)] if normalized else []
            layers.append(nn.ReLU())
        self.double_conv = nn.Sequential(*layers)

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, inputs, outputs, normalized):
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.conv = Double(inputs, outputs, normalized)

    def forward(self, x, skipped):
        return self.conv(torch.cat([skipped, self.up(x)], 1))


class Out(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, channels, classes, depth, width, normalized=True):
        super().__init__()
        self.depth = depth
        self.inc = Double(channels, width, normalized)
        for i in range(1, depth + 1):
            setattr(self, f"down{i}", Down(width << i - 1, width << i, normalized))
            setattr(self, f"up{i}", Up(width << depth - i + 1, width << depth - i, normalized))
        self.outc = Out(width, classes)

    def forward(self, x):
        levels = [self.inc(x)]
        for i in range(1, self.depth + 1):
            levels.append(getattr(self, f"down{i}")(levels[-1]))
        x = levels.pop()
        for i in range(1, self.depth + 1):
            x = getattr(self, f"up{i}")(x, levels.pop())
        return self.outc(x)


class Main(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.main = nn.Sequential(*layers)

    def forward(self, x):
        return self.main(x)


def generator(halvings, noise, width, channels):
    layers, inputs = [], noise
    for i in range(halvings):
        outputs = width << halvings - 1 - i
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2 if i else 1, 1 if i else 0, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        inputs = outputs
    return Main(*layers, nn.ConvTranspose2d(inputs, channels, 4, 2, 1, bias=False), nn.Tanh())


def discriminator(halvings, channels, width):
    layers, inputs = [], channels
    for i in range(halvings):
        outputs = width << i
        layers.append(nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False))
        layers += [nn.BatchNorm2d(outputs)] if i else []
        layers.append(nn.LeakyReLU(0.2))
        inputs = outputs
    return Main(*layers, nn.Conv2d(inputs, 1, 4, bias=False), nn.Flatten())


def vit():
    return timm.models.vision_transformer.VisionTransformer(
        img_size=12, patch_size=4, in_chans=3, num_classes=5, embed_dim=12, depth=2, num_heads=3)


def resnet18():
    network = torchvision.models.resnet18(num_classes=10)
    network.conv1, network.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return network


class MNIST(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.hidden, self.logits = nn.Linear(7 * 7 * 64, 128), nn.Linear(128, 10)

    def forward(self, x):
        for conv in (self.conv1, self.conv2):
            x = F.relu(F.max_pool2d(conv(x), 2))
        x = x.permute(0, 2, 3, 1).flatten(1)  # The order of the features here.
        return self.logits(F.relu(self.hidden(x)))


class Tokens(gpt.GPT):
    """A GPT whose tokens are made of numbers from -1 to 1, as for the other networks."""

    def forward(self, x):
        return super().forward(((x.detach() + 1) / 2 * gpt.VOCABULARY).long()) + 0 * x.sum()


# Each network and the shape of its input.
NETWORKS = {
    "linear": (lambda: nn.Linear(5, 3), (4, 5)),
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 7), nn.ReLU(), nn.Linear(7, 3)), (4, 6)),
    "mnist": (MNIST, (3, 1, 28, 28)),
    "resnet18": (resnet18, (2, 3, 16, 8)),
    "gpt": (Tokens, (2, 20)),
    "vit": (vit, (3, 3, 12, 12)),
    "resnet50": (lambda: torchvision.models.resnet50(num_classes=10), (2, 3, 64, 32)),
    "unet": (lambda: UNet(3, 5, 2, 4), (2, 3, 8, 16)),
    "unet without norm": (lambda: UNet(1, 2, 3, 3, normalized=False), (2, 1, 16, 8)),
    "generator of 32 pixels": (lambda: generator(3, 7, 3, 1), (3, 7, 1, 1)),
    "generator of 64 pixels": (lambda: generator(4, 7, 2, 3), (3, 7, 1, 1)),
    "discriminator of 32 pixels": (lambda: discriminator(3, 1, 3), (3, 1, 32, 32)),
    "discriminator of 64 pixels": (lambda: discriminator(4, 3, 2), (3, 3, 64, 64)),
}


def digest(name, values):
    """The norm, the product with noise, and 8 of the values."""
    flat = values.detach().flatten()
    some = [flat[i * (len(flat) - 1) // 7].item() for i in range(8)]
    numbers = [flat.norm().item(), (flat * noise(name + " digest", flat.shape)).sum().item()] + some
    return [float(f"{number:.12g}") for number in numbers]


def outcome(network, shape):
    network = network().double()
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if value.is_floating_point():
                value.copy_(weights(name, value.shape))
    x = noise("x", shape).requires_grad_()
    found = {"predicted": digest("predicted", network.eval()(x))}
    y = network.train()(x)
    found["trained"] = digest("trained", y)
    (y * noise("loss", y.shape)).sum().backward()
    return found | {name: digest(name, p.grad) for name, p in [("x", x), *network.named_parameters()]}


folder = pathlib.Path(__file__).parent
outcomes = {name: outcome(*arguments) for name, arguments in NETWORKS.items()}
lines = [json.dumps(name) + ": {\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in o.items()) + "\n}" for name, o in outcomes.items()]
(folder / "pytorch.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")

"""Write torch.safetensors with PyTorch 2.15: the weights of a network, inputs, and its outputs.

Usage: writeweights.py PATH
"""

import sys

import torch
from safetensors.torch import save_file
from torch import nn

torch.manual_seed(1)
net = nn.Sequential()
net.add_module("conv1", nn.Conv2d(2, 3, (3, 5), padding="same"))
net.add_module("bn1", nn.BatchNorm2d(3))
net.add_module("relu", nn.ReLU())
net.add_module("flatten", nn.Flatten())
net.add_module("fc1", nn.Linear(3 * 6 * 5, 7))
net.add_module("norm", nn.LayerNorm(7))
net.add_module("fc2", nn.Linear(7, 4, bias=False))
with torch.no_grad():
    for name in ("bn1", "norm"):
        net.get_submodule(name).weight.uniform_(0.5, 2)
        net.get_submodule(name).bias.normal_()
    for _ in range(3):
        net(torch.randn(8, 2, 6, 5) * 2 + 1)
    net.eval()
    inputs = torch.randn(6, 2, 6, 5)
    outputs = net(inputs)
example = {"example.inputs": inputs.permute(0, 2, 3, 1).contiguous(), "example.outputs": outputs}
save_file({**net.state_dict(), **example}, sys.argv[1])

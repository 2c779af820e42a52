"""Write transposed.safetensors with PyTorch 2.15: transposed convolutions, inputs, and the outputs.

Usage: writetransposed.py PATH
"""

import sys

import torch
from safetensors.torch import save_file
from torch import nn

torch.manual_seed(2)
net = nn.Sequential()
net.add_module("up", nn.ConvTranspose2d(2, 5, 4, stride=2, padding=1))
net.add_module("bn", nn.BatchNorm2d(5))
net.add_module("relu", nn.ReLU())
net.add_module("mix", nn.Conv2d(5, 4, 3, padding="same"))
net.add_module("image", nn.ConvTranspose2d(4, 3, 3, bias=False))
with torch.no_grad():
    for _ in range(3):
        net(torch.randn(8, 2, 4, 3) * 2 + 1)
    net.eval()
    inputs = torch.randn(6, 2, 4, 3)
    outputs = net(inputs)
last = lambda x: x.permute(0, 2, 3, 1).contiguous()
example = {"example.inputs": last(inputs), "example.outputs": last(outputs)}
save_file({**net.state_dict(), **example}, sys.argv[1])

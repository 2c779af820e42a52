"""Write resnet18.safetensors, vit.safetensors and gpt.safetensors.

They have the weights of networks in PyTorch, with its own names and layouts, some inputs, and what
PyTorch 2.15 computes from these.

Usage: writemodels.py FOLDER
       (with torch, torchvision and safetensors; timm==1.0.31 only needs --no-deps)

ResNet-18 is made of torchvision's blocks, with few channels and the usual first layer for CIFAR.
ViT is timm's. The GPT is that of models/testdata/gpt.py, but smaller.
"""

import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from timm.models.vision_transformer import VisionTransformer
from torch import nn
from torchvision.models.resnet import BasicBlock

sys.path.append(str(pathlib.Path(__file__).parents[2] / "models" / "testdata"))
import gpt

gpt.VOCABULARY, gpt.LAYERS, gpt.HEADS, gpt.WIDTH = 20, 2, 2, 8


class ResNet18(nn.Module):
    """torchvision's resnet18, whose first stage has 2 channels instead of 64."""

    def __init__(self, width=2, classes=10):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        for i in range(4):
            inputs, outputs, stride = width << max(0, i - 1), width << i, 1 if i == 0 else 2
            shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            first = BasicBlock(inputs, outputs, stride, shortcut if i > 0 else None)
            setattr(self, f"layer{i + 1}", nn.Sequential(first, BasicBlock(outputs, outputs)))
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def trained(net, inputs):
    """Changes the weights, so that none has its initial value, and the statistics of batches."""
    with torch.no_grad():
        for value in net.parameters():
            value.add_(torch.randn_like(value) * 0.05)
        for _ in range(3):
            net.train()(inputs)
    return net.eval()


def write(folder, name, net, inputs, ours):
    """Writes a file. The inputs are written as gonbatch takes them."""
    with torch.no_grad():
        outputs = trained(net, inputs)(inputs)
    example = {"example.inputs": ours(inputs).contiguous(), "example.outputs": outputs.contiguous()}
    save_file({**net.state_dict(), **example}, folder / f"{name}.safetensors")


def channels_last(x):
    return x.permute(0, 2, 3, 1)


def main():
    torch.manual_seed(1)
    folder = pathlib.Path(sys.argv[1])
    vit = VisionTransformer(img_size=12, patch_size=4, in_chans=3, num_classes=5, embed_dim=12, depth=2, num_heads=3)
    write(folder, "resnet18", ResNet18(), torch.randn(6, 3, 16, 16), channels_last)
    write(folder, "vit", vit, torch.randn(6, 3, 12, 12), channels_last)
    write(folder, "gpt", gpt.GPT(), torch.randint(20, (6, 9)), lambda tokens: tokens.int())


main()

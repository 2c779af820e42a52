"""Write resize.json: what PyTorch's interpolate, with antialias, and torchvision's center_crop make of two images.

Their pixels are (37*i % 101) / 100, row by row, channels last.

Usage: python resize.py > resize.json
"""

import json

import torch
from torch.nn.functional import interpolate
from torchvision.transforms.v2.functional import center_crop

SCALED = [
    ((4, 4, 1), (2, 2)),
    ((5, 7, 3), (3, 4)),
    ((8, 13, 1), (5, 6)),
    ((3, 2, 3), (7, 5)),
    ((9, 4, 2), (2, 11)),
    ((1, 6, 3), (3, 1)),
    ((6, 6, 3), (6, 6)),
    ((17, 5, 1), (4, 5)),
]
CROPPED = [((5, 7, 3), (3, 4)), ((6, 6, 1), (3, 5)), ((4, 9, 2), (1, 2)), ((3, 3, 3), (3, 3)), ((7, 8, 1), (2, 1))]


def images(height, width, channels):
    x = torch.tensor([(37 * i % 101) / 100 for i in range(2 * height * width * channels)])
    return x.reshape(2, height, width, channels).permute(0, 3, 1, 2)


def case(function, old, new, x):
    pixels = [round(v, 6) for v in x.permute(0, 2, 3, 1).flatten().tolist()]
    return json.dumps({"function": function, "from": old, "to": new, "pixels": pixels})


lines = [case("Resize", old, new, interpolate(images(*old), new, mode="bilinear", antialias=True)) for old, new in SCALED]
lines += [case("CenterCrop", old, new, center_crop(images(*old), list(new))) for old, new in CROPPED]
print("[\n" + ",\n".join(lines) + "\n]")

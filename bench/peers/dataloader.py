"""What bench/load measures, with PyTorch's DataLoader: steps with a dataset that waits, or the
loading of a folder of JPEGs by Pillow, simplejpeg or torchvision. It prints one JSON line."""

import argparse
import json
import pathlib
import resource
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from networks import NETWORKS


class Slow(Dataset):
    """Black images whose batches take a while."""

    def __init__(self, wait):
        self.wait = wait

    def __len__(self):
        return 6400

    def __getitems__(self, indices):
        time.sleep(self.wait)
        return [(torch.zeros(1, 28, 28), index % 10) for index in indices]


def by_pillow(path, side):
    """As torchvision's ImageFolder: Pillow decodes and scales."""
    from PIL import Image

    with Image.open(path) as image:
        image = image.convert("RGB")
    image = image.resize((side, side), Image.Resampling.BILINEAR, box=middle(image.width, image.height))
    return torch.from_numpy(numpy.array(image)).permute(2, 0, 1)


def by_simplejpeg(path, side):
    import simplejpeg

    pixels = simplejpeg.decode_jpeg(path.read_bytes(), fastupsample=True)
    return scaled(torch.from_numpy(pixels).permute(2, 0, 1), side)


def by_torchvision(path, side):
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    return scaled(decode_jpeg(read_file(str(path)), ImageReadMode.RGB), side)


def middle(width, height):
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


def scaled(pixels, side):
    """The middle of an image, scaled by PyTorch's vectorized code for bytes with the channels last."""
    left, top, right, bottom = middle(pixels.shape[2], pixels.shape[1])
    part = pixels[None, :, top:bottom, left:right]
    return torch.nn.functional.interpolate(part, (side, side), mode="bilinear", antialias=True)[0]


DECODERS = {"pillow": by_pillow, "simplejpeg": by_simplejpeg, "torchvision": by_torchvision}


class Folder(Dataset):
    """The JPEGs in a folder for each class: scaled to a square, from 0 to 1."""

    def __init__(self, folder, side, decode):
        self.paths, self.side, self.decode = sorted(pathlib.Path(folder).glob("*/*.jpg")), side, decode
        self.classes = sorted({path.parent.name for path in self.paths})

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        pixels = self.decode(self.paths[index], self.side).float().div(255)
        return pixels, self.classes.index(self.paths[index].parent.name)


def trained():
    network, make_optimizer, _ = NETWORKS["cnn"]
    model = network()
    optimizer, loss_of = make_optimizer(model.parameters(), None), torch.nn.CrossEntropyLoss()

    def step(inputs, labels):
        optimizer.zero_grad()
        loss = loss_of(model(inputs), labels)
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--what", choices=["step", "fit", "jpeg"], default="step")
    parser.add_argument("--decoder", choices=DECODERS, default="pillow")
    parser.add_argument("--folder")
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--wait", default="0ms", help="in milliseconds: 50ms")
    args = parser.parse_args()
    torch.manual_seed(0)
    folder = lambda: Folder(args.folder, args.side, DECODERS[args.decoder])
    dataset = folder() if args.what == "jpeg" else Slow(float(args.wait.removesuffix("ms")) / 1000)
    loader = DataLoader(dataset, args.batch, shuffle=True, drop_last=True, num_workers=args.workers, persistent_workers=args.workers > 0)
    step = trained() if args.what != "jpeg" else lambda inputs, labels: None
    done, began, waited = 0, 0.0, 0.0
    while True:
        asked = time.time()
        for inputs, labels in loader:
            waited += time.time() - asked
            step(inputs, labels)
            done += 1
            if done == args.warm_up:
                began, waited = time.time(), 0.0
            if done == args.warm_up + args.steps:
                report(args, time.time() - began, waited)
                return
            asked = time.time()


def report(args, seconds, waited):
    each = seconds / args.steps
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps({
        "version": torch.__version__, "images_per_second": args.batch / each, "ms_per_step": 1000 * each,
        "data_wait": waited / seconds, "peak_mb": peak,
    }), flush=True)


main()

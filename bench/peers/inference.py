"""What bench/infer measures, in PyTorch: eval, inference_mode and channels_last. One JSON line."""

import argparse
import json
import statistics
import time

import torch

from networks import NETWORKS

WARM_UP, LEAST = 2, 3


def seconds(text):
    return float(text.removesuffix("ms")) / 1000 if text.endswith("ms") else float(text.removesuffix("s"))


def measure(model, images, period):
    """Return the median time of a batch, from images in memory to their logits, and its processor time."""
    times, done, began, cpu = [], 0, time.time(), 0.0
    while len(times) < LEAST or time.time() - began < period:
        start = time.perf_counter()
        model(images.clone(memory_format=torch.preserve_format)).numpy()
        if done >= WARM_UP:
            times.append(time.perf_counter() - start)
        else:
            began, cpu = time.time(), time.process_time()
        done += 1
    return {"ms": 1000 * statistics.median(times), "cpu_ms": 1000 * (time.process_time() - cpu) / len(times)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["cnn", "resnet18"], default="cnn")
    parser.add_argument("--sizes", default="1,256")
    parser.add_argument("--period", type=seconds, default=1.0)
    args = parser.parse_args()
    torch.manual_seed(0)
    network, _, make_inputs = NETWORKS[args.model]
    model, found = network().eval().to(memory_format=torch.channels_last), []
    with torch.inference_mode():
        for batch in map(int, args.sizes.split(",")):
            images = make_inputs(batch)[0].to(memory_format=torch.channels_last)
            found.append({"batch": batch} | measure(model, images, args.period))
    print(json.dumps({"version": torch.__version__, "sizes": found}), flush=True)


main()

"""Numbers that models/pytorch_test.go makes too."""

import math
import zlib

import numpy
import torch


def noise(name, shape):
    """Numbers from -1 to 1, by MurmurHash3's finalizer."""
    seed = numpy.uint32(zlib.crc32(name.encode()) * 0x9E3779B9 & 0xFFFFFFFF)
    h = numpy.arange(math.prod(shape), dtype=numpy.uint32) + seed
    h = (h ^ h >> 16) * numpy.uint32(0x85EBCA6B)
    h = (h ^ h >> 13) * numpy.uint32(0xC2B2AE35)
    h ^= h >> 16
    return torch.from_numpy((h + 0.5) / 2**31 - 1).reshape(tuple(shape))


def weights(name, shape):
    values = noise(name, shape)
    if len(shape) > 1:
        return values * math.sqrt(3 * shape[0] / math.prod(shape))
    return values / 2 + (name.endswith(("weight", "running_var")))

"""Write JPEGs of many kinds: jpegs.py FOLDER COUNT SEED. A file's name says what kind it is."""

import pathlib
import sys

import numpy
from PIL import Image

folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
random = numpy.random.default_rng(seed)


def picture(width, height):
    """Waves, edges and noise."""
    y, x = numpy.mgrid[:height, :width]
    waves = [100 + 80 * numpy.sin(x / random.uniform(3, 60)) * numpy.cos(y / random.uniform(3, 60)) for _ in range(3)]
    pixels = numpy.stack(waves, -1) + random.normal(0, random.choice([0, 5, 40]), (height, width, 3))
    pixels[height // 3 : height // 2, width // 4 : width // 2] = random.integers(0, 256, 3)
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def write(number):
    width, height = (int(n) for n in random.integers(1, random.choice([20, 200]), 2))
    mode = str(random.choice(["RGB", "RGB", "RGB", "RGB", "L", "CMYK"]))
    sampling = str(random.choice(["4:4:4", "4:2:2", "4:2:0", "4:1:1", "keep_rgb"]))
    options = {"quality": int(random.integers(1, 101)), "progressive": bool(random.integers(2)), "optimize": bool(random.integers(2))}
    if mode == "RGB" and sampling == "keep_rgb":
        options["keep_rgb"] = True
    elif mode == "RGB":
        options["subsampling"] = sampling
    if random.integers(3) == 0:
        options["restart_marker_blocks"] = int(random.integers(1, 10))
    if random.integers(3) == 0:
        exif = Image.Exif()
        exif[0x0112] = int(random.integers(1, 9))  # The orientation.
        options["exif"] = exif
    name = f"{number:04}-{mode}-{sampling.replace(':', '')}-{width}x{height}-q{options['quality']}{'-progressive' * options['progressive']}{'-restarts' * ('restart_marker_blocks' in options)}.jpg"
    (folder / mode).mkdir(exist_ok=True)
    picture(width, height).convert(mode).save(folder / mode / name, "JPEG", **options)


for i in range(count):
    write(i)

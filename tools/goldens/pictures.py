#!/usr/bin/env python3
"""Writes tests/media/golden/pictures.npz: images of random forms, and the results of Pillow.

  tools/goldens/pictures.py OUT.npz [COUNT [SEED]]   needs numpy and Pillow

Image i has "iNN" (the file), "pNN" (its pixels, rotated as EXIF says, [h, w, c]) and "crop",
"stretch", "pad" NN. The last three are its values from 0 to 1 in an input [channels, height,
width], by Image.resize(BILINEAR, box=...) of each channel as floats. A larger COUNT than in the
repository is for LOOM_PICTURES_GOLDEN of tests/media.
"""

import io
import sys

import numpy as np
from PIL import Image, ImageOps

FORMS = ["L", "RGB", "RGBA", "LA", "P", "1", "I;16", "CMYK"]


def random_pixels(rng, width, height):
    """Smooth colours with a hard edge, so that every filter has something to do."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 120 * np.sin(x * rng.uniform(0.05, 1) + y * rng.uniform(0.05, 1) + c)
              for c in range(3)]
    picture = np.stack(planes, -1)
    picture[(x > width // 2) & (y > height // 3)] = rng.integers(0, 256, 3)
    return picture.clip(0, 255).astype(np.uint8)


def random_file(rng):
    width, height = (int(v) for v in rng.integers(1, 40, 2))
    form = FORMS[rng.integers(len(FORMS))]
    image = Image.fromarray(random_pixels(rng, width, height))
    out = io.BytesIO()
    if form == "I;16":
        grey = np.asarray(image.convert("L")).astype(np.uint16) * 257
        Image.fromarray(grey).save(out, "PNG")
    elif form in ("L", "RGB", "CMYK") and (form == "CMYK" or rng.integers(2)):
        exif = Image.Exif()
        exif[0x0112] = int(rng.integers(1, 9))
        image.convert(form).save(out, "JPEG", quality=int(rng.integers(30, 96)), exif=exif,
                                 progressive=bool(rng.integers(2)),
                                 subsampling=int(rng.integers(3)))
    else:
        image = image.convert("RGB" if form in ("P", "1") else form)
        image = image.quantize(16) if form == "P" else image.convert(form)
        image.save(out, "PNG", gamma=0.45455)
    return out.getvalue()


def seen(data):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.mode.startswith("I"):
        return Image.fromarray((np.asarray(image).astype(np.int64) // 257).astype(np.uint8))
    grey = image.mode in ("L", "LA", "1")
    return image.convert("L" if grey else "RGB")


def fitted(image, fit, channels, height, width):
    planes = [image.convert("L")] if channels == 1 else list(image.convert("RGB").split())
    box = (0.0, 0.0, float(image.width), float(image.height))
    size, at = (width, height), (0, 0)
    if fit == "crop":
        zoom = min(image.width / width, image.height / height)
        left = max((image.width - zoom * width) / 2, 0)
        top = max((image.height - zoom * height) / 2, 0)
        box = (left, top, min(left + zoom * width, image.width),
               min(top + zoom * height, image.height))
    elif fit == "pad":
        zoom = max(image.width / width, image.height / height)
        size = tuple(max(int(side / zoom + 0.5), 1) for side in (image.width, image.height))
        size = (min(size[0], width), min(size[1], height))
        at = ((width - size[0]) // 2, (height - size[1]) // 2)
    out = np.zeros((channels, height, width), np.float32)
    for c, plane in enumerate(planes):
        small = plane.convert("F").resize(size, Image.Resampling.BILINEAR, box=box)
        out[c, at[1]:at[1] + size[1], at[0]:at[0] + size[0]] = np.asarray(small) / 255
    return out


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 17)
    arrays = {"count": np.array([count], np.int32)}
    for i in range(count):
        data = random_file(rng)
        image = seen(data)
        arrays[f"i{i}"] = np.frombuffer(data, np.uint8)
        pixels = np.asarray(image)
        arrays[f"p{i}"] = pixels.reshape(image.height, image.width, -1)
        channels = 1 if rng.integers(2) else 3
        height, width = (int(v) for v in rng.integers(1, 9, 2))
        for fit in ("crop", "stretch", "pad"):
            arrays[f"{fit}{i}"] = fitted(image, fit, channels, height, width)
    np.savez_compressed(sys.argv[1], **arrays)


if __name__ == "__main__":
    main()

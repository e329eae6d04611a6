#!/usr/bin/env python3
"""Writes tests/media/golden/forms.npz: sounds in forms other than plain WAV, and 16-bit PNG files.

  tools/goldens/sound_forms.py OUT.npz   needs numpy and soundfile

Sound i has "iN" (the file) and "wN" (its samples by soundfile, channels as their mean). "rN" is its
rate, and 1 if the coding is lossy. "p0" is a grey and "p1" a colour PNG. "q0" and "q1" are their
values, from 0 to 1: [height, width] and [3, height, width].
"""

import io
import struct
import sys
import zlib

import numpy as np
import soundfile

FORMS = [("WAV", "ULAW"), ("WAV", "ALAW"), ("WAV", "MS_ADPCM"), ("RF64", "PCM_24"),
         ("W64", "PCM_16"), ("AIFF", "PCM_16"),
         ("AIFF", "FLOAT"), ("AU", "PCM_16"), ("CAF", "ALAC_16"),
         ("FLAC", "PCM_24"), ("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III")]
LOSSY = ("VORBIS", "MPEG_LAYER_III")


def png(values):
    """A PNG of 16 bits, by hand: [height, width] or [height, width, 3]."""
    def chunk(name, data):
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check
    colour = 2 if values.ndim == 3 else 0
    head = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, colour, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + \
        chunk(b"IEND", b"")


def main():
    rng = np.random.default_rng(23)
    arrays = {"count": np.array([len(FORMS)], np.int32)}
    for i, (container, coding) in enumerate(FORMS):
        rate, frames = (16000, 2000) if coding in LOSSY else (8000, 300)
        t = np.arange(frames)[:, None] / rate
        x = 0.4 * np.sin(2 * np.pi * rng.uniform(100, 900, i % 2 + 1) * t)
        out = io.BytesIO()
        soundfile.write(out, x, rate, format=container, subtype=coding)
        wave, _ = soundfile.read(io.BytesIO(out.getvalue()), dtype="float64", always_2d=True)
        arrays[f"i{i}"] = np.frombuffer(out.getvalue(), np.uint8)
        arrays[f"w{i}"] = wave.mean(1).astype(np.float32)
        arrays[f"r{i}"] = np.array([rate, coding in LOSSY], np.int32)
    grey = rng.integers(0, 65536, (3, 4)).astype(np.uint16)
    colour = rng.integers(0, 65536, (3, 4, 3)).astype(np.uint16)
    for i, values in enumerate((grey, colour)):
        arrays[f"p{i}"] = np.frombuffer(png(values), np.uint8)
        wide = values.transpose(2, 0, 1) if values.ndim == 3 else values
        arrays[f"q{i}"] = (wide / 65535.0).astype(np.float32)
    np.savez_compressed(sys.argv[1], **arrays)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes examples/data/tones: short sounds of three kinds as WAV files, a folder for each.

  tools/samples/tones.py OUT
"""

import math
import random
import struct
import sys
from pathlib import Path

RATE, EACH = 4000, 12


def wav(samples):
    data = struct.pack(f"<{len(samples)}h", *(round(s * 20000) for s in samples))
    form = struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"data"
    chunks += struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def main():
    rng = random.Random(17)
    pitch = {"falling": lambda t: 1500 - 4000 * t, "rising": lambda t: 500 + 4000 * t,
             "steady": lambda t: 1000}
    for name, hz in pitch.items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(EACH):
            phase, samples = rng.uniform(0, 6), []
            factor, loud = rng.uniform(0.7, 1.2), rng.uniform(0.4, 1)
            for k in range(int(RATE * rng.uniform(0.2, 0.25))):
                phase += 2 * math.pi * factor * hz(k / RATE) / RATE
                samples.append(loud * math.sin(phase) + rng.gauss(0, 0.01))
            (folder / f"{i:02}.wav").write_bytes(wav(samples))


if __name__ == "__main__":
    main()

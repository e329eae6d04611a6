"""Blocks of every ggml type Loom decodes, and their values as the `gguf` package decodes them.

usage: gguf_quants.py tests/io/golden/gguf_quants.bin      (needs numpy and gguf)

Per type: the name (8 bytes, padded with zeros), u32 blocks, u32 bytes, the block bytes, the values
as f32. Block bytes are random, and cover every byte value; scales may be infinite or NaN.
"""

import struct
import sys

import gguf
import numpy as np

TYPES = ("F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL TQ1_0 TQ2_0 "
         "MXFP4").split()


def main():
    rng = np.random.default_rng(20)
    out = b""
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        values, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = 64 if values == 1 else 8 if values == 32 else 3
        data = rng.integers(0, 256, blocks * size, dtype=np.uint8)
        if name == "MXFP4":
            data[0::size] = [0, 1, 2, 126, 127, 128, 254, 255]
        with np.errstate(all="ignore"):
            decoded = gguf.quants.dequantize(data.reshape(1, -1), kind).astype(np.float32)
        assert decoded.size == blocks * values
        out += name.encode().ljust(8, b"\0") + struct.pack("<II", blocks, data.size)
        out += data.tobytes() + decoded.tobytes()
    with open(sys.argv[1], "wb") as file:
        file.write(out)


main()

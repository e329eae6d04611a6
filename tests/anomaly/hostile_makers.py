"""The files of hostile_files.py: each claims, unpacks to or describes far more than it holds."""

import io
import json
import struct
import zipfile
import zlib

MB = 1 << 20


def deflate_bomb(unit: bytes, megabytes: int, head: bytes = b"") -> bytes:
    """Raw deflate data of `head` and then `unit` again and again, without its checksum."""
    unit = unit * (MB // len(unit))
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + block * megabytes + packer.flush()


def gzip_bomb(unit: bytes, megabytes: int, head: bytes = b"") -> bytes:
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + deflate_bomb(unit, megabytes, head) + b"\0" * 8


def gzip_members(unit: bytes, megabytes: int) -> bytes:
    """Many whole gzip files, one after the other."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return (packer.compress(unit * (MB // len(unit))) + packer.flush()) * megabytes


def npy(shape: str, data: bytes = b"", descr: str = "<f4") -> bytes:
    header = f"{{'descr':'{descr}','fortran_order':False,'shape':{shape}}}".encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + data


def zip_of(members: list, zip64: bool = False) -> bytes:
    """(name, method, crc, packed bytes, unpacked size said, place said or None)."""
    out, directory = b"", b""
    for name, method, crc, packed, size, place in members:
        at = len(out) if place is None else place
        name = name.encode()
        sizes = (len(packed), size)
        narrow = (0xFFFFFFFF, 0xFFFFFFFF) if zip64 else sizes
        extra = struct.pack("<HHQQ", 1, 16, size, len(packed)) if zip64 else b""
        if place is None:
            out += struct.pack(
                "<IHHHIIIIHH", 0x04034B50, 45, 0, method, 0, crc, *narrow, len(name), len(extra)
            )
            out += name + extra + packed
        directory += (
            struct.pack(
                "<IHHHHIIIIHHHHHII",
                0x02014B50,
                45,
                45,
                0,
                method,
                0,
                crc,
                *narrow,
                len(name),
                len(extra),
                0,
                0,
                0,
                0,
                at,
            )
            + name
            + extra
        )
    end = b""
    begin = len(out)
    if zip64:
        end += struct.pack(
            "<IQHHIIQQQQ",
            0x06064B50,
            44,
            45,
            45,
            0,
            0,
            len(members),
            len(members),
            len(directory),
            begin,
        )
        end += struct.pack("<IIQI", 0x07064B50, 0, begin + len(directory), 1)
        end += struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    else:
        end += struct.pack(
            "<IHHHHIIH", 0x06054B50, 0, 0, len(members), len(members), len(directory), begin, 0
        )
    return out + directory + end


def bomb_member(name: str, head: bytes, megabytes: int, size: int) -> tuple:
    return (name, 8, 0, deflate_bomb(b"\0", megabytes, head), size, None)


def overlapping() -> bytes:
    data = npy("(4, 2)", b"\0" * 32)
    crc = zlib.crc32(data)
    return zip_of([("x.npy", 0, crc, data, len(data), None), ("x.npy", 0, crc, data, len(data), 0)])


def nested_zip() -> bytes:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("x.npy", npy("(2,)", b"\0" * 8))
    data = inner.getvalue()
    return zip_of([("x.npy", 0, zlib.crc32(data), data, len(data), None)])


def safetensors(header: bytes, length: int = -1) -> bytes:
    return struct.pack("<Q", len(header) if length < 0 else length) + header


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def onnx(graph: bytes) -> bytes:
    return b"\x08\x08\x3a" + varint(len(graph)) + graph


def gguf_string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def gguf(tensors: int, pairs: int, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + rest


def network(layers: str) -> bytes:
    return f'{{"loom":1,"input":[2],"layers":{layers}}}'.encode()


DENSE = '{"type":"Dense","in":2,"out":2}'


def nested_layers(count: int, depth: int) -> bytes:
    text = "[" + ",".join([DENSE] * count) + "]"
    for _ in range(depth):
        text = '[{"type":"Sequential","children":' + text + "}]"
    return network(text)


def cells(count: int) -> bytes:
    row = ",".join(f'{{"at":[0,0,{i},0],"type":"Dense","in":2,"out":2}}' for i in range(count))
    return f'{{"loom":1,"input":[2],"grid":[1,1,{count},1],"cells":[{row}]}}'.encode()


def tokenizer(merges: int) -> bytes:
    vocab = {f"t{i}": i for i in range(1000)}
    return json.dumps(
        {"version": "1.0", "model": {"type": "BPE", "vocab": vocab, "merges": ["t1 t2"] * merges}}
    ).encode()


# Name of the file, its bytes, commands ({} is the file, NET a description of 2 -> 1 values), and
# text of the line; empty if the file may also be read.
TRAIN = "train NET {} --epochs 1 --quiet"
INFO = "info {}"
CONVERT = "convert {} OUT.entity --force --quiet"
MEMORY = "--memory"


def packed_tables() -> list:
    """CSV, IDX and NPY within gzip, and CSV as it is."""
    rows_of_zeros = b"0,0,1\n"
    return [
        ("rows.csv.gz", lambda: gzip_bomb(rows_of_zeros, 3500), [TRAIN], MEMORY),
        ("members.csv.gz", lambda: gzip_members(rows_of_zeros, 3500), [TRAIN], MEMORY),
        ("empty_lines.csv.gz", lambda: gzip_bomb(b"\n", 3500, b"0,0,1\n"), [TRAIN], "empty lines"),
        ("one_field.csv.gz", lambda: gzip_bomb(b"1", 3500), [TRAIN], "a field of more than"),
        ("quoted.csv.gz", lambda: gzip_bomb(b"1", 3500, b'"'), [TRAIN], "a field of more than"),
        ("spaces.csv.gz", lambda: gzip_bomb(b" ", 3500), [TRAIN], "a field of more than"),
        ("one_line.csv.gz", lambda: gzip_bomb(b"0,", 3500), [TRAIN], "at least 4 columns"),
        ("one_line.csv", lambda: b"0," * (30 * MB), [TRAIN], "at least 4 columns"),
        (
            "columns.csv",
            lambda: b",".join([b"0"] * 1_000_000) + b"\n",
            [TRAIN],
            "at least 4 columns",
        ),
        (
            "long_row.csv",
            lambda: b"0,0,1\n0,0," + b"0," * (30 * MB),
            [TRAIN],
            "a row of more than 3",
        ),
        ("binary.gz", lambda: gzip_bomb(b"\0", 3500), [TRAIN], ""),
        (
            "says_little.idx.gz",
            lambda: gzip_bomb(b"\0", 3500, b"\0\0\x08\x02" + struct.pack(">II", 10, 2)),
            [TRAIN],
            "unpacks to more than 32 bytes",
        ),
        (
            "says_much.idx.gz",
            lambda: gzip_bomb(b"\0", 3500, b"\0\0\x08\x02" + struct.pack(">II", 3500 * MB // 2, 2)),
            [TRAIN],
            MEMORY,
        ),
        (
            "says_little.npy.gz",
            lambda: gzip_bomb(b"\0", 3500, npy("(4, 2)")),
            [TRAIN],
            "unpacks to more than",
        ),
        (
            "says_much.npy.gz",
            lambda: gzip_bomb(b"\0", 3500, npy(f"({3500 * MB // 8}, 2)")),
            [TRAIN],
            MEMORY,
        ),
    ]


def arrays() -> list:
    """Arrays, and archives of them."""
    return [
        (
            "no_rows.npy",
            lambda: npy(f"({1 << 61}, 0)"),
            [TRAIN + " --labels {}"],
            "a sample is [0]",
        ),
        ("claims.npy", lambda: npy(f"({1 << 50}, 2)"), [TRAIN], "takes"),
        (
            "safetensors.gz",
            lambda: gzip_bomb(b" ", 3500, safetensors(b"{", 90 * MB)),
            [TRAIN],
            MEMORY,
        ),
        ("npz.gz", lambda: gzip_bomb(b"\0", 3500, b"PK\x03\x04"), [TRAIN], MEMORY),
        (
            "directory_lies.npz",
            lambda: zip_of([bomb_member("x.npy", npy("(4, 2)"), 2100, 2100 * MB)]),
            [TRAIN],
            "but its directory says",
        ),
        (
            "both_lie.npz",
            lambda: zip_of([bomb_member("x.npy", npy("(4, 2)"), 2100, len(npy("(4, 2)")) + 32)]),
            [TRAIN],
            "unpacks to more than",
        ),
        (
            "both_say_much.npz",
            lambda: zip_of(
                [
                    bomb_member(
                        "x.npy",
                        npy(f"({2100 * MB // 8}, 2)"),
                        2100,
                        2100 * MB + len(npy(f"({2100 * MB // 8}, 2)")),
                    )
                ]
            ),
            [TRAIN],
            MEMORY,
        ),
        (
            "zip64.npz",
            lambda: zip_of([bomb_member("x.npy", npy("(4, 2)"), 100, 1 << 60)], True),
            [TRAIN],
            "but its directory says",
        ),
        (
            "many.npz",
            lambda: zip_of([bomb_member("x.npy", b"", 1, 1 << 20)] * 2000),
            [TRAIN],
            "two members",
        ),
        ("overlapping.npz", overlapping, [TRAIN], "two members"),
        ("nested.npz", nested_zip, [TRAIN], "not an NPY array"),
    ]


def member(name: str, data: bytes) -> tuple:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return (name, 8, zlib.crc32(data), packer.compress(data) + packer.flush(), len(data), None)


def text_member(name: str, text: bytes) -> tuple:
    return member(name, npy(f"({len(text)},)", text, "|u1"))


def large_member(name: str, shape: str, megabytes: int, descr: str = "<f4") -> tuple:
    head = npy(shape, b"", descr)
    return bomb_member(name, head, megabytes, megabytes * MB + len(head))


def npz_networks() -> list:
    """Networks, and weights, in archives: each array of them may be the one that is too large."""
    small = text_member("loom/network.npy", network("[" + DENSE + "]"))
    huge = f"({2100 * MB},)"
    floats = f"({2100 * MB // 4},)"
    layer = b'{"type":"Dense","in":32,"out":16777216,"bias":false}'
    wide = b'{"loom":1,"input":[32],"layers":[' + layer + b"]}"
    weight = large_member("(0, 0, 0, 0)/weight.npy", "(16777216, 32)", 2048)
    return [
        (
            "network.npz",
            lambda: zip_of([large_member("loom/network.npy", huge, 2100, "|u1")]),
            [INFO, CONVERT, "eval {} DATA", "diff {} NET"],
            MEMORY,
        ),
        (
            "network_cells.npz",
            lambda: zip_of([text_member("loom/network.npy", cells(100_000))]),
            [INFO, CONVERT],
            "",
        ),
        (
            "model.npz",
            lambda: zip_of([small, large_member("loom/model.npy", huge, 2100, "|u1")]),
            [INFO, CONVERT, "eval {} DATA"],
            MEMORY,
        ),
        (
            "shift.npz",
            lambda: zip_of([small, large_member("input/shift.npy", floats, 2100)]),
            [INFO, CONVERT, "train {} DATA --epochs 1 --quiet"],
            MEMORY,
        ),
        (
            "weight.npz",
            lambda: zip_of([text_member("loom/network.npy", wide), weight]),
            [CONVERT, "diff {} NET --parameters"],
            MEMORY,
        ),
        ("weights.npz", lambda: zip_of([weight]), ["eval NET DATA --weights {}"], MEMORY),
    ]


def held_out() -> bytes:
    """Samples of a byte per value: as floats they fit the budget once, but not one and a half
    times."""
    samples = 12_500_000
    header = json.dumps(
        {
            "x": {"dtype": "U8", "shape": [samples, 2], "data_offsets": [0, 2 * samples]},
            "y": {
                "dtype": "U8",
                "shape": [samples, 1],
                "data_offsets": [2 * samples, 3 * samples],
            },
        }
    ).encode()
    return safetensors(header) + b"\1" * (3 * samples)


def copies() -> list:
    """Values that are copied, or come from elsewhere than a named file."""
    return [
        ("split.safetensors", held_out, [TRAIN + " --split 0.5"], MEMORY),
        (
            "split_eval.safetensors",
            held_out,
            ["eval NET {} --weights W.npz --split 0.5 --rows validation"],
            MEMORY,
        ),
        ("stdin", lambda: b"a " * (20 * MB), ["tokenize TOKENS < {}"], MEMORY),
    ]


def descriptions() -> list:
    """JSON."""
    return [
        ("wide.json", lambda: network("[" + "1," * (10 * MB) + "1]"), [INFO, CONVERT], MEMORY),
        ("objects.json", lambda: network("[" + "{}," * (4 * MB) + "{}]"), [INFO, CONVERT], MEMORY),
        (
            "deep.json",
            lambda: b'{"loom":1,"input":' + b"[" * MB + b"]" * MB + b"}",
            [INFO, CONVERT],
            "nested deeper",
        ),
        (
            "keys.json",
            lambda: b"{" + b",".join(b'"%x":0' % i for i in range(3 * MB)) + b"}",
            [INFO, CONVERT],
            MEMORY,
        ),
        ("cells.json", lambda: cells(300_000), [INFO, CONVERT], MEMORY),
        # As many as the budget lets through: the estimate of what they need must hold.
        ("some_cells.json", lambda: cells(24_000), [INFO, CONVERT], ""),
        ("more_cells.json", lambda: cells(120_000), [INFO, CONVERT], MEMORY),
        (
            "layers.json",
            lambda: network("[" + ",".join([DENSE] * 300_000) + "]"),
            [INFO, CONVERT],
            MEMORY,
        ),
        ("nested_layers.json", lambda: nested_layers(30_000, 25), [INFO, CONVERT], MEMORY),
        (
            "large_layer.json",
            lambda: network(
                '[{"type":"Dense","in":2,"out":16777216},'
                '{"type":"Dense","in":16777216,"out":16777216},'
                '{"type":"Dense","in":16777216,"out":1}]'
            ),
            ["train {} DATA --epochs 1 --quiet"],
            MEMORY,
        ),
    ]


def models() -> list:
    """Headers of model files."""
    return [
        (
            "long_header.safetensors",
            lambda: safetensors(b"{" + b" " * (80 * MB) + b"}"),
            [INFO, CONVERT],
            MEMORY,
        ),
        ("claims.safetensors", lambda: safetensors(b'{"a":1}', 1 << 60), [INFO, CONVERT], ""),
        (
            "keys.safetensors",
            lambda: safetensors(b"{" + b",".join(b'"%x":0' % i for i in range(4 * MB)) + b"}"),
            [INFO, CONVERT, "eval {} DATA"],
            MEMORY,
        ),
        (
            "tensors.safetensors",
            lambda: safetensors(
                b"{"
                + b",".join(
                    b'"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % i
                    for i in range(300_000)
                )
                + b"}"
            ),
            [INFO, CONVERT],
            MEMORY,
        ),
        (
            "shape.safetensors",
            lambda: safetensors(
                b'{"weight":{"dtype":"F32","shape":[1099511627776,0],"data_offsets":[0,0]}}'
            ),
            [INFO, CONVERT],
            "",
        ),
        ("claims.gguf", lambda: gguf(1 << 60, 1 << 60), [INFO, CONVERT], "cannot be described"),
        (
            "array.gguf",
            lambda: gguf(
                0, 1, gguf_string(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 1 << 60)
            ),
            [INFO, CONVERT],
            "",
        ),
        (
            "tensors.gguf",
            lambda: gguf(
                1_000_000,
                0,
                b"".join(
                    gguf_string(b"%x" % i) + struct.pack("<IQIQ", 1, 0, 0, 0)
                    for i in range(1_000_000)
                ),
            ),
            [INFO, CONVERT],
            MEMORY,
        ),
        (
            "tokens.gguf",
            lambda: gguf(
                0,
                1,
                gguf_string(b"tokenizer.ggml.tokens")
                + struct.pack("<IIQ", 9, 8, 3_000_000)
                + b"\0" * 24_000_000,
            ),
            [INFO, CONVERT],
            "",
        ),
        ("nodes.onnx", lambda: onnx(b"\x0a\0" * 3_000_000), [INFO, CONVERT], ""),
        ("tensors.onnx", lambda: onnx(b"\x2a\0" * 3_000_000), [INFO, CONVERT], ""),
        ("values.onnx", lambda: onnx(b"\x5a\0" * 3_000_000), [INFO, CONVERT], ""),
        ("claims.onnx", lambda: b"\x08\x08\x3a" + varint(1 << 60), [INFO, CONVERT], ""),
        (
            "claims.entity",
            lambda: b"ENTITY\0\0"
            + struct.pack("<HHQIQQQQQ", 2, 1, 1 << 60, 0, 1 << 62, 0, 0, 0, 0),
            [INFO, CONVERT],
            "",
        ),
        ("tokenizer.json", lambda: tokenizer(2_000_000), ["tokenize {} text"], MEMORY),
    ]


def table() -> list:
    return packed_tables() + arrays() + npz_networks() + copies() + descriptions() + models()

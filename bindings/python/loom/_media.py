"""Image and sound files for a build without their readers: Pillow and soundfile read them.

A wheel has no reader of PNG and JPEG, and reads WAV itself. The files are written as PNM or WAV to
a temporary folder, and the library reads those as it reads all others.
"""

import os
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Optional, Tuple, TypeVar

from .errors import UnsupportedError

_T = TypeVar("_T")
_IMAGES = (".png", ".jpg", ".jpeg")
_SOUNDS = (".flac", ".ogg", ".mp3", ".opus", ".aiff", ".aif")


def _image(source: Path, target: Path) -> None:
    try:
        images: Any = import_module("PIL.Image")
        turned: Any = import_module("PIL.ImageOps").exif_transpose
    except ImportError:
        raise UnsupportedError(
            f"{source}: this build has no reader of images; pip install pillow"
        ) from None
    with images.open(source) as opened:
        image: Any = turned(opened) if opened.format == "JPEG" else opened
        deep = image.mode.startswith("I")
        grey = deep or image.mode in ("1", "L", "LA", "La")
        if not deep:
            image = image.convert("L" if grey else "RGB")
        head = f"P{5 if grey else 6} {image.width} {image.height} {65535 if deep else 255}\n"
        pixels = image.tobytes("raw", "I;16B") if deep else image.tobytes()
        target.write_bytes(head.encode() + pixels)


def _sound(source: Path, target: Path) -> None:
    try:
        soundfile: Any = import_module("soundfile")
    except ImportError:
        raise UnsupportedError(
            f"{source}: this build has no reader of compressed sound; pip install soundfile"
        ) from None
    values, rate = soundfile.read(str(source), dtype="float32")
    soundfile.write(str(target), values, rate, subtype="FLOAT", format="WAV")


def _convert(source: Path, target: Path) -> bool:
    """Writes a file in a form that every build reads; False: it is not an image or a sound."""
    ending = source.suffix.lower()
    if ending in _IMAGES:
        _image(source, target.with_name(target.name + ".pnm"))
    elif ending in _SOUNDS:
        _sound(source, target.with_name(target.name + ".wav"))
    else:
        return False
    return True


def _converted(path: Path) -> Tuple[Path, Any]:
    """The folder or file in that form, and the temporary folder that has it."""
    room = tempfile.TemporaryDirectory(prefix="loom-")
    top = Path(room.name)
    if not path.is_dir():
        _convert(path, top / path.name)
        return next(top.iterdir()), room
    for folder, _, names in os.walk(path):
        here = top / Path(folder).relative_to(path)
        here.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not _convert(Path(folder) / name, here / name):
                (here / name).symlink_to((Path(folder) / name).resolve())
    return top, room


def read(path: "str | os.PathLike[str]", reader: Callable[[str], _T]) -> Tuple[_T, Optional[Any]]:
    """reader(path), or of a copy in a form that the build reads.

    The second value has to live as long as the library may read the files again.
    """
    try:
        return reader(os.fspath(path)), None
    except UnsupportedError as error:
        if "this build has no reader of" not in str(error):
            raise
    there, room = _converted(Path(path))
    return reader(str(there)), room

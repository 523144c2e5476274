"""Files of a data set: found, opened whatever they are packed in, or asked for."""

import gzip
import lzma
import zlib
from pathlib import Path


def found(folder: Path, name: str) -> Path:
    """The file in the folder, also if it is packed as `.gz` or `.xz`.

    The folder may also be the one in which the file itself stands: `MNIST/raw` for the file
    `MNIST/raw/train-images-idx3-ubyte`. No other is searched, since Fashion-MNIST's files have
    the same names.
    """
    places, own = [folder / name], Path(name).parent.parts
    if own and folder.absolute().parts[-len(own) :] == own:
        places.append(folder / Path(name).name)
    for place in places:
        for ending in ("", ".gz", ".xz"):
            path = place.with_name(f"{place.name}{ending}")
            if path.is_file():
                return path
    raise FileNotFoundError(f"{folder / name} must be there, or packed as .gz or .xz; it is not.")


def text(path: Path) -> str:
    """All text of a file, unpacked."""
    try:
        return contents(path).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must hold text as UTF-8; got other bytes: {error}.") from error


def contents(path: Path) -> bytes:
    """All bytes of a file, unpacked."""
    try:
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        if path.suffix == ".xz":
            return lzma.decompress(path.read_bytes())
        return path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise ValueError(
            f"{path} must be a whole {path.suffix} file; could not be unpacked: {error}. "
            "Fetch it again."
        ) from error

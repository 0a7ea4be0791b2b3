"""Any source as a folder of files with a table, as `data=images` reads it."""

import csv
from pathlib import Path

from PIL import Image

from hotloop.data.images.source import SPLITS, ImageSource
from hotloop.errors import UserError


def write_folder(source: ImageSource, folder: Path, *, ending: str = "png") -> Path:
    """Write pictures 000000.png, 000001.png, … and targets.csv with the columns image, split and one a target.

    `data=images` keeps the splits with `data.source.split_column=split`.

    Args:
        source: of 8-bit pictures.
        folder: made where it is missing; files of these names are written over.
        ending: of the pictures' names, one that Pillow writes: png, jpg, webp, …

    Returns:
        The path of targets.csv.

    Raises:
        UserError: the pictures have 16 bits, or the folder cannot be written to.
    """
    table, reader = source.open()
    if reader.bits != 8:
        raise UserError(f"cannot write pictures of {reader.bits} bits to {folder}: only those of 8 bits")
    path = folder / "targets.csv"
    divided = [] if table.split is None else ["split"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["image", *divided, *table.names])
            for number, targets in enumerate(table.targets.tolist()):
                name = f"{number:06d}.{ending}"
                Image.fromarray(reader.read(number)).save(folder / name)
                split = [] if table.split is None else [SPLITS[table.split[number]]]
                rows.writerow([name, *split, *targets])
    except OSError as error:
        raise UserError(f"cannot write pictures to {folder}: {error}") from error
    return path

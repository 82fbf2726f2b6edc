"""Unpack a downloaded archive without writing outside the target folder."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path

from lib.errors import InputError, unwritable


def unpack(file: Path, folder: Path, *, unpacked: bool = True) -> tuple[int, int]:
    """Put the contents of an archive, or the file itself, into a folder.

    :param folder: empty folder.
    :param unpacked: False keeps an archive as it is.
    :return: number of files and their bytes.
    :raises InputError: the archive is damaged, has paths outside the folder, or does not fit.
    """
    try:
        if unpacked and tarfile.is_tarfile(file):
            with tarfile.open(file) as archive:
                # The filter rejects absolute paths, `..`, links that lead out, and devices (PEP 706).
                archive.extractall(folder, filter="data")
        elif unpacked and zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    if not (folder / name).resolve().is_relative_to(folder.resolve()):
                        raise InputError(f"{name} in the archive leads outside.", "Do not trust its publisher.")
                archive.extractall(folder)  # noqa: S202 - each name was checked above
        else:
            shutil.copyfile(file, folder / "data")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(
            f"The archive cannot be unpacked: {error}.", "Import it with unpack=no, or repair it."
        ) from error
    except OSError as error:
        raise unwritable(folder, error) from error
    files = [path for path in folder.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)

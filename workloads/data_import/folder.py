"""The folder of a data set on a claim: either complete or absent.

Unpack a downloaded archive without writing outside the target folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tarfile
import time
import zipfile
from pathlib import Path
from types import TracebackType

from engine.errors import InputError, unwritable

MANIFEST = ".import.json"


class DataFolder:
    """A data set's folder during its import; a context that admits one process at a time.

    Intermediate files are in `.import-NAME` beside it, which outlives the process. They are moved to the folder when
    complete.

    :param folder: folder for the data set.
    :param url: source of the data set.
    :param sha256: hash of the source, 64 lower-case hexadecimal digits.
    :raises InputError: the volume cannot be written, or the folder exists with other content.
    """

    def __init__(self, folder: Path, url: str, sha256: str) -> None:
        self._folder, self._url, self._sha256 = folder, url, sha256
        self.work = folder.parent / f".import-{folder.name}"
        self._lock = -1

    def __enter__(self) -> DataFolder:
        try:
            self.work.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.work / "lock", os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._forget_another()
        except OSError as error:
            raise unwritable(self._folder.parent, error) from error
        if self._folder.exists() and not self.complete:
            there = self._manifest().get("url", "other data that was not imported")
            raise InputError(
                f"{self._folder} exists and holds {there}.", "Choose another destination, or delete that folder."
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._lock)

    @property
    def complete(self) -> bool:
        """Return whether this data set is already imported."""
        return self._manifest().get("sha256") == self._sha256

    def fresh(self) -> Path:
        """Return an empty folder to unpack into; remnants of an earlier call are removed."""
        path = self.work / "unpacked"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def publish(self, files: int, size: int) -> None:
        """Move the unpacked files to the folder, with a manifest, and delete the download.

        :param files: number of files.
        :param size: bytes of all files.
        """
        made = self.work / "unpacked"
        manifest = {"url": self._url, "sha256": self._sha256, "files": files, "bytes": size, "time": time.time()}
        try:
            (made / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
            # After a power cut the manifest must not exist without the data.
            os.sync()
            made.rename(self._folder)
        except OSError as error:
            raise unwritable(self._folder, error) from error
        (self.work / "download").unlink(missing_ok=True)

    def _manifest(self) -> dict[str, object]:
        try:
            found = json.loads((self._folder / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _forget_another(self) -> None:
        """Delete a partial download of another data set with this name."""
        note = self.work / "sha256"
        if not note.exists() or note.read_text(encoding="utf-8") != self._sha256:
            (self.work / "download").unlink(missing_ok=True)
            note.write_text(self._sha256, encoding="utf-8")


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

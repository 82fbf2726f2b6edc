"""Download an archive, verify its hash, and unpack it on a volume.

python -m data_import.main --url https://example.org/mnist.tar.gz --sha256 ab12... --destination /datasets/mnist
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from data_import.download import Download
from data_import.folder import DataFolder, unpack
from engine.errors import ExitCode, InputError
from engine.run.metrics import MetricsLog


def run(arguments: list[str] | None = None, log: MetricsLog | None = None) -> int:
    """Import the data set, unless it exists, and return the exit code: 0, or 2 for invalid input.

    After an interruption at any moment, the same call resumes. Of two concurrent calls, one waits for the other.

    :raises OSError: the server does not answer within its time; a retry may succeed.
    :raises StalledError: the volume does not answer.
    """
    parser = argparse.ArgumentParser(prog="data_import", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--url", required=True, help="http or https; a tar archive (plain, gz, bz2, xz), a zip, or any file"
    )
    parser.add_argument("--sha256", required=True, help="hash of the file at the URL, 64 hexadecimal digits")
    parser.add_argument("--destination", required=True, type=Path, help="folder for the data set")
    parser.add_argument("--unpack", choices=["yes", "no"], default="yes", help="no: keep the file as it is")
    options = parser.parse_args(arguments)
    log = log or MetricsLog()
    try:
        with DataFolder(options.destination, options.url, options.sha256.lower()) as folder:
            if folder.complete:
                log.emit("end", result="already there", destination=str(options.destination))
                return ExitCode.TRAINED
            file = Download(options.url, options.sha256.lower(), folder.work, log).finish()
            files, size = unpack(file, folder.fresh(), unpacked=options.unpack == "yes")
            folder.publish(files, size)
            log.emit("end", result="imported", destination=str(options.destination), files=files, bytes=size)
            return ExitCode.TRAINED
    except InputError as error:
        log.emit("error", code=int(ExitCode.BAD_INPUT), message=error.message, remedy=error.remedy)
        print(error, file=sys.stderr)
        return ExitCode.BAD_INPUT


if __name__ == "__main__":
    sys.exit(run())

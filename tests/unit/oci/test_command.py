"""Commands whose file is in the folder of code, and those whose file is not."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.oci import code_folder
from trainyard.oci.code_command import MOUNT, check
from trainyard.trainings.template import CODE


def look(code: Path, command: str) -> None:
    check(shlex.split(command), code, code_folder.read(code))


@pytest.mark.parametrize(
    "command",
    [
        "",
        "python worker.py",
        "python worker.py --data absent.csv",
        "/opt/venv/bin/python3.13 -u ./mine/../worker.py",
        "python -W ignore -X dev -O worker.py",
        "python -Wonce -Ximporttime worker.py",
        "python -- worker.py",
        "python /opt/trainyard/code/worker.py",
        "python /usr/lib/thing.py",
        "python -c 'import absent'",
        "python -m mine.train",
        "python -um mine.tool",
        "python -m pip list",
        "python",
        "python -",
        "sh -c 'cat absent'",
        "bash -euo pipefail run.sh",
        "bash -O extglob run.sh",
        "./run.sh --fast",
        "/opt/trainyard/code/run.sh",
        "bash -ec absent.sh",
        "python -m mine.tool absent.py",
        "python absent",
        "jupyter lab",
        "nvidia-smi",
    ],
)
def test_these_may_start(code, command: str) -> None:
    look(code, command)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python wroker.py", r"starts wroker\.py, which is not in .*mine\. Did you mean worker\.py\?"),
        ("python -u -O zebra.py", r"starts zebra\.py, which is not in .*Add the file"),
        ("python ../worker.py", r"starts \.\./worker\.py, which is not in"),
        ("python /opt/trainyard/code/wroker.py", r"starts wroker\.py, which is not in .*Did you mean worker\.py\?"),
        (
            "python -m mine.trian",
            r"the module mine\.trian, but .* neither mine/trian\.py .*Did you mean mine/train\.py",
        ),
        ("python -u -m mine", r"the module mine, but .* neither mine\.py nor mine/__main__\.py"),
        ("bash -euo pipefail rnu.sh", r"starts rnu\.sh, which is not in .*Did you mean run\.sh"),
        ("./absent.sh", r"starts absent\.sh, which is not in"),
        ("./worker.py", r"starts worker\.py, which is not executable\. Run chmod \+x"),
        ("python left.py", r"starts left\.py, which is excluded from"),
    ],
)
def test_these_could_not(code, command: str, message: str) -> None:
    (code / "left.py").write_text("")
    (code / ".trainignore").write_text("left.py\n")
    with pytest.raises(TrainyardError, match=message):
        look(code, command)


def test_a_link_is_as_good_as_the_file_behind_it(code) -> None:
    (code / "main.py").symlink_to("worker.py")
    (code / "now").symlink_to("mine")
    look(code, "python main.py")
    look(code, "python now/train.py")
    (code / "gone.py").symlink_to("absent.py")
    with pytest.raises(TrainyardError, match=r"gone\.py, which is not in"):
        look(code, "python gone.py")


def test_the_place_of_the_code_is_that_where_pods_have_it() -> None:
    assert MOUNT == CODE

"""Tests that a planted secret is found in any encoding, and nowhere else."""

from __future__ import annotations

import base64
import gzip
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import quote

import pytest
import secret
from timed import BenchError

VALUE = 'canary "of" 4711/ä'
PLANTED = {
    "as it is": f"password: {VALUE}\n".encode(),
    "JSON": json.dumps({"before": VALUE}).encode(),
    "an address": f"https://x/?t={quote(VALUE, safe='')}".encode(),
    "base64": base64.b64encode(VALUE.encode()),
    "base64 in the middle of something": base64.b64encode(f"xy{VALUE}z".encode()),
    "base64 one further": base64.b64encode(f"x{VALUE}zz".encode()),
    "hexadecimal": VALUE.encode().hex().upper().encode(),
    "compressed": gzip.compress(f"x{VALUE}".encode()),
    # Left by a killed run.
    "compressed and cut off": gzip.compress(f"x{VALUE}".encode() + b"y" * 100, 0)[:-12],
}


@pytest.mark.parametrize("how", PLANTED)
def test_a_planted_secret_is_found(how: str, tmp_path: Path) -> None:
    (tmp_path / "clean").write_bytes(b"canary, nothing else" * 50)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "planted").write_bytes(PLANTED[how])
    expected = [str(tmp_path / "folder" / "planted")]
    assert secret.search(secret.of_folder(tmp_path), ["another value", VALUE]) == expected
    with pytest.raises(BenchError, match=r"A secret is in .*/folder/planted") as caught:
        secret.require_nowhere(secret.of_folder(tmp_path), [VALUE])
    assert VALUE not in str(caught.value)


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "clean").write_bytes(gzip.compress(b"canary"))
    (tmp_path / "broken").write_bytes(b"\x1f\x8b nothing of gzip")
    assert secret.require_nowhere({"a": b"canary of 4711"}, [VALUE]) == 1
    assert secret.search(secret.of_folder(tmp_path), [VALUE]) == []


def test_the_name_of_a_file_counts() -> None:
    assert secret.search([(f"/tmp/{secret.new()}", b""), ("/tmp/a", b"")], ["0123456789ab"]) == []
    value = secret.new()
    assert secret.search([(f"/tmp/{value}", b"")], [value]) == [f"/tmp/{value}"]


def test_files_of_an_archive() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo("var/report.json")
        member.size = len(PLANTED["JSON"])
        tar.addfile(member, io.BytesIO(PLANTED["JSON"]))
        tar.addfile(tarfile.TarInfo("var/empty"))
    assert secret.search(secret.of_archive(packed.getvalue()), [VALUE]) == ["var/report.json"]


def test_arguments_and_environment_of_a_process_are_looked_at() -> None:
    value, other = secret.new(), secret.new()
    child = ["env", f"OTHER={other}", sys.executable, "-c", "import sys; sys.stdin.read()", value]
    with subprocess.Popen(child, stdin=subprocess.PIPE) as process:
        try:
            seen = subprocess.run(
                [sys.executable, "-"], input=secret.PROCESSES.encode(), capture_output=True, check=True
            )
            for each in (value, other):
                assert secret.search([("processes", seen.stdout)], [each]) == ["processes"]
        finally:
            process.communicate()


def test_a_key_is_known_by_what_only_it_has(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(tmp_path / name)]
        subprocess.run(make, check=True)
    one, two = ((tmp_path / name).read_text() for name in ("one", "two"))
    assert secret.search([("one", one.encode()), ("two", two.encode())], secret.key_lines(one)) == ["one"]


def test_a_value_that_turns_up_by_chance_is_refused() -> None:
    with pytest.raises(ValueError, match="by chance"):
        secret.forms("secret")

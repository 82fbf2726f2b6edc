"""Files with secrets are not packed: each name, each content, and how a folder leaves them out or allows them."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest

from trainyard.core.errors import TrainyardError
from trainyard.oci import code_folder, secrets

BODY = base64.b64encode(b"no key at all, only bytes " * 4).decode()
KEY = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{BODY}\n"
"""In parts, so that this file does not look like one that holds a key."""
AWS = "AKIA" + "ABCDEFGH234567QX"
SECRET = "/+aB9" * 8
CERTIFICATE = f"-----BEGIN {'CERTIFICATE'}-----\n{BODY}\n-----END CERTIFICATE-----\n"
GOOGLE = '{"project_id": "x", "type": "service_account", "private_key_id": "y", "private_key": "z"}'


def names(code: Path) -> list[str]:
    return [entry.name for entry in code_folder.read(code)]


def put(code: Path, name: str, text: str = "x") -> None:
    (code / name).parent.mkdir(parents=True, exist_ok=True)
    (code / name).write_text(text)


@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".env.local", ".envrc", ".netrc", ".git-credentials", ".pypirc", ".vault_pass", "mine/.env"),
        *("a.pem", "a.key", "a.p12", "a.pfx", "id_rsa", "id_ecdsa", "id_ed25519", "mine/deep/id_dsa"),
        *("credentials", "credentials.json", "kaggle.json", "client_secret_1.json", "kubeconfig", "lab.kubeconfig"),
        *(".npmrc", ".s3cfg", ".boto", "rclone.conf", "id_ed25519_github", "id_rsa.bak", "id_ecdsa_sk"),
        *(".ENV", "ID_RSA", "server.PEM", "Credentials.json", ".AWS/config"),
        *(".aws/config", ".ssh/known_hosts", ".kube/config", ".docker/config.json", "mine/.aws/credentials"),
        *(".venv/bin/python", "venv/pyvenv.cfg", "mine/some/pyvenv.cfg"),
    ],
)
def test_a_name_of_secrets_is_refused_left_out_or_allowed(code: Path, name: str) -> None:
    before = names(code)
    put(code, name)
    with pytest.raises(TrainyardError, match="would be packed with its secrets") as refused:
        code_folder.read(code)
    said = refused.value.message.partition(": ")[2].split(" ")[0]
    assert name == said or name.startswith(f"{said}/")
    assert f"such as !{said}." in refused.value.remedy
    (code / ".trainignore").write_text(f"/{said}\n")
    assert names(code) == before
    (code / ".trainignore").write_text(f"!{said}\n")
    assert name in names(code)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (KEY, "a private key"),
        (f'KEY = """{KEY}"""', "a private key"),
        (f"KEY = ({KEY!r})", "a private key"),
        (KEY.replace("RSA ", "").replace("\n", '\\n" \\\n  "'), "a private key"),
        (KEY.replace("RSA ", "OPENSSH "), "a private key"),
        (KEY.replace("RSA ", "").replace(BODY, f"Proc-Type: 4,ENCRYPTED\n\n{BODY}"), "a private key"),
        (f"aws_access_key_id = {AWS}", "an access key of AWS"),
        (f'key="{AWS.replace("AKIA", "ASIA")}"', "an access key of AWS"),
        (GOOGLE, "a service account of Google Cloud"),
        (
            GOOGLE.replace('"type"', f'"more": {{"deep": "{"x" * 30_000}"}}, "type"'),
            "a service account of Google Cloud",
        ),
        (f"aws_secret_access_key = {SECRET}", "a secret key of AWS"),
        (f"export AWS_SECRET_ACCESS_KEY='{SECRET}'", "a secret key of AWS"),
        (f'{{"SecretAccessKey": "{SECRET}"}}', "a secret key of AWS"),
        (f"TOKEN = 'ghp_{'a1' * 18}'", "a token of GitHub"),
        (f"TOKEN = 'github_pat_{'A1' * 11}_{'b' * 59}'", "a token of GitHub"),
        (f"TOKEN = 'glpat-{'a_-1' * 5}'", "a token of GitLab"),
        (f"TOKEN = 'hf_{'aB' * 17}'", "a token of Hugging Face"),
    ],
)
def test_a_secret_in_a_program_is_refused_or_allowed(code: Path, text: str, what: str) -> None:
    put(code, "mine/settings.py", text)
    with pytest.raises(TrainyardError, match=rf"mine/settings\.py contains {what}\."):
        code_folder.read(code)
    (code / ".trainignore").write_text("!/mine/settings.py\n")
    assert "mine/settings.py" in names(code)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_key_in_another_encoding_is_refused(code: Path, encoding: str) -> None:
    (code / "a.txt").write_bytes(("" if encoding == "utf-16" else "\ufeff").encode(encoding) + KEY.encode(encoding))
    with pytest.raises(TrainyardError, match=r"a\.txt contains a private key\."):
        code_folder.read(code)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.pem", CERTIFICATE + KEY),
        ("a.pem", KEY),
        ("a.pem", ""),
        ("a.pem", CERTIFICATE + CERTIFICATE.replace("CERTIFICATE", "DH PARAMETERS")),
        ("a.pem", CERTIFICATE + "#" * (1 << 20)),
        ("a.key", CERTIFICATE),
        (".env.example", f"aws_secret_access_key={SECRET}"),
    ],
)
def test_what_only_resembles_a_harmless_file_is_refused(code: Path, name: str, text: str) -> None:
    put(code, name, text)
    with pytest.raises(TrainyardError, match="would be packed with its secrets"):
        code_folder.read(code)


@pytest.mark.parametrize(
    "text",
    [
        '"type": "service_account", ',
        '"private_key" ',
        '"type" : "service_account" "private_key" : "" ',
        "-----BEGIN ",
        f"-----BEGIN {'PRIVATE'} KEY-----{' ' * 64}",
        "-----BEGIN A B C ",
        "A",
        "secret_access_key" + " " * 9 + "=" + " " * 9,
        "ghp_",
        "glpat- ",
        "AKIA",
    ],
)
def test_a_hostile_file_is_read_in_linear_time(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text((text * (1 + 2_000_000 // len(text)))[:2_000_000] + f" service_account {'PRIVATE'} KEY secret")
    began = time.process_time()
    assert secrets.in_content(path) == ""
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".env.example", "TOKEN=\n"),
        (".ENV.Sample", "TOKEN=\n"),
        ("id_rsa.pub", "ssh-rsa AAAA"),
        ("ca.pem", CERTIFICATE),
        ("ca.PEM", f"# Issuer: an authority\n{CERTIFICATE}\n{CERTIFICATE}"),
        (
            "f.py",
            'key = os.environ["AWS_SECRET_ACCESS_KEY"]; secret_access_key = settings.secret_access_key_of_the_site',
        ),
        ("g.py", "glpat-short github_pat_x"),
        ("h.py", 'if found["type"] == "service_account": key = found["private_key"]'),
        ("environment.py", "x"),
        ("keys.py", "x"),
        ("credentials.py", "x"),
        ("id_map.py", "x"),
        ("venv/train.py", "x"),
        ("a.pem.py", f"if text.startswith('-----BEGIN RSA {'PRIVATE'} KEY-----'): raise SystemExit('not a key')"),
        ("b.py", f"-----BEGIN {'CERTIFICATE'}-----\n{BODY}"),
        ("c.py", f"{AWS}X {AWS.lower()} X{AWS}"),
        ("d.json", '{"type": "service_account"}'),
        ("e.py", "hf_hub_download(ghp_x)"),
    ],
)
def test_what_only_resembles_a_secret_is_packed(code: Path, name: str, text: str) -> None:
    put(code, name, text)
    assert name in names(code)


def test_a_virtual_environment_is_named_once_and_not_entered(code: Path) -> None:
    for number in range(20):
        put(code, f".venv/lib/a{number}.pem")
    (code / ".venv/out").symlink_to("/etc")
    with pytest.raises(TrainyardError) as refused:
        code_folder.read(code)
    assert refused.value.message.endswith("secrets: .venv is a virtual environment.")


def test_a_link_with_the_name_of_a_secret_is_refused(code: Path) -> None:
    (code / ".env").symlink_to("worker.py")
    with pytest.raises(TrainyardError, match=r"\.env has the name of a file with secrets"):
        code_folder.read(code)


def test_a_line_that_allows_brings_back_nothing_that_is_left_out(code: Path) -> None:
    put(code, "a.pem")
    (code / ".trainignore").write_text("!a.pem\n*.pem\n")
    assert "a.pem" not in names(code)


def test_a_file_that_is_too_big_is_not_read(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("it was read"))
    with (code / "data.bin").open("wb") as file:
        file.truncate(code_folder.LIMIT + 1)
    with pytest.raises(TrainyardError, match="at most 64 MiB"):
        code_folder.read(code)

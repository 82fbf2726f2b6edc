"""Files that hold secrets, by their names and by what is in them: an image of code is no place for them.

Who may pull an image reads all of it, and a layer that is pushed once stays in registries and on nodes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

ENVIRONMENT = "pyvenv.cfg"
"""A folder with this file is a virtual environment (PEP 405)."""
FOLDERS = {
    ".venv": "is a virtual environment",
    **dict.fromkeys((".aws", ".azure", ".docker", ".gcloud", ".gnupg", ".kaggle", ".kube", ".ssh"), "holds logins"),
}
"""Name of a folder in lower case -> what it is, as the end of a sentence."""
FILES = (
    ".env*", ".netrc", "_netrc", ".git-credentials", ".pypirc", ".pgpass", ".htpasswd", ".dockercfg", ".vault_pass*",
    ".npmrc", ".s3cfg", ".boto", "rclone.conf", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
    "credentials", ".credentials", "credentials.json", "credentials.yaml", "credentials.yml", "credentials.ini",
    "application_default_credentials.json", "client_secret*.json", "kaggle.json", "kubeconfig", "*.kubeconfig",
)  # fmt: skip
"""Names of files with keys and passwords, as patterns of `fnmatch` in lower case."""
HARMLESS = (".env.example", ".env.sample", ".env.template", "id_*.pub")
"""Names that `FILES` has, too, of files that are made to be shown. Their content is looked at like any other."""
CERTIFICATES = 1 << 20
"""Bytes of a file of certificates; the authorities that a browser trusts need a quarter."""
CONTENTS = (
    # A program that only looks for the header has no key behind it.
    (
        "a private key",
        b"private key",
        (
            rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|[\s\"'+,()\\]){0,64}"
            rb"(?:Proc-Type:|Version:|Comment:|[A-Za-z0-9+/]{16})",
        ),
    ),
    ("an access key of AWS", b"akia", (rb"(?<![A-Za-z0-9/+])AKIA[A-Z2-7]{16}(?![A-Za-z0-9/+=])",)),
    ("an access key of AWS", b"asia", (rb"(?<![A-Za-z0-9/+])ASIA[A-Z2-7]{16}(?![A-Za-z0-9/+=])",)),
    (
        "a secret key of AWS",
        b"secret",
        (rb"(?i:secret_?access_?key)[\"']?\s{0,9}[=:]\s{0,9}[\"']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",),
    ),
    (
        "a service account of Google Cloud",
        b"service_account",
        (rb"\"type\"\s{0,9}:\s{0,9}\"service_account\"", rb"\"private_key\"\s{0,9}:\s{0,9}\"[^\"]"),
    ),
    ("a token of GitHub", b"gh", (rb"(?<![A-Za-z0-9_])gh[pousr]_[A-Za-z0-9]{36}(?![A-Za-z0-9])",)),
    (
        "a token of GitHub",
        b"github_pat_",
        (rb"(?<![A-Za-z0-9_])github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}(?![A-Za-z0-9])",),
    ),
    ("a token of GitLab", b"glpat-", (rb"(?<![A-Za-z0-9_-])glpat-[A-Za-z0-9_-]{20}",)),
    ("a token of Hugging Face", b"hf_", (rb"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{34}(?![A-Za-z0-9])",)),
)
"""What is found; a text in lower case that every find contains (looking for it is fast); and patterns in bytes, each of
which is in the file somewhere. One pattern with any text between two words would need quadratic time."""


def in_folder(name: str, files: Sequence[str]) -> str:
    """Why a folder of this name with these files is not packed, as the end of a sentence; empty where it may be."""
    return FOLDERS.get(name.lower()) or ("is a virtual environment" if ENVIRONMENT in files else "")


def in_name(path: Path) -> str:
    """Why a file is not packed for its name, as the end of a sentence; empty where nothing is known of it.

    A file of certificates has the suffix of one with a key, so that its content decides.
    """
    name = path.name.lower()
    if _is_one_of(name, HARMLESS) or not _is_one_of(name, FILES):
        return ""
    return "" if name.endswith(".pem") and _is_certificates(path) else "has the name of a file with secrets"


def in_content(path: Path) -> str:
    """Why a file is not packed for its content, as the end of a sentence; empty where no secret is found.

    :raises OSError: it cannot be read.
    """
    content = path.read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # As some shells of Windows write what a program prints.
        content = content.decode("utf-16", "replace").encode("utf-8", "replace")
    lower = content.lower()
    for what, part, patterns in CONTENTS:
        if part in lower and all(re.search(pattern, content) for pattern in patterns):
            return f"contains {what}"
    return ""


def _is_one_of(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, each) for each in patterns)


def _is_certificates(path: Path) -> bool:
    """Whether a file, and no link to one, has certificates in PEM (RFC 7468), and nothing else in PEM."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            content = file.read(CERTIFICATES + 1)
    except OSError:
        return False
    begun = re.findall(rb"-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE-----)?", content)
    return len(content) <= CERTIFICATES and bool(begun) and all(begun) and b"PRIVATE KEY" not in content

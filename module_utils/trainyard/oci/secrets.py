"""Files that hold secrets, by their names and by what is in them: an image of code is no place for them.

Who may pull an image reads all of it, and a layer that is pushed once stays in registries and on nodes.
"""

from __future__ import annotations

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
"""Name of a folder -> what it is, as the end of a sentence."""
FILES = (
    ".env*", ".netrc", "_netrc", ".git-credentials", ".pypirc", ".pgpass", ".htpasswd", ".dockercfg", ".vault_pass*",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
    "credentials", ".credentials", "credentials.json", "credentials.yaml", "credentials.yml", "credentials.ini",
    "application_default_credentials.json", "client_secret*.json", "kaggle.json", "kubeconfig", "*.kubeconfig",
)  # fmt: skip
"""Names of files with keys and passwords, as patterns of `fnmatch`."""
CONTENTS = (
    # A program that only looks for the header has no key behind it.
    (
        "a private key",
        b"PRIVATE KEY",
        rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|[\s\"'+,()\\]){0,64}"
        rb"(?:Proc-Type:|Version:|Comment:|[A-Za-z0-9+/]{16})",
    ),
    ("an access key of AWS", b"AKIA", rb"(?<![A-Za-z0-9/+])AKIA[A-Z2-7]{16}(?![A-Za-z0-9/+=])"),
    ("an access key of AWS", b"ASIA", rb"(?<![A-Za-z0-9/+])ASIA[A-Z2-7]{16}(?![A-Za-z0-9/+=])"),
    (
        "a service account of Google Cloud",
        b"service_account",
        rb"\"type\"\s{0,9}:\s{0,9}\"service_account\"[^}]{0,20000}\"private_key\"|"
        rb"\"private_key\"[^}]{0,20000}\"type\"\s{0,9}:\s{0,9}\"service_account\"",
    ),
    ("a token of GitHub", b"gh", rb"(?<![A-Za-z0-9_])gh[pousr]_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("a token of Hugging Face", b"hf_", rb"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{34}(?![A-Za-z0-9])"),
)
"""What is found, a text that every find contains (looking for it is fast), and its pattern in bytes."""


def in_folder(name: str, files: Sequence[str]) -> str:
    """Why a folder of this name with these files is not packed, as the end of a sentence; empty where it may be."""
    return FOLDERS.get(name) or ("is a virtual environment" if ENVIRONMENT in files else "")


def in_name(name: str) -> str:
    """Why a file of this name is not packed, as the end of a sentence; empty where nothing is known of it."""
    return "has the name of a file with secrets" if any(fnmatchcase(name, each) for each in FILES) else ""


def in_content(path: Path) -> str:
    """Why a file is not packed for its content, as the end of a sentence; empty where no secret is found.

    :raises OSError: it cannot be read.
    """
    content = path.read_bytes()
    for what, part, pattern in CONTENTS:
        if part in content and re.search(pattern, content):
            return f"contains {what}"
    return ""

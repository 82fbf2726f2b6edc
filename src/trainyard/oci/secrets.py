"""Detect files with secrets, by name and by content, so that they are not packed into code images.

All users who may pull an image can read all of it, and a pushed layer stays in registries and on nodes.
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
    **dict.fromkeys((".aws", ".azure", ".docker", ".gcloud", ".gnupg", ".kaggle", ".kube", ".ssh"), "has credentials"),
}
"""Name of a folder in lower case -> its description, as the end of a sentence."""
FILES = (
    ".env*", ".netrc", "_netrc", ".git-credentials", ".pypirc", ".pgpass", ".htpasswd", ".dockercfg", ".vault_pass*",
    ".npmrc", ".s3cfg", ".boto", "rclone.conf", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
    "credentials", ".credentials", "credentials.json", "credentials.yaml", "credentials.yml", "credentials.ini",
    "application_default_credentials.json", "client_secret*.json", "kaggle.json", "kubeconfig", "*.kubeconfig",
)  # fmt: skip
"""Names of files with keys and passwords, as `fnmatch` patterns in lower case."""
HARMLESS = (".env.example", ".env.sample", ".env.template", "id_*.pub")
"""Exceptions from `FILES`: files that are meant to be public. Their content is still checked."""
CERTIFICATES = 1 << 20
"""Largest certificate file in bytes; the CAs that a browser trusts need a quarter of that."""
CONTENTS = (
    # The header alone is not enough: programs that search for it contain it without a key.
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
"""Description of the secret; a lower-case text that each match contains, for a fast pre-check; and byte patterns that
must all occur in the file. A single pattern with arbitrary text between two words would need quadratic time."""


def in_folder(name: str, files: Sequence[str]) -> str:
    """Return why a folder of this name with these files is not packed, as the end of a sentence; empty if it may be."""
    return FOLDERS.get(name.lower()) or ("is a virtual environment" if ENVIRONMENT in files else "")


def in_name(path: Path) -> str:
    """Return why a file is not packed because of its name, as the end of a sentence; empty if the name is harmless.

    Certificates and keys share the suffix .pem, so the content decides for it.
    """
    name = path.name.lower()
    if _is_one_of(name, HARMLESS) or not _is_one_of(name, FILES):
        return ""
    return "" if name.endswith(".pem") and _is_certificates(path) else "has the name of a file with secrets"


def in_content(path: Path) -> str:
    """Return why a file is not packed because of its content, as the end of a sentence; empty if no secret is found.

    :raises OSError: the file cannot be read.
    """
    content = path.read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # Some Windows shells redirect output in UTF-16.
        content = content.decode("utf-16", "replace").encode("utf-8", "replace")
    lower = content.lower()
    for what, part, patterns in CONTENTS:
        if part in lower and all(re.search(pattern, content) for pattern in patterns):
            return f"contains {what}"
    return ""


def _is_one_of(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, each) for each in patterns)


def _is_certificates(path: Path) -> bool:
    """Return whether a regular file, not a link, contains PEM certificates (RFC 7468) and no other PEM data."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            content = file.read(CERTIFICATES + 1)
    except OSError:
        return False
    begun = re.findall(rb"-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE-----)?", content)
    return len(content) <= CERTIFICATES and bool(begun) and all(begun) and b"PRIVATE KEY" not in content

"""The address of a repository, which may contain a password."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit, urlunsplit

# A shell function, because git appends an argument.
_HELPER = """!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$SITE_USER" "$SITE_PASSWORD"; }; f"""


def opened(url: str) -> tuple[str, dict[str, str]]:
    """Return an address without name and password, and the environment that gives both to git for this host only.

    All users of a machine may read the arguments of processes, and git passes an address on to another program.
    """
    try:
        parts = urlsplit(url)
        name, password = parts.username or "", parts.password
    except ValueError:
        return url, {}
    if parts.scheme not in ("http", "https") or password is None:
        return url, {}
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=host)), {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"credential.{parts.scheme}://{host}.helper",
        "GIT_CONFIG_VALUE_0": _HELPER, "SITE_USER": unquote(name), "SITE_PASSWORD": unquote(password),
    }  # fmt: skip


def without_password(text: str) -> str:
    """Return a text without the user names and passwords of addresses in it."""
    return re.sub(r"(://)[^/@\s]*@", r"\1", text)

"""Replace secret values in results, messages, differences and output."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

MASK = "********"

SHORTEST = 4
"""Minimum number of characters of a secret. Masking shorter values would garble every text and protect nothing."""

LINE = 16
"""Minimum number of characters of a line that is masked alone, as keys are often shown line by line."""

PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
FIELDS = r"(?P<field>(?:client-key-data|password|token)\"?: ?\"?)[A-Za-z0-9+/=._-]{16,}"
"""Secrets that are known by their shape alone, as in a kubeconfig."""


class Masker:
    """Replaces known secret values, and text in the shape of a key.

    :param values: secret texts; each is also found in the encodings of JSON, YAML, URLs and base64.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values for form in _forms(value)}
        # The longest first: a secret that begins with another one is masked as a whole.
        known = [re.escape(form) for form in sorted(forms, key=lambda form: (-len(form), form))]
        self._known = re.compile("|".join(known)) if known else None
        self._shaped = re.compile(f"{PRIVATE_KEY}|{FIELDS}", re.DOTALL)

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        if self._known:
            text = self._known.sub(MASK, text)
        return self._shaped.sub(lambda found: f"{found['field'] or ''}{MASK}", text)

    def data(self, value: Any) -> Any:
        """Return plain data without secrets; the names of fields are masked, too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.data(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(each) for each in value]
        return value


def _forms(value: str) -> Iterator[str]:
    value = value.strip()
    lines = [line.strip() for line in value.splitlines()]
    for part in {value, *(line for line in lines if len(lines) > 1 and len(line) >= LINE)}:
        if len(part) < SHORTEST:
            continue
        yield part
        yield json.dumps(part)[1:-1]
        # The form in single quotes of YAML.
        yield part.replace("'", "''")
        yield quote(part, safe="")
        yield from _base64(part.encode())


def _base64(data: bytes) -> Iterator[str]:
    """Yield the base64 forms of data at each offset in a longer text, without characters that depend on neighbours."""
    for before in range(3):
        code = base64.b64encode(b"\0" * before + data).decode()
        first = -(-before * 8 // 6)
        last = (before + len(data)) * 8 // 6
        if last - first >= SHORTEST:
            yield code[first:last]

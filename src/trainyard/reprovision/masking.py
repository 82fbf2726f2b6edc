"""Secret values are replaced wherever they turn up: in results, messages, differences and output."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

MASK = "********"

SHORTEST = 4
"""Characters below which a value is no secret: masking it would garble every text and protect nothing."""

LINE = 16
"""Characters from which one line of a longer secret is masked by itself: keys are shown line by line."""

PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
FIELDS = r"(?P<field>(?:client-key-data|password|token)\"?: ?\"?)[A-Za-z0-9+/=._-]{16,}"
"""What is secret by its shape, as in a kubeconfig, whoever wrote it."""


class Masker:
    """Replaces values that are known to be secret, and what has the shape of a key.

    :param values: secret texts; each is found as it is, and as JSON, YAML, URLs and base64 write it.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values for form in _forms(value)}
        # The longest first: a secret that begins with another one is masked as a whole.
        known = [re.escape(form) for form in sorted(forms, key=lambda form: (-len(form), form))]
        self._known = re.compile("|".join(known)) if known else None
        self._shaped = re.compile(f"{PRIVATE_KEY}|{FIELDS}", re.DOTALL)

    def text(self, text: str) -> str:
        """The text without secrets."""
        if self._known:
            text = self._known.sub(MASK, text)
        return self._shaped.sub(lambda found: f"{found['field'] or ''}{MASK}", text)

    def data(self, value: Any) -> Any:
        """The same for plain data; the names of fields are masked, too."""
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
        # Between single quotes of YAML.
        yield part.replace("'", "''")
        yield quote(part, safe="")
        yield from _base64(part.encode())


def _base64(data: bytes) -> Iterator[str]:
    """What base64 makes of the data wherever it begins in a longer text: the characters that its neighbours have no
    part in."""
    for before in range(3):
        code = base64.b64encode(b"\0" * before + data).decode()
        first = -(-before * 8 // 6)
        last = (before + len(data)) * 8 // 6
        if last - first >= SHORTEST:
            yield code[first:last]

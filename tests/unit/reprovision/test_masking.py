"""A secret is found in every form in which it may turn up."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from trainyard.drift.masking import MASK, Masker

SECRET = "c4nary\"secret/4711 &'s"
BODY = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU\nAAAAEbm9uZQAAAAAAAAABAAAAMwAA"
KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        f"password={SECRET}.",
        json.dumps({"password": SECRET}),
        "password: '" + SECRET.replace("'", "''") + "'",
        f"https://user:{quote(SECRET, safe='')}@host/",
        *(base64.b64encode(f"{'x' * before}{SECRET}{'y' * after}".encode()).decode()
          for before in range(3) for after in range(3)),
    ],
)  # fmt: skip
def test_every_form_is_masked(text: str) -> None:
    masked = Masker([SECRET]).text(text)
    assert MASK in masked
    for form in (SECRET, json.dumps(SECRET)[1:-1], SECRET.replace("'", "''"), quote(SECRET, safe="")):
        assert form not in masked
    # At its edges a character of base64 holds up to six bits of it.
    assert sum(len(part) for part in masked.split(MASK)) <= len(text) - len(SECRET) + 2


def test_data_is_masked_at_every_depth() -> None:
    found = Masker([SECRET]).data({"a": [{SECRET: [SECRET, 1, None, True]}], "b": (f"x{SECRET}",)})
    assert found == {"a": [{MASK: [MASK, 1, None, True]}], "b": [f"x{MASK}"]}


def test_a_longer_secret_is_masked_as_a_whole_and_line_by_line() -> None:
    masker = Masker(["first-secret", "first-secret-longer", "header\nline-of-sixteen-characters"])
    assert masker.text("first-secret-longer") == MASK
    assert masker.text("a line-of-sixteen-characters b") == f"a {MASK} b"


@pytest.mark.parametrize("value", ["", "on", "abc", "  \n"])
def test_what_is_too_short_to_be_secret_garbles_nothing(value: str) -> None:
    assert Masker([value]).text("on and abc") == "on and abc"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"before {KEY} after", f"before {MASK} after"),
        (KEY[:60], MASK),
        ("client-key-data: LS0tLS1CRUdJTiBQUklWQVRF", f"client-key-data: {MASK}"),
        ('"token": "eyJhbGciOiJSUzI1NiJ9.e30"', f'"token": "{MASK}"'),
        ("token: short", "token: short"),
    ],
)
def test_what_has_the_shape_of_a_key_is_masked(text: str, masked: str) -> None:
    assert Masker().text(text) == masked

"""The forms that the roles declare, for tests of rules."""

from __future__ import annotations

from typing import Any

from checkout import ROOT, read_yaml

ROLE_FORMS: dict[str, Any] = {
    name: form for path in sorted(ROOT.glob("roles/*/meta/forms.yml")) for name, form in read_yaml(path).items()
}

"""What a description is known by, and what of it cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.catalogue.test_complete import BUNDLE, ENTRY, SITE
from trainyard.core.errors import TrainyardError
from trainyard.trainings.catalogue import read_catalogue
from trainyard.trainings.resolve import resolve, resolve_all, strange_keys
from trainyard.trainings.site_images import Defaults
from trainyard.trainings.spec import parse_training


def test_a_description_has_a_hash_whatever_images_are_made() -> None:
    def hashed(site: Defaults = SITE, **wanted: Any) -> str:
        (resolved,) = resolve_all([{"workload": "my_ps", **wanted}], {"my_ps": ENTRY})
        found = resolved.bound(site)
        assert parse_training(found).description_hash == found["description_hash"]
        return str(found["description_hash"])

    first = hashed()
    assert first == resolve({"workload": "my_ps"}, ENTRY).description["description_hash"]
    assert first == hashed(Defaults("", BUNDLE, {"node": "w1", "path": "/srv"}))
    # The same in other words: a call of train.yml and an inventory say it differently.
    assert first == hashed(run="my-ps", worker={"replicas": "3"}, flags={"train_steps": "10"}, priority=None)
    others = [{"train_steps": 11}, {"ps": 2}, {"total_timeout": 9}, {"image": "r/mine:1"}, {"env": {"MODE": "b"}}]
    assert len({first, *(hashed(**each) for each in others)}) == 6


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"limits": "s3cret"}, "limits is a text: it must be a mapping"),
        ({"flags": "--fast"}, "flags is a text"),
        ({"logs": "/srv"}, "logs is a text"),
        ({"env": ["A=1"]}, "env is a list"),
        ({"data": 5}, "data is a single value"),
        ({"worker": []}, "worker is a list"),
        ({"worker": {"limits": "2"}}, "worker.limits is a text"),
        ({"ps": {"env": "s3cret"}}, "ps.env is a text"),
    ],
)
def test_texts_where_mappings_belong(wanted: dict, said: str, tmp_path: Path) -> None:
    listed = [{"workload": "my_ps", **wanted}]
    for call in (
        lambda: resolve_all(listed, {"my_ps": ENTRY}),
        lambda: resolve(listed[0], ENTRY),
        lambda: read_catalogue([_folder(tmp_path, {**ENTRY, **wanted})], tmp_path),
    ):
        with pytest.raises(TrainyardError) as refused:
            call()
        assert said in str(refused.value) and "s3cret" not in str(refused.value)


def _folder(path: Path, entry: dict) -> Path:
    (path / "more").mkdir(exist_ok=True)
    (path / "more" / "entry.yml").write_text(yaml.safe_dump(entry), encoding="utf-8")
    return path / "more"


def test_nobody_gives_the_hash_of_a_description_himself() -> None:
    (fault,) = strange_keys({"workload": "my_ps", "description_hash": "x"}, ENTRY)
    assert "no such key" in str(fault)

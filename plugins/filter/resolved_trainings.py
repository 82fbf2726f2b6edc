"""Filters that resolve `workloads_trainings`, and name the images of these trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from trainyard.core.errors import TrainyardError
from trainyard.site.short_names import train_call
from trainyard.trainings.catalogue import read_catalogue
from trainyard.trainings.resolve import Resolved, resolve_all
from trainyard.trainings.site_images import PACKED, Defaults

Wanted = Sequence[Mapping[str, Any]]


def resolved_trainings(
    wanted: Wanted, folders: Sequence[str], require_gpu: bool = True, call: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the trainings of a site, or the one that a call of train.yml requests, before their images are built.

    :param folders: the site's own catalogues.
    :param require_gpu: `workloads_require_gpu` of the site.
    :param call: the short names of the call, which `validate_site` has checked.
    :return: `description`, `images`, `code`, `expected` and `wait` of each training, see `resolve.Resolved`.
    :raises AnsibleFilterError: an unknown workload or key, or two runs with the same name.
    """
    try:
        catalogue = read_catalogue(folders)
        if call is not None:
            called, problems = train_call(call, wanted, catalogue)
            if called is None:
                raise AnsibleFilterError("; ".join(map(str, problems)))
            wanted = [called.wanted]
        trainings = resolve_all(wanted, catalogue, require_gpu=require_gpu)
    except TrainyardError as error:
        raise AnsibleFilterError(str(error)) from error
    return [
        {
            "description": each.description,
            "images": each.images,
            "code": each.code,
            "expected": each.expected,
            "wait": each.wait,
        }
        for each in trainings
    ]


def bound_descriptions(resolved: Sequence[Mapping[str, Any]], site: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the descriptions of trainings with the references of their images, for the module `training`.

    :param resolved: result of `resolved_trainings`.
    :param site: fields of `site_images.Defaults`.
    :raises AnsibleFilterError: an image is not built.
    """
    try:
        return [Resolved(each["description"], each["code"]).bound(Defaults(**site)) for each in resolved]
    except TrainyardError as error:
        raise AnsibleFilterError(str(error)) from error


def code_layouts(packed: Sequence[Mapping[str, Any]], registry: str, tagged: bool = False) -> list[dict[str, str]]:
    """Return the layouts of folders of code, and their references; see `image_layouts`.

    :param packed: results of the module `code_image`.
    :param registry: registry and path of the trainings' images; empty without one.
    :param tagged: whether the references are unique tags in the path of the registry, for a push.
    """
    found = {}
    for each in packed:
        name = "/".join(filter(None, (registry.partition("/")[2], PACKED)))
        by_digest = Defaults(registry, code={PACKED: each["digest"]}).packed(PACKED, each["item"]["run"])
        named = {"reference": f"{name}:{each['tag']}", "digest": each["digest"]} if tagged else {"reference": by_digest}
        found[by_digest] = {**named, "layout": each["layout"]}
    return list(found.values())


def image_layouts(
    images: Sequence[Mapping[str, str]],
    bundle: Mapping[str, Mapping[str, Any]],
    registry: str,
    versions: Sequence[str] | None = None,
) -> list[dict[str, str]]:
    """Return the layouts of images, and their references.

    :param images: `images` of `resolved_trainings`.
    :param bundle: artefacts of the bundle by name.
    :param registry: registry and path of the trainings' images; empty without one.
    :param versions: one tag for each image to push it to the path of the registry. Without them the references are
        those of the trainings, by digest.
    """
    found = []
    for index, image in enumerate(images):
        made = bundle.get(image["artefact"], {})
        layout = made.get("layout", "")
        if versions is None:
            found.append({"reference": Defaults(registry, bundle).reference(image), "layout": layout})
        else:
            name = "/".join(filter(None, (registry.partition("/")[2], image["repository"])))
            reference = f"{name}:{versions[index]}"
            found.append({"reference": reference, "layout": layout, "digest": made.get("digest", "")})
    return found


class FilterModule:
    def filters(self) -> dict[str, Callable[..., object]]:
        found: list[Callable[..., object]] = [bound_descriptions, code_layouts, image_layouts, resolved_trainings]
        return {function.__name__: function for function in found}

"""Filters that turn `workloads_trainings` into complete descriptions, and into the images of these trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from trainyard.core.errors import TrainyardError
from trainyard.site.short_names import train_call
from trainyard.trainings import described as trainings
from trainyard.trainings.catalogue import read_catalogue
from trainyard.trainings.site_images import PACKED, Defaults

Wanted = Sequence[Mapping[str, Any]]


def complete_trainings(wanted: Wanted, folders: Sequence[str], site: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the complete description of each training for the module `training`.

    :param folders: the site's own catalogues.
    :param site: fields of `references.Defaults`.
    :raises AnsibleFilterError: an unknown workload or key, or two runs with the same name.
    """
    try:
        return trainings.complete_all(wanted, read_catalogue(folders), Defaults(**site))
    except TrainyardError as error:
        raise AnsibleFilterError(str(error)) from error


def called_training(wanted: Wanted, folders: Sequence[str], given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the requested training of a call of train.yml, in a list that replaces the site's own.

    :param folders: the site's own catalogues.
    :param given: the short names of the call, which `validate_site` has checked.
    """
    call, problems = train_call(given, wanted, read_catalogue(folders))
    if call is None:
        raise AnsibleFilterError("; ".join(map(str, problems)))
    return [call.wanted]


def training_images(wanted: Wanted, folders: Sequence[str], require_gpu: bool = True) -> list[dict[str, str]]:
    """Return repository and artefact of the images that the trainings need and that the project builds.

    :param folders: the site's own catalogues.
    :param require_gpu: `workloads_require_gpu` of the site.
    """
    try:
        catalogue = read_catalogue(folders)
        pairs = [(each, trainings.entry_of(each, catalogue)) for each in wanted]
        found = [image for pair in pairs for image in trainings.images(*pair, require_gpu=require_gpu)]
    except TrainyardError as error:
        raise AnsibleFilterError(str(error)) from error
    return list({image["artefact"]: image for image in found}.values())


def training_code(wanted: Wanted, folders: Sequence[str]) -> list[dict[str, Any]]:
    """Return the folders of code of the trainings, with the commands that run in them."""
    try:
        catalogue = read_catalogue(folders)
        return [code for each in wanted for code in trainings.code_folders(each, trainings.entry_of(each, catalogue))]
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


def training_runs(wanted: Wanted, folders: Sequence[str]) -> list[dict[str, Any]]:
    """Return all runs for the module `verify_site`.

    The places of images, archives and files are unknown here. The verdict does not need them.

    :raises AnsibleFilterError: an unknown workload.
    """
    try:
        catalogue = read_catalogue(folders)
        site = Defaults(known=False)
        pairs = [(each, trainings.entry_of(each, catalogue)) for each in wanted]
        return [
            {**_run(trainings.complete(*pair, site)), "description_hash": trainings.description_hash(*pair)}
            for pair in pairs
        ]
    except TrainyardError as error:
        raise AnsibleFilterError(str(error)) from error


def _run(described: Mapping[str, Any]) -> dict[str, Any]:
    flags = described["flags"]
    run = {key: described[key] for key in ("name", "namespace", "topology", "start_timeout") if key in described}
    # A program without these flags has no bound, and no own limit for a step.
    shown = ("train_steps", "accuracy_bound", "stall_timeout")
    return run | {key: flags[key] for key in shown if flags.get(key) is not None}


def image_layouts(
    images: Sequence[Mapping[str, str]],
    bundle: Mapping[str, Mapping[str, Any]],
    registry: str,
    versions: Sequence[str] | None = None,
) -> list[dict[str, str]]:
    """Return the layouts of images, and their references.

    :param images: result of `training_images`.
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
        found: list[Callable[..., object]] = [called_training, code_layouts, complete_trainings, image_layouts]
        found += [training_code, training_images, training_runs]
        return {function.__name__: function for function in found}

"""GPUs as printed by `nvidia-smi -q -x`: versions 11 to 13 of its XML, which drivers since 515 print."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from xml.etree import ElementTree

from ..core.errors import TrainyardError
from ..core.untrusted import number, whole
from .gpu_model import ACTIONS, Gpu, Inventory

QUERY = ("nvidia-smi", "-q", "-x")
CAPABILITIES = ("nvidia-smi", "--query-gpu=uuid,compute_cap", "--format=csv,noheader")
"""The XML lacks the compute capability, which decides which programs can run."""
NUMBER = re.compile(r"\d+(\.\d+)?")
ANSWERS = re.compile(r"GPU is lost|Unknown Error|ERR!", re.IGNORECASE)
"""Texts that nvidia-smi prints in place of a value that it could not read."""


def read(text: str, capabilities: str = "") -> Inventory:
    """Read the XML.

    :param text: output of `QUERY`; `capabilities` is the output of `CAPABILITIES`, or empty.
    :raises TrainyardError: it is not the XML of nvidia-smi.
    """
    try:
        # The XML names a DTD file that does not exist; the parser loads no external files.
        root = ElementTree.fromstring(text)  # noqa: S314 - expat bounds what entities grow to (2.4)
    except (ElementTree.ParseError, ValueError) as error:
        raise TrainyardError(f"The output of nvidia-smi -q -x is not XML: {error}.") from error
    if root.tag != "nvidia_smi_log":
        raise TrainyardError(f"The XML of nvidia-smi -q -x is an element {root.tag}, not nvidia_smi_log.")
    pairs = (line.split(",") for line in capabilities.splitlines() if line.count(",") == 1)
    known = {uuid.strip(): value.strip() for uuid, value in pairs}
    gpus = tuple(_gpu(index, element, known) for index, element in enumerate(root.findall("gpu")))
    return Inventory("nvidia-smi", _text(root, "driver_version"), _text(root, "cuda_version"), gpus)


def _gpu(index: int, element: ElementTree.Element, capabilities: Mapping[str, str]) -> Gpu:
    uuid = _text(element, "uuid") or ""
    mig = _text(element, "mig_mode/current_mig")
    return Gpu(
        index,
        uuid,
        _text(element, "product_name") or "",
        minor=_whole(element, "minor_number"),
        serial=_text(element, "serial"),
        pci_bus_id=_text(element, "pci/pci_bus_id"),
        architecture=_text(element, "product_architecture"),
        compute_capability=capabilities.get(uuid),
        memory_total_mib=_whole(element, "fb_memory_usage/total"),
        memory_used_mib=_whole(element, "fb_memory_usage/used"),
        temperature_celsius=_whole(element, "temperature/gpu_temp"),
        power_draw_watts=_number(element, *_power("average_power_draw", "power_draw", "instant_power_draw")),
        power_limit_watts=_number(element, *_power("enforced_power_limit", "current_power_limit", "power_limit")),
        utilization_percent=_whole(element, "utilization/gpu_util"),
        mig=mig and mig.lower(),
        mig_devices=len(element.findall("mig_devices/mig_device")),
        ecc_uncorrected=_uncorrected(element),
        rows_pending=_yes(element, "remapped_rows/remapped_row_pending"),
        rows_failed=_yes(element, "remapped_rows/remapped_row_failure"),
        recovery_action=_recovery_action(element),
        lost=any("gpu is lost" in (part.text or "").lower() for part in element.iter()),
    )


def _power(*names: str) -> list[str]:
    """Return the candidate paths. Version 11 calls the group `power_readings`; the names in it changed twice."""
    return [f"{group}/{name}" for name in names for group in ("gpu_power_readings", "power_readings")]


def _uncorrected(element: ElementTree.Element) -> int | None:
    """Return the sum over all kinds of memory, which depend on the version."""
    counts = [
        count
        for part in element.findall("ecc_errors/volatile/*")
        if "uncorrectable" in part.tag and (count := _whole(part, ".")) is not None
    ]
    return whole(sum(counts), 0) if counts else None


def _recovery_action(element: ElementTree.Element) -> str | None:
    """Return the recovery action. Version 13 reports it as text, 12 as two flags, 11 not at all."""
    said = _text(element, "gpu_recovery_action")
    if said:
        words = said.lower().replace(" ", "_").replace("gpu_", "")
        return words if words in ACTIONS else "other"
    required = _yes(element, "gpu_reset_status/reset_required")
    drain = _yes(element, "gpu_reset_status/drain_and_reset_recommended")
    if required is None and drain is None:
        return None
    return "reset" if required else "drain_and_reset" if drain else "none"


def _text(element: ElementTree.Element, path: str) -> str | None:
    """Return the text of an element; None if it is missing or has no value."""
    text = (element.findtext(path) or "").strip()
    missing = text in ("", "N/A", "[N/A]", "None") and path != "gpu_recovery_action"
    return None if missing or text.startswith("Requested functionality") or ANSWERS.search(text) else text or None


def _number(element: ElementTree.Element, *paths: str) -> float | None:
    """Return the number in the first of these elements that has one, without its unit."""
    for path in paths:
        text = element.text if path == "." else element.findtext(path)
        found = NUMBER.match((text or "").strip())
        if found:
            return number(found[0])
    return None


def _whole(element: ElementTree.Element, path: str) -> int | None:
    found = _number(element, path)
    return None if found is None else math.floor(found)


def _yes(element: ElementTree.Element, path: str) -> bool | None:
    text = _text(element, path)
    return None if text is None else text == "Yes"

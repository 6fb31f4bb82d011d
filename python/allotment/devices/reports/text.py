"""Formats the report on devices as a text of columns."""

from collections.abc import Iterator, Sequence

from allotment._core import format_size, show_text
from allotment.devices.reports.devices import DevicesReport, LogicalReport, MaskReport, PhysicalReport


def report_text(report: DevicesReport) -> str:
    """Return the text of a report; no line is wrapped or cut."""
    lines = ["Physical devices"]
    lines += _columns([_physical_cells(physical) for physical in report.physical])
    lines += ["", _mask_sentence(report.mask), "", "Logical devices"]
    lines += _columns([_logical_cells(logical) for logical in report.logical])
    lines += ["", "Environment"]
    rows = [(f"{one.name}={show_text(one.text)}", one.effect) for one in report.environment]
    lines += _columns(rows) if rows else ["  no variable is set"]
    return "\n".join(lines) + "\n"


def _physical_cells(physical: PhysicalReport) -> Sequence[str]:
    used = "used" if physical.visible else "hidden"
    if physical.memory is None:
        return physical.name, used
    return (
        physical.name,
        used,
        f"hardware {physical.hardware_index}",
        format_size(physical.memory),
        f"{physical.device_name}",
        f"{physical.uuid}",
    )


def _mask_sentence(mask: MaskReport) -> str:
    if mask.hardware_gpus == 0:
        return "There is no GPU. ALLOTMENT_SIMULATED_GPUS=2 simulates two."
    if mask.text is None:
        gpus = "the only GPU is" if mask.hardware_gpus == 1 else f"all {mask.hardware_gpus} GPUs are"
        return f"CUDA_VISIBLE_DEVICES is unset: {gpus} listed."
    left = ", ".join(map(str, mask.left)) or "none"
    written = show_text(mask.text)
    return f"CUDA_VISIBLE_DEVICES={written} leaves, of {mask.hardware_gpus} GPUs by hardware index: {left}."


def _logical_cells(logical: LogicalReport) -> Sequence[str]:
    cells = [logical.name, f"on {logical.physical_device}"]
    if logical.memory_limit is not None:
        growth = "on" if logical.memory_growth else "off"
        cells += [
            f"limit {format_size(logical.memory_limit)}, set by {logical.memory_limit_set_by}",
            f"growth {growth}, set by {logical.memory_growth_set_by}",
        ]
    if logical.pool is not None:
        cells.append(f"pool {logical.pool}{', elastic' if logical.memory_elastic else ''}")
    return cells


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    count = max(len(row) for row in rows)
    widths = [max(len(row[column]) for row in rows if len(row) > column) for column in range(count)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield "  " + "  ".join(cells).rstrip()

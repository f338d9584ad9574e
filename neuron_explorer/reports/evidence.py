"""The few words of a finding that every renderer says alike: saving, place, numbers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePath

from neuron_explorer.findings import Combined, Finding
from neuron_explorer.reports import formats
from neuron_explorer.reports.overview import Overview

AS_RECORDED = "as recorded, no repairs"
"""Said wherever a page shows raw times."""


def saving(finding: Finding, seen: Overview) -> str:
    """`saves 0.80-1.92 ms of 36.9 ms`, all steps together, or `saving unknown`."""
    low, high = finding.saving_low_ns, finding.saving_high_ns
    if low is None and high is None:
        return "saving unknown"
    amount = f"saves {formats.duration_range(low, high)}"
    if low == 0 and high:
        amount = f"saves up to {formats.duration(high)}"
    modelled = " (modelled)" if finding.figures == "modelled" else ""
    # a dry run's savings are parts of its modelled time, never of this machine's
    dry_run = seen.modelled if modelled else None
    part_of = seen.recorded_ns if dry_run is None else dry_run.total_ns
    whole = "" if part_of is None else f" of {formats.duration(part_of)}"
    return f"{amount}{whole}{modelled}"


def together(combined: Combined, seen: Overview) -> str:
    """`at most 13.6 ms (29 % of the 47.2 ms recorded), at least 2.52 ms`."""
    most, least = formats.duration(combined.high_ns), formats.duration(combined.low_ns)
    whole = formats.duration(combined.span_ns)
    measured = combined.figures == "measured"
    of_what = f"{whole} recorded" if measured else f"modelled {whole}"
    if measured and seen.steps.count:
        of_what = f"steps' {whole}"
    said = f"at most {most}"
    if combined.share is not None:
        said += f" ({formats.share(combined.share)} of the {of_what})"
    said += f", at least {least}"
    return f"{said}; {combined.unknown} more unknown" if combined.unknown else said


def modelled_steps(seen: Overview) -> str | None:
    """`2 steps of 527 programs, 68.5 ms each; 0 % HBM-bound, 100 % launch-bound`."""
    found = seen.modelled
    if found is None:
        return None
    each = " each" if found.steps > 1 else ""
    steps = f"{found.steps} step{'s' if found.steps > 1 else ''} of " if found.steps else ""
    graphs = f", {formats.count(found.compiled)} of them compiled graphs" if found.compiled else ""
    shares = (
        (found.memory_share, "HBM-bound"),
        (found.launch_share, "launch-bound"),
        (found.compute_share, "compute-bound"),
    )
    bounds = ", ".join(f"{formats.share(share)} {name}" for share, name in shares)
    said = f"{steps}{formats.count(found.submissions)} programs{graphs}"
    return f"{said}, {formats.duration(found.mean_ns)}{each}; {bounds}"


def device_names(seen: Overview) -> str:
    """`cuda:0 (h100-sxm)`; of several with one chip how many, `8 x h100-sxm`; or `none`."""
    if not seen.devices and seen.modelled is not None:
        return f"{seen.modelled.device} (shapes only)"
    chips = Counter(row["chip"] or "chip unknown" for row in seen.devices)
    one = {row["chip"] or "chip unknown": row["device"] for row in seen.devices}
    said = (f"{n} x {chip}" if n > 1 else f"{one[chip]} ({chip})" for chip, n in chips.items())
    return ", ".join(said) or "none"


def headline(finding: Finding, seen: Overview) -> str:
    """The title, with the rank it is about where the trace has several."""
    rank = f"rank {finding.rank}: " if seen.many_ranks and finding.rank is not None else ""
    return f"{rank}{finding.title}"


def where(finding: Finding, width: int | None = None) -> str:
    """`file:line`, as short as it can be said without becoming ambiguous."""
    return formats.place(_short_path(finding.source_file), finding.source_line, width)


def seen_in_short(finding: Finding) -> str:
    """The first sentence of what was seen: it carries the numbers."""
    first, stop, _ = finding.message.partition(". ")
    return f"{first}." if stop else finding.message


def _short_path(file: str | None) -> str | None:
    """Below the working folder, or from the package on; whole otherwise."""
    if file is None:
        return None
    for marker in ("/site-packages/", "/dist-packages/"):
        if marker in file:
            return file.rpartition(marker)[2]
    path = PurePath(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file

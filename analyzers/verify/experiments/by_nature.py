"""Findings about what ops do not hold: nothing that was recorded can be run again."""

from __future__ import annotations

_PROGRAM = "it is about how the program compiles, and a trace holds ops, not the program"
_DRY_RUN = "its times are modelled, not measured: run it on the chip"
_IDLE = "idle time depends on what the host does between ops, which a trace does not hold"

REASONS: dict[str, str] = {
    "collector_pauses": "how long a collection takes depends on the program's live objects",
    "compile_cost": _PROGRAM,
    "compile_gain": _DRY_RUN,
    "cpu_fallbacks": "only the device that hands the op to the CPU can show what that costs",
    "device_idle": _IDLE,
    "dry_run_summary": _DRY_RUN,
    "exposed_communication": "collectives need the other ranks",
    "graph_breaks": _PROGRAM,
    "host_syncs": "what a wait costs depends on what the host would queue instead",
    "input_wait": "the data and its loading are not in the trace",
    "launch_overhead": _IDLE,
    "modelled_waits": _DRY_RUN,
    "recompilations": _PROGRAM,
    "trace_health": "it judges the trace, not the program",
}

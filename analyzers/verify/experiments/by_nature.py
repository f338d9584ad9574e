"""Findings about what ops do not hold: nothing that was recorded can be run again."""

from __future__ import annotations

_PROGRAM = "it is about how the program compiles, and a trace holds ops, not the program"
_DRY_RUN = "its times are modelled, not measured: run it on the chip"
_SPARED = "the change is not to run these ops: nothing of them is left to measure"
_MEMORY = "it is about how much memory is held, which a replay of single ops does not show"
_STEPS = "it is about how whole steps compare, which single ops do not show"
_OVERLAP = "it is about what runs side by side, which a replay of single ops does not show"
_IDLE = "idle time depends on what the host does between ops, which a trace does not hold"

REASONS: dict[str, str] = {
    "clock_hints": "only the device that it ran on has these clocks",
    "collector_pauses": "how long a collection takes depends on the program's live objects",
    "compile_cost": _PROGRAM,
    "compile_gain": _DRY_RUN,
    "cpu_fallbacks": "only the device that hands the op to the CPU can show what that costs",
    "cpu_work_in_device_loop": _IDLE,
    "data_parallel": "it needs several devices",
    "ddp_backend": "collectives need the other ranks",
    "device_idle": _IDLE,
    "dry_run_summary": _DRY_RUN,
    "dynamic_shapes": _PROGRAM,
    "exposed_communication": "collectives need the other ranks",
    "exposed_copies": _OVERLAP,
    "for_loop_indexing": "which op does the work of all turns is for the author of the loop to say",
    "fragmentation": _MEMORY,
    "full_launch_queue": _IDLE,
    "graph_breaks": _PROGRAM,
    "host_syncs": "what a wait costs depends on what the host would queue instead",
    "input_wait": "the data and its loading are not in the trace",
    "launch_overhead": _IDLE,
    "memory_churn": _MEMORY,
    "modelled_waits": _DRY_RUN,
    "near_out_of_memory": _MEMORY,
    "outlier_steps": _STEPS,
    "peak_memory": _MEMORY,
    "python_overhead": "what Python does between ops is not in the trace",
    "queue_imbalance": _OVERLAP,
    "recompilations": _PROGRAM,
    "recomputation_cost": _SPARED,
    "serialised_streams": _OVERLAP,
    "small_batch": "a larger batch is other work, not the same work faster",
    "step_time_drift": _STEPS,
    "synchronous_memset": _IDLE,
    "tensors_created_on_host": _IDLE,
    "tiny_kernels": _IDLE,
    "trace_health": "it judges the trace, not the program",
    "warm_up_counted": _STEPS,
    "zero_grad_fills": _SPARED,
}

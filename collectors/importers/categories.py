"""One table from a trace's categories to layer and kind, for every back end Kineto knows.

Sources: the activity names of Kineto (`ActivityType.cpp`), the CamelCase names torch 1.8
wrote, the Trace Event Format for phases, and the sample traces of each vendor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Role = tuple[str, str]
"""(layer, kind) as in `schema.KINDS`."""

UNKNOWN: Role = ("host", "slice")

CATEGORIES: dict[str, Role] = {
    "cpu_op": ("framework", "op"),
    "operator": ("framework", "op"),
    "hpu_op": ("framework", "op"),
    "user_annotation": ("framework", "annotation"),
    "gpu_user_annotation": ("framework", "device_annotation"),
    "python_function": ("python", "frame"),
    "cpu_instant_event": ("memory", "alloc"),
    "kernel": ("hardware", "kernel"),
    "gpu_memcpy": ("hardware", "memcpy"),
    "memcpy": ("hardware", "memcpy"),
    "gpu_memset": ("hardware", "memset"),
    "memset": ("hardware", "memset"),
    "concurrent_kernel": ("hardware", "kernel"),
    "collective_comm": ("hardware", "collective"),
    "mtia_ccp_events": ("hardware", "engine"),
    "privateuse1_kernel": ("hardware", "kernel"),
    "runtime": ("runtime", "call"),
    "cuda_runtime": ("runtime", "call"),
    "cuda_driver": ("runtime", "call"),
    "hip_runtime": ("runtime", "call"),
    "xpu_runtime": ("runtime", "call"),
    "xpu_driver": ("runtime", "call"),
    "mtia_runtime": ("runtime", "call"),
    "glow_runtime": ("runtime", "call"),
    "hpu_runtime": ("runtime", "call"),
    "privateuse1_runtime": ("runtime", "call"),
    "privateuse1_driver": ("runtime", "call"),
    "cuda_sync": ("host", "sync"),
    "overhead": ("host", "overhead"),
    "external_correlation": ("meta", "marker"),
    "cuda_profiler_range": ("meta", "marker"),
    "gpu_pm_counter": ("host", "counter"),
    "mtia_counters": ("host", "counter"),
    "mtia_insight": ("host", "instant"),
    "trace": ("meta", "span"),
}
"""Lower-cased category to role; runtime calls and kernels are refined by name below."""

PHASES: dict[str, Role] = {
    "M": ("meta", "metadata"),
    "s": ("meta", "flow_start"),
    "t": ("meta", "flow_step"),
    "f": ("meta", "flow_end"),
    "C": ("host", "counter"),
    "i": ("host", "instant"),
    "I": ("host", "instant"),
    "R": ("host", "instant"),
    "n": ("host", "instant"),
    "P": ("host", "instant"),
    "N": ("host", "instant"),
    "O": ("host", "instant"),
    "D": ("host", "instant"),
    "v": ("meta", "marker"),
    "V": ("meta", "marker"),
    "c": ("meta", "marker"),
}
"""Event types (`ph`) whose role does not depend on the category."""

SLICE_PHASES = frozenset({"X", "B", "b", "S", ""})
"""Phases whose role is that of their category."""

PROCESSES: dict[str, Role] = {
    "ascend hardware": ("hardware", "kernel"),
    "cann": ("runtime", "call"),
    "python": ("framework", "op"),
}
"""Role by process name, for traces without categories (Ascend's `trace_view.json`)."""

PSEUDO_PROCESSES = frozenset({"Spans", "Traces", ""})

PROCESS_DEVICE_TYPES = {"ascend hardware": "npu"}
"""Device type by process name, for traces without categories."""

LAUNCH_FLOWS = frozenset({"async_npu", "hosttodevice"})
"""Categories of flows that lead from the host to hardware work that has no correlation id."""

DEVICE_TYPES: tuple[tuple[str, str], ...] = (
    ("mtia_", "mtia"),
    ("xpu_", "xpu"),
    ("hpu_", "hpu"),
    ("privateuse1_", "privateuseone"),
)
"""Category prefix to torch's device name; CUDA and ROCm are both `cuda` to torch."""

_RUNTIME_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("sync", re.compile(r"synchroni[sz]e|queuefinish|event.?wait|barrier", re.I)),
    ("graph_launch", re.compile(r"graph.?(exec.?)?launch", re.I)),
    ("copy", re.compile(r"mem_?cpy|mem_?set|copybuffer|membuffer|tensor_(read|write)", re.I)),
    ("launch", re.compile(r"launch|submit|enqueue|execute|runfunction", re.I)),
    ("allocation", re.compile(r"malloc|alloc|free|mem_?(create|release)", re.I)),
)
_NOT_A_SYNC = re.compile(r"stream.?wait.?event|event.?query|wait.?(on)?event", re.I)
_COLLECTIVE = re.compile(r"^(void )?(nccl|rccl|mscclpp|xccl|hccl)|ncclDev|ncclKernel", re.I)
_ANNOTATIONS = ("ProfilerStep#", "Optimizer.")
"""What torch 1.8 filed under operators."""
_HAND_OVERS = frozenset(["PythonSubclass", "PythonDispatchMode"])
"""Where the dispatcher gives an operator to Python code: the operator itself is around it."""
INPUT_WAITS = ("enumerate(DataLoader)", "enumerate(DataPipe)")
"""How torch names the time in which a loop waits for its next batch: an annotation, an operator
in torch 1.8. A loader without workers loads inside of it."""
HOST_COLLECTIVES = ("gloo:", "mpi:")
"""Communication that threads of the host do; what NCCL calls so is the call that starts it."""
COMPILATIONS = frozenset(
    [
        "_compile.<locals>.compile_inner (dynamo_timed)",
        "_compile.compile_inner (dynamo_timed)",
        "backward._backward_impl (dynamo_timed)",
        "dynamo",
        "entire_backward_compile",
        "entire_frame_compile",
    ]
)
"""Operators by which torch marks one compilation; newer ones mark it by several."""
_STAGES = frozenset(
    [
        "CacheBase.get_system.triton_key",
        "CompiledArtifact.load",
        "CompiledArtifact.save",
        "CppWrapperCpu.generate",
        "CppWrapperGpu.generate",
        "GraphLowering.codegen",
        "GraphLowering.codegen_subgraph",
        "GraphLowering.compile_to_fn",
        "GraphLowering.compile_to_module",
        "GraphLowering.run",
        "OutputGraph.call_user_compiler",
        "PyCodeCache.load_by_key_path",
        "PythonWrapperCodegen.generate",
        "Scheduler.__init__",
        "Scheduler.codegen",
        "Scheduler.fused_nodes",
        "TritonBundler.collect",
        "TritonBundler.read_and_emit",
        "_recursive_joint_graph_passes",
        "_recursive_post_grad_passes",
        "_recursive_pre_grad_passes",
        "additional_fake_tensor_prop",
        "after_deserialization",
        "aot_collect_metadata",
        "aot_trace_joint_graph",
        "async_compile.precompile",
        "async_compile.wait",
        "backend_compile",
        "benchmark_fused_nodes",
        "build_guards",
        "bytecode_tracing",
        "code_gen",
        "compile_attempt_0",
        "compile_attempt_1",
        "compile_attempt_2",
        "compile_file",
        "compile_fx_inner",
        "compile_fx.<locals>.bw_compiler",
        "compile_fx.<locals>.fw_compiler_base",
        "compile_inner",
        "create_aot_dispatcher_function",
        "fx_codegen_and_compile",
        "gc",
        "generate_kernel_code_from_nodes",
        "inductor_codecache_torch_key",
        "inductor_compile",
        "insert_deferred_runtime_asserts",
        "min_cut_rematerialization_partition",
        "remote_fx_graph_cache_get",
        "remote_fx_graph_cache_put",
    ]
)
_STAGE = re.compile(r" \(dynamo_timed\)$|^(pass|pgo)\.\w|_data: (.*, )?compile_id=(\d|None|!)")
"""How torch names what a compilation does step by step."""
_GUARDS = "TorchDynamo Cache Lookup"
_AUTOGRAD = re.compile(r"^(autograd::|torch::autograd::)|Backward\d*$")


def role(phase: str, category: str | None, name: str | None, pid: str | None) -> Role:
    """Layer and kind of an event; `UNKNOWN` for a slice of an unknown category."""
    if phase in ("i", "I") and category == "cpu_instant_event":
        return "memory", "alloc"
    if phase in ("i", "I") and name == "[memory]":
        return "memory", "alloc"
    if phase in PHASES:
        instant = PHASES[phase]
        return (
            ("meta", "marker") if instant[1] == "instant" and pid in PSEUDO_PROCESSES else instant
        )
    known = CATEGORIES.get((category or "").lower())
    return refine(known, name or "") if known else UNKNOWN


def refine(known: Role, name: str) -> Role:
    """Narrow a category's role by the event's name."""
    layer = known[0]
    if layer == "runtime":
        return layer, runtime_kind(name)
    if layer == "hardware":
        return layer, _work_kind(known[1], name)
    if layer == "framework" and known[1] in ("op", "annotation"):
        if compiler := compiler_kind(name, annotation=known[1] == "annotation"):
            return "compiler", compiler
        return _host_wait(name) or (_op_kind(name) if known[1] == "op" else known)
    return known


def _host_wait(name: str) -> Role | None:
    """Role of what torch records as an annotation, but what is no range of somebody's code."""
    if name.startswith(INPUT_WAITS):
        return "host", "input_wait"
    return ("host", "collective") if name.startswith(HOST_COLLECTIVES) else None


def _work_kind(kind: str, name: str) -> str:
    if kind == "kernel" and _COLLECTIVE.search(name):
        return "collective"
    return "dma" if kind == "engine" and name.startswith("dma") else kind


def compiler_kind(name: str, *, annotation: bool = False) -> str | None:
    """compile, stage or cache_lookup, from an operator's name; None for all else.

    torch writes of its compiler in operators; only what it says of a stage is an annotation.
    """
    if name in COMPILATIONS and not annotation:
        return "compile"
    if _STAGE.search(name) or (name in _STAGES and not annotation):
        return "stage"
    if annotation:
        return None
    return "cache_lookup" if name == _GUARDS else None


def _op_kind(name: str) -> Role:
    if name in _HAND_OVERS:
        return UNKNOWN
    if name.startswith(_ANNOTATIONS):
        return "framework", "annotation"
    return "framework", "autograd" if _AUTOGRAD.search(name) else "op"


def runtime_kind(name: str) -> str:
    """launch, graph_launch, copy, sync, allocation or call, from a runtime call's name."""
    if _NOT_A_SYNC.search(name):
        return "call"
    return next((kind for kind, pattern in _RUNTIME_KINDS if pattern.search(name)), "call")


def is_known(phase: str, category: str | None) -> bool:
    """Whether the tables above say anything about this phase and category."""
    return phase in PHASES or (category or "").lower() in CATEGORIES


def device_type(categories: Iterable[str], processes: Iterable[str]) -> str:
    """The name torch has for the device type of a trace with these categories and processes."""
    for process in processes:
        if found := PROCESS_DEVICE_TYPES.get(process.lower()):
            return found
    categories = list(categories)
    for prefix, name in DEVICE_TYPES:
        if any(category.startswith(prefix) for category in categories):
            return name
    return "cuda"

"""What every code in `cost_note` means. The one place.

A note is one or more codes, joined by `; `. Each says why a figure is NULL or what was assumed
to get one.
"""

from __future__ import annotations

WHY_NULL: dict[str, str] = {
    "no_formula": "Nothing here knows this op; its meta kernel or an enclosing op may.",
    "no_shapes": "The trace has no shape of an argument the formula needs (record_shapes).",
    "no_dtypes": "The trace has shapes but not the element type, so bytes are unknown.",
    "unknown_dtype": "The element type is none that this version knows the size of.",
    "no_values": "A scalar argument that decides the figure was not recorded (Concrete Inputs).",
    "shape_list_truncated": "The op took more than 30 tensors in a list: torch writes no shapes.",
    "list_dtype_not_recorded": "torch records shapes of a tensor list, but not their dtype.",
    "indices_not_recorded": "torch records no shape for a list of optional tensors (indices).",
    "data_dependent": "The values of a tensor, which no trace records, decide it.",
    "weights_not_recorded": "The op reaches its weights through a handle, not an argument.",
    "size_not_recorded": "An output size is an argument that this trace left out.",
    "flops_unknown": "What is computed on each element is not visible from the arguments.",
    "wrapper": "An autograd, optimizer or profiler wrapper: only the ops inside have shapes.",
    "compiled_region": "A compiled region that launched this itself: no op, no shapes.",
    "see_enclosing_op": "Parameters of a collective; the enclosing op has both its tensors.",
    "bad_shapes": "The recorded shapes or strides are no lists of sizes.",
    "bad_arguments": "The recorded arguments do not fit the op's signature.",
    "shapes_mismatch": "The recorded shapes cannot go together in this op.",
    "too_large": "The figure does not fit 64 bits: the recorded shapes cannot be real.",
    "meta_failed": "The op's meta kernel refused these arguments.",
    "no_torch": "torch is not installed, so its meta kernels cannot be asked.",
}
"""Codes that leave at least one figure NULL."""

ASSUMED: dict[str, str] = {
    "dense_assumed": "No strides were recorded: every tensor is taken as dense.",
    "list_dtype_inferred": "torch records no dtype of a list: that of a neighbouring op's tensor.",
    "rows_read_once": "Gathered rows count once each, at most the whole table; not the table.",
    "indices_not_counted": "The bytes of the index tensors are unknown and left out.",
    "causal_counted_full": "A causal mask is counted as a full one, as torch's flop counter does.",
    "max_length_assumed": "Every packed sequence is taken to be as long as the longest.",
    "one_sequence_assumed": "Packed sequences without lengths are taken as one sequence.",
    "statistics_not_counted": "Small saved statistics are left out.",
    "last_dim_assumed": "The normalised dimensions were not recorded: taken as the last one.",
    "dim_0_assumed": "The dimension was not recorded: taken as the first one.",
    "dense_routing_assumed": "Every row is taken to belong to exactly one group.",
    "all_experts_read": "The weights of every expert that tokens can reach are read once.",
    "out_dtype_assumed": "The output dtype was not recorded: taken from the input.",
    "tensors_moved_once": "Each tensor argument is moved once, the last one written: a bound.",
    "local_traffic": "Bytes of this rank's own memory, not of the wire.",
    "shape_only": "Only the shapes were used: the op computes on no element.",
    "from_meta": "Inputs read once and outputs written once, as the meta kernel returned them.",
    "self_not_updated": "Only the elements that are written are counted, not the whole target.",
    "mask_not_recorded": "Which gradients were wanted was not recorded: all are counted.",
    "may_alias": "Whether it copied was not recorded: taken as a view.",
}
"""Codes that say what a figure rests on."""

WHY_UNLINKED: dict[str, str] = {
    "no_op": "No framework op is known that caused this work.",
    "graph_replay": "Replayed from a captured graph: the ops ran when it was captured.",
    "counted_inside": "Its op has no cost, and the op around it is counted by its inner ops.",
}
"""Codes of work that has no cost to take."""

NOTES: dict[str, str] = WHY_NULL | ASSUMED
"""Codes that the cost of an op may have."""

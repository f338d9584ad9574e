"""Proves findings: replays the recorded ops before and after the change, and measures both.

    recorded    ops of a finding, as the trace recorded them
    resolve     a recorded op -> an overload of torch.ops and its arguments
    tensors     arguments made anew: recorded shape, dtype and strides, random values
    programs    recorded ops in a row -> one function, each op fed by the one before it
    measure     two functions, timed in turns on a warm device
    experiments one kind of change a file: what runs before, what runs after
    verdict     the claim of a finding beside what was measured
    results     the file beside the trace; the only part that `analyze` needs
    runner      all of it for some findings of a trace

Reading results works where torch is not installed; replaying needs it.
"""

from __future__ import annotations

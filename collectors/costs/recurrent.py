"""Recurrent layers: every weight matrix meets every position once, two FLOPs a product.

The elementwise gates are left out, as `torch.utils.flop_counter` leaves them out. Weights come as
a list, whose dtype no trace records: it is the input's.
"""

from __future__ import annotations

import math

from neuron_explorer.collectors.costs.arguments import Call, Tensor
from neuron_explorer.collectors.costs.registry import Work, formula


def _layer(call: Call, weights: list[Tensor], states: list[Tensor], width: int) -> Work:
    source = call.tensor(0)
    positions = math.prod(source.shape[:-1])
    weights = [Tensor(weight.shape, source.dtype) for weight in weights]
    states = [Tensor(state.shape, source.dtype) for state in states]
    matrices = sum(weight.numel for weight in weights if len(weight.shape) == 2)
    output = Tensor((*source.shape[:-1], width), source.dtype)
    flops = 2 * positions * matrices
    return Work(flops, [source, *weights, *states], [output, *states])


@formula("matmul", "lstm")
def lstm(call: Call) -> Work:
    """Arguments: input, states, weights, biases?, layers, dropout, train, bidirectional, ..."""
    states = call.list_at(1)
    directions = 2 if call.flag(7) else 1
    return _layer(call, call.list_at(2), states, states[0].shape[-1] * directions)


@formula("matmul", "gru rnn_tanh rnn_relu")
def gru(call: Call) -> Work:
    """Arguments: input, state, weights, biases?, layers, dropout, train, bidirectional, ..."""
    state = call.tensor(1)
    directions = 2 if call.flag(7) else 1
    return _layer(call, call.list_at(2), [state], state.shape[-1] * directions)


@formula("matmul", "_cudnn_rnn")
def cudnn_rnn(call: Call) -> Work:
    """Arguments: input, weights, stride, buffer, states at 4 and 5, ..., bidirectional at 13."""
    states = call.tensors(start=4, stop=6)
    directions = 2 if call.flag(13) else 1
    return _layer(call, call.list_at(1), states, states[0].shape[-1] * directions)


@formula("matmul", "_cudnn_rnn_backward")
def cudnn_rnn_backward(call: Call) -> Work:
    """Gradients of input and weights: two products for each of the forward's."""
    forward = _layer(call, call.list_at(1), call.tensors(start=4, stop=6), 1)
    reads = list(forward.reads or ())
    flops = None if forward.flops is None else 2 * forward.flops
    return Work(flops, [*reads, call.tensor(0).like()], [tensor.like() for tensor in reads])

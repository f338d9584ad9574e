"""What a tensor of the device can do, against the same on the CPU."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from process_checks import check, message_of, run_all
from torch import nn
from torch.utils.checkpoint import checkpoint

import neuron_explorer

device = neuron_explorer.dryrun("trn2")
NEURON = "neuron"


def same(function: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> None:
    """A function gives on the device what it gives on the CPU."""
    torch.manual_seed(0)
    given = [torch.randn(shape) for shape in shapes]
    there = function(*(t.to(NEURON) for t in given))
    assert there.device.type == NEURON, there.device
    torch.testing.assert_close(there.cpu(), function(*(t.clone() for t in given)))


@check
def indexing() -> None:
    same(lambda x: x[1], (4, 5))
    same(lambda x: x[:, None, 1:3], (4, 5))
    same(lambda x: x[torch.tensor([0, 2])], (4, 5))
    same(lambda x: x[torch.tensor([0, 2], device=x.device)], (4, 5))
    same(lambda x: x[x > 0], (4, 5))
    same(lambda x: x[..., -1], (2, 3, 4))


@check
def slices_assigned() -> None:
    def assign(x: torch.Tensor) -> torch.Tensor:
        x[1] = 5
        x[:, 2] += 1
        x[0, :2] = torch.ones(2, device=x.device)
        x[x > 2] = 0
        x[torch.tensor([3])] = -1.0
        return x

    same(assign, (4, 5))


@check
def views_of_views() -> None:
    def through(x: torch.Tensor) -> torch.Tensor:
        y = x.view(2, 10).t()[2:6]
        y.mul_(3)
        z = y.unsqueeze(0).transpose(1, 2)[..., 0]
        z.add_(1)
        return x

    same(through, (4, 5))


@check
def in_place_views_leave_earlier_ops_alone() -> None:
    def through(x: torch.Tensor) -> torch.Tensor:
        big = x @ x.t()
        for _ in range(3):
            big = big @ big / 10
        before = x + 1
        x.unsqueeze_(0)
        after = x * 2
        x.squeeze_(0).t_()
        return torch.cat([before.flatten(), after.flatten(), x.flatten(), big.flatten()])

    same(through, (64, 64))


@check
def ops_in_place_and_out() -> None:
    def through(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        torch.add(x, y, out=out)
        out.relu_().clamp_(max=1.5).sub_(y, alpha=2)
        torch.mm(out, y.t(), out=torch.empty(4, 4, device=x.device))
        return out

    same(through, (4, 5), (4, 5))


@check
def out_of_another_size_is_refused() -> None:
    x = torch.ones(3, device=NEURON)
    said = message_of(lambda: torch.add(x, x, out=torch.empty(7, device=NEURON)))
    assert "resize" in said or "right shape" in said, said


@check
def resize_is_refused() -> None:
    said = message_of(lambda: torch.ones(3, device=NEURON).resize_(5))
    assert "(3,) to (5,)" in said, said
    assert torch.ones(3, device=NEURON).resize_(3).shape == (3,)


@check
def data_is_replaced() -> None:
    x = torch.ones(3, device=NEURON, requires_grad=True)
    x.data = torch.full((3,), 7.0, device=NEURON)
    assert x.tolist() == [7.0] * 3
    x.data.mul_(2)
    assert x.requires_grad
    assert x.tolist() == [14.0] * 3
    assert "cpu" in message_of(lambda: setattr(x, "data", torch.ones(3)))


@check
def masks_and_choices() -> None:
    same(lambda x, y: torch.where(x > y, x, y), (4, 5), (4, 5))
    same(lambda x: x.masked_fill(x > 0, -1.0), (4, 5))
    same(lambda x: x.masked_select(x > 0), (4, 5))
    same(lambda x: x.gather(1, x.argsort(1)), (4, 5))
    same(lambda x: x.scatter(1, torch.zeros(4, 1, dtype=torch.long, device=x.device), 9.0), (4, 5))
    same(lambda x: torch.topk(x, 2).values, (4, 5))
    same(lambda x: x.sort(dim=1, descending=True)[0], (4, 5))
    same(lambda x: x.cumsum(1), (4, 5))
    same(lambda x: torch.stack([x.max(), x.min(), x.std(), x.norm()]), (4, 5))
    same(lambda x: torch.cat([*x.split(2), *x.chunk(2)]), (4, 5))


@check
def values_on_the_host() -> None:
    x = torch.arange(6, device=NEURON).reshape(2, 3)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.sum().item() == 15
    assert float(x[1, 1]) == 4.0
    assert int(x.max()) == 5
    assert bool((x >= 0).all())
    assert "device='neuron:0'" in repr(x)
    assert f"{x.sum():d}" == "15"
    assert x.cpu().device.type == "cpu"
    assert "Tensor.cpu()" in message_of(x.numpy)
    assert x.numpy(force=True).shape == (2, 3)
    assert len(x) == 2
    assert [int(row.sum()) for row in x] == [3, 12]


@check
def tensors_of_other_devices_say_what_to_do() -> None:
    x, y = torch.ones(2, 2, device=NEURON), torch.ones(2, 2)
    for action in (lambda: x + y, lambda: y @ x, lambda: torch.cat([x, y])):
        said = message_of(action)
        assert "cpu" in said, said
        assert ".to('neuron')" in said, said
    assert (x + torch.tensor(2.0)).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    linear = nn.Linear(2, 2)
    assert ".to('neuron')" in message_of(lambda: linear(x))


@check
def types_of_64_bit_are_computed_in_32() -> None:
    x = torch.tensor([2**31 - 1], device=NEURON)
    assert x.dtype is torch.int64
    assert (x + 1).item() == -(2**31)
    third = torch.ones(1, dtype=torch.float64, device=NEURON) / 3
    assert third.dtype is torch.float64
    assert third.item() == torch.tensor(1 / 3).item()
    third.mul_(3).sub_(1).div_(7)
    assert third.item() == third.float().item()
    assert torch.tensor([1 / 3], dtype=torch.float64, device=NEURON).item() != 1 / 3


def _doubled(grad: torch.Tensor) -> torch.Tensor:
    return grad * 2


@check
def gradients() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    there = copy.deepcopy(model).to(NEURON)
    seen: list[Any] = []
    there[0].register_forward_hook(lambda *_: seen.append("forward"))
    there[0].register_full_backward_hook(lambda *_: seen.append("backward"))
    for net in (there, model):
        next(net[2].parameters()).register_hook(_doubled)  # type: ignore[no-untyped-call]
    for net, values in ((model, x), (there, x.to(NEURON))):
        inner = values.clone().requires_grad_()
        (slope,) = torch.autograd.grad(net(inner).sum(), inner, create_graph=True)
        (net(values).sum() + slope.pow(2).sum()).backward()
    assert seen.count("forward") == 2
    assert "backward" in seen
    for ours, theirs in zip(there.parameters(), model.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None)
        if ours.grad is not None:
            torch.testing.assert_close(ours.grad.cpu(), theirs.grad)


@check
def checkpointing() -> None:
    torch.manual_seed(0)
    block = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 4)).to(NEURON)
    x = torch.randn(3, 4).to(NEURON).requires_grad_()
    grads = []
    for reentrant in (True, False):
        torch.get_device_module(NEURON).manual_seed(5)
        checkpoint(block, x, use_reentrant=reentrant).sum().backward()
        assert x.grad is not None
        grads.append(x.grad.cpu())
        x.grad = None
    torch.get_device_module(NEURON).manual_seed(5)
    block(x).sum().backward()
    assert x.grad is not None
    for grad in grads:
        torch.testing.assert_close(grad, x.grad.cpu())


@check
def modes_without_gradients() -> None:
    model = nn.Linear(4, 4).to(NEURON)
    x = torch.ones(2, 4, device=NEURON)
    with torch.no_grad():
        assert not model(x).requires_grad
    with torch.inference_mode():
        assert model(x).is_inference()
        assert model(x).cpu().shape == (2, 4)
    assert model(x).requires_grad


@check
def custom_functions() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            found: torch.Tensor = grad * 2 + 0 * x
            return found

    x = torch.ones(3, device=NEURON, requires_grad=True)
    Double.apply(x).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert x.grad.tolist() == [2.0] * 3


@check
def random_numbers() -> None:
    module = torch.get_device_module(NEURON)
    host = torch.get_rng_state()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = [torch.rand(4, device=NEURON), torch.randn(4, device=NEURON)]
    first.append(nn.functional.dropout(torch.ones(64, device=NEURON), 0.5))
    assert torch.equal(torch.rand(3), expected)
    module.manual_seed(1)
    again = [torch.rand(4, device=NEURON), torch.randn(4, device=NEURON)]
    again.append(nn.functional.dropout(torch.ones(64, device=NEURON), 0.5))
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.cpu(), other.cpu())
    assert not torch.equal(torch.rand(4, device=NEURON).cpu(), first[0].cpu())
    state = module.get_rng_state()
    drawn = torch.randperm(20, device=NEURON).tolist()
    module.set_rng_state(state)
    assert torch.randperm(20, device=NEURON).tolist() == drawn
    kept = first[2].cpu()
    assert set(kept.tolist()) == {0.0, 2.0}
    torch.set_rng_state(host)


@check
def memory_is_freed() -> None:
    module = torch.get_device_module(NEURON)
    model = nn.Linear(64, 64).to(NEURON)
    update = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step() -> None:
        model(torch.ones(32, 64, device=NEURON)).sum().backward()
        update.step()
        update.zero_grad()

    step()
    module.synchronize()
    before = module.memory_allocated()
    assert before == 2 * (64 * 64 + 64) * 4, before
    for _ in range(200):
        step()
    module.synchronize()
    assert module.memory_allocated() == before
    assert module.max_memory_allocated() > before
    extra = torch.ones(1000, device=NEURON)
    view = extra[:10]
    del extra
    assert module.memory_allocated() == before + 4000
    del view
    assert module.memory_allocated() == before


run_all()

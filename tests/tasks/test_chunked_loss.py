import pytest
import torch
from torch import nn

from hotloop.tasks.chunked_loss import chunked_losses, weights_of
from hotloop.tasks.losses import smoothed_cross_entropy


class Deep(nn.Module):
    """A projection of two maps, the last shared with an embedding, and an unused parameter."""

    def __init__(self, *, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(50, 8, dtype=dtype)
        self.inner = nn.Linear(8, 8, dtype=dtype)
        self.outer = nn.Linear(8, 50, dtype=dtype)
        self.unused = nn.Linear(2, 2, dtype=dtype)
        self.outer.weight = self.embedding.weight

    def project(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.outer(torch.tanh(self.inner(hidden)))


def gradients(model: Deep, chunk: int, smoothing: float, *, scale: float = 0.25) -> tuple[torch.Tensor, ...]:
    """Loss, plain losses, and the gradients of all parameters; the embedding is used for the input, too."""
    model.zero_grad()
    labels = torch.randint(0, 50, (23,), generator=torch.Generator().manual_seed(1))
    hidden = model.embedding(labels.flip(0)) * 0.5
    if chunk:
        losses, plain = chunked_losses(model.project, hidden, labels, chunk=chunk, smoothing=smoothing)
    else:
        losses, plain = smoothed_cross_entropy(model.project(hidden), labels, smoothing)
    (losses.sum() * scale).backward()
    found = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return losses.detach(), plain, *found


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1, 7, 22, 23, 100])
def test_losses_and_gradients_are_those_of_all_logits_at_once(chunk, smoothing):
    model = Deep()
    torch.testing.assert_close(gradients(model, chunk, smoothing), gradients(model, 0, smoothing))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_the_weights_get_float32_gradients_near_those_of_all_at_once(dtype):
    model = Deep(dtype=torch.float32)
    exact = gradients(model, 0, 0.1)
    with torch.autocast("cpu", dtype=dtype):
        chunked, whole = gradients(model, 5, 0.1), gradients(model, 0, 0.1)
    for one, other, right in zip(chunked, whole, exact, strict=True):
        assert one.dtype == other.dtype == torch.float32
        assert (one - right).norm() <= 0.01 * right.norm() and (one - other).norm() <= 0.01 * right.norm()


def test_in_bfloat16_many_chunks_are_as_near_as_all_at_once():
    """Summed in bfloat16, a thousand small gradients would stand still beside the sum."""
    torch.manual_seed(0)
    hidden, labels = torch.rand(1024, 8), torch.zeros(1024, dtype=torch.int64)
    weight = nn.Parameter(torch.zeros(4, 8, dtype=torch.bfloat16))
    exact = nn.Parameter(torch.zeros(4, 8))

    def found(parameter: nn.Parameter, chunk: int) -> torch.Tensor:
        parameter.grad = None
        given = hidden.to(parameter.dtype, copy=True).requires_grad_()
        chunked_losses(lambda part: part @ parameter.T, given, labels, chunk=chunk)[0].sum().backward()
        assert parameter.grad is not None and parameter.grad.dtype == parameter.dtype and given.grad is not None
        assert given.grad.dtype == given.dtype
        return parameter.grad.float()

    right = found(exact, 1024)
    assert (found(weight, 1) - right).norm() <= 0.004 * right.norm()


def test_only_one_chunk_of_logits_is_made_at_a_time():
    model, sizes = Deep(), []
    hidden, labels = torch.randn(20, 8, dtype=torch.float64, requires_grad=True), torch.zeros(20, dtype=torch.int64)

    def project(part: torch.Tensor) -> torch.Tensor:
        sizes.append(len(part))
        return model.project(part)

    losses, _ = chunked_losses(project, hidden, labels, chunk=6)
    losses.sum().backward()
    assert sizes == [0, 6, 6, 6, 2]  # none shows which weights are used; nothing is projected in the backward pass
    with torch.no_grad():
        assert not chunked_losses(project, hidden, labels, chunk=6)[0].requires_grad


def test_the_weights_in_use_are_found():
    model = Deep()
    found = weights_of(model.project, torch.zeros(0, 8, dtype=torch.float64))
    assert {id(p) for p in found} == {id(p) for p in [*model.inner.parameters(), *model.outer.parameters()]}


def test_a_frozen_projection_still_sends_its_gradient_back():
    model = Deep()
    model.outer.requires_grad_(False)
    hidden = torch.randn(9, 8, dtype=torch.float64)
    labels = torch.arange(9)
    found = []
    for chunk in (4, 9):
        leaf = hidden.clone().requires_grad_()
        chunked_losses(model.project, leaf, labels, chunk=chunk)[0].mean().backward()
        found.append(leaf.grad)
    torch.testing.assert_close(found[0], found[1])
    assert model.outer.weight.grad is None


def test_weights_of_single_tokens_are_refused():
    model = Deep()
    hidden = torch.randn(9, 8, dtype=torch.float64, requires_grad=True)
    losses, _ = chunked_losses(model.project, hidden, torch.arange(9), chunk=4)
    with pytest.raises(RuntimeError, match="projection_chunk=0"):
        (losses * torch.arange(9)).sum().backward()

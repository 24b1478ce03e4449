"""Annotations of shapes checked as functions run, by beartype, and einx's operations"""

# ruff: noqa: F722

import beartype
import einx
import same
import torch
from jaxtyping import Float, Int, jaxtyped


@jaxtyped(typechecker=beartype.beartype)
def attend(
    q: Float[torch.Tensor, "batch n d"],
    k: Float[torch.Tensor, "batch m d"],
) -> Float[torch.Tensor, "batch n m"]:
    return torch.softmax(q @ k.mT, -1)


@jaxtyped(typechecker=beartype.beartype)
def chosen(x: Float[torch.Tensor, "n d"], at: Int[torch.Tensor, " k"]) -> Float[torch.Tensor, "k d"]:
    return x[at]


numbers = [
    attend(same.data(2, 3, 4), same.data(2, 5, 4)).square().sum().item(),
    chosen(same.data(4, 3), torch.tensor([0, 2])).sum().item(),
]
for wrong in ((same.data(2, 3, 4), same.data(3, 5, 4)), (same.data(2, 3, 4).long(), same.data(2, 5, 4))):
    try:
        attend(*wrong)
        numbers.append(0)
    except Exception:
        numbers.append(1)
x = same.data(4, 6).requires_grad_()
w = same.data(6, 5, seed=1)
out = (
    einx.dot("a b, b c -> a c", x, w).sum()
    + einx.mean("[a] b", x).sum()
    + einx.rearrange("a (b c) -> b a c", x, b=2).square().sum()
    + einx.add("a b, a", x, same.data(4)).sum()
    + einx.softmax("a [b]", x).square().sum()
)
out.backward()
numbers += [out.item(), x.grad.abs().sum().item(), einx.get_at("[a] b, c -> c b", x, torch.tensor([1, 3])).sum().item()]
same.report(numbers)

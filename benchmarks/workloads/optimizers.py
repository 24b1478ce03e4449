"""A step of each optimizer, without forward and backward."""

from typing import Any

from workloads.registry import Step, equal, normal, workload


def stepping(torch: Any, make: Any, count: int, *shape: int) -> Step:
    """Steps over parameters that have gradients; returns the first number."""
    parameters = [torch.nn.Parameter(normal(torch, *shape, seed=i)) for i in range(count)]
    for i, p in enumerate(parameters):
        p.grad = normal(torch, *shape, seed=100 + i)
    optimizer = make(parameters)

    def step() -> Any:
        optimizer.step()
        return parameters[0].detach().square().mean()

    return step


OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 1e-3}, "SGD_momentum": {"lr": 1e-3, "momentum": 0.9}, "Adam": {}, "Adam_fused": {"fused": True},
    "Adam_amsgrad": {"amsgrad": True}, "AdamW": {}, "NAdam": {}, "RAdam": {}, "Adamax": {}, "RMSprop": {}, "Adagrad": {},
    "Adadelta": {}, "ASGD": {}, "Rprop": {}, "Adafactor": {}, "Muon": {},
}  # fmt: skip


def declare(name: str, options: dict[str, Any]) -> None:
    """A workload for one optimizer."""
    kind = name.partition("_")[0]

    def make(torch: Any) -> Step:
        return stepping(torch, lambda parameters: getattr(torch.optim, kind)(parameters, **options), 4, 1024, 1024)

    make.__name__ = f"step_{name.lower()}"
    make.__doc__ = f"{name.replace('_', ', ')}: a step over 4 matrices of 1,024 x 1,024"
    workload()(make)


for _name, _options in OPTIONS.items():
    declare(_name, _options)


@workload()
def step_many_small(torch: Any) -> Step:
    """AdamW: a step over 400 parameters of 64 numbers"""
    return stepping(torch, lambda parameters: torch.optim.AdamW(parameters), 400, 64)


@workload()
def step_clipped(torch: Any) -> Step:
    """clip_grad_norm_ over 200 parameters of 4,096 numbers"""
    parameters = [torch.nn.Parameter(normal(torch, 4096, seed=i)) for i in range(200)]
    for p in parameters:
        p.grad = p.detach() * 1.0
    return lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0)


@workload(same=0.1)
def lbfgs(torch: Any) -> Step:
    """LBFGS with line search on an MLP 32-64-1, 256 rows"""
    nn = torch.nn
    model = equal(nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1)))
    x, y = normal(torch, 256, 32), normal(torch, 256, 1, seed=1)
    start = [p.detach().clone() for p in model.parameters()]

    def step() -> Any:
        with torch.no_grad():
            for p, value in zip(model.parameters(), start):
                p.copy_(value)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=10, line_search_fn="strong_wolfe")

        def closure() -> Any:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        return optimizer.step(closure)

    return step

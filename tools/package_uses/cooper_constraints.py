"""Constrained optimization by a Lagrangian, with multipliers that are trained beside the model"""

import cooper
import same
import torch

x, y = same.data(20, 4), (same.data(20, seed=1) > 0).float()


class Problem(cooper.ConstrainedMinimizationProblem):
    def __init__(self):
        super().__init__()
        self.norm = cooper.Constraint(
            cooper.ConstraintType.INEQUALITY,
            multiplier=cooper.multipliers.DenseMultiplier(num_constraints=1),
            formulation_type=cooper.formulations.Lagrangian,
        )
        self.rate = cooper.Constraint(
            cooper.ConstraintType.EQUALITY,
            multiplier=cooper.multipliers.DenseMultiplier(num_constraints=1),
            penalty_coefficient=cooper.penalty_coefficients.DensePenaltyCoefficient(torch.tensor([1.0])),
            formulation_type=cooper.formulations.AugmentedLagrangian,
        )

    def compute_cmp_state(self, model):
        scores = model(x)[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, y)
        norm = model.weight.square().sum().sqrt().reshape(1) - 0.5
        rate = (scores.sigmoid().mean() - 0.5).reshape(1)
        return cooper.CMPState(
            loss=loss,
            observed_constraints={
                self.norm: cooper.ConstraintState(violation=norm),
                self.rate: cooper.ConstraintState(violation=rate),
            },
        )


problem, model = Problem(), same.weights(torch.nn.Linear(4, 1), 0.5)
primal = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
dual = torch.optim.SGD(problem.dual_parameters(), lr=0.2, maximize=True)
optimizer = cooper.optim.AlternatingDualPrimalOptimizer(primal_optimizers=primal, dual_optimizers=dual, cmp=problem)
numbers = []
for _ in range(6):
    out = optimizer.roll(compute_cmp_state_kwargs={"model": model})
    numbers += [out.loss.item(), out.primal_lagrangian_store.lagrangian.item()]
numbers += sorted(p.sum().item() for p in problem.dual_parameters())
same.report(numbers)

"""Fourier neural operators, one with weights in Tucker's form, on the losses L2 and H1"""

import same
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO, TFNO

x, y = same.data(2, 1, 16, 16), same.data(2, 1, 16, 16, seed=3)
sizes = {"n_modes": (4, 4), "in_channels": 1, "out_channels": 1, "hidden_channels": 8, "n_layers": 2}
net, factored = same.weights(FNO(**sizes)), same.weights(TFNO(**sizes, factorization="tucker", rank=0.5))
same.report(
    [
        *same.train(net, lambda m: LpLoss(d=2, p=2)(m(x), y), 3),
        *same.train(net, lambda m: H1Loss(d=2)(m(x), y), 3),
        *same.train(factored, lambda m: m(x).square().mean(), 3),
    ]
)

"""A model of thinc with a layer of this library inside: gradients both ways, its optimizer, and bytes"""

import numpy as np
import same
import thinc.api as thinc
import torch

rng = np.random.default_rng(0)
x, y = rng.standard_normal((10, 6)).astype("f"), np.eye(3, dtype="f")[rng.integers(0, 3, 10)]
thinc.fix_random_seed(0)
inner = same.weights(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8)), 0.4)
model = thinc.chain(thinc.Relu(8, 6), thinc.PyTorchWrapper(inner), thinc.Softmax(3, 8))
model.initialize(X=x, Y=y)
optimizer, loss = thinc.Adam(0.01), thinc.CategoricalCrossentropy()
numbers = []
for _ in range(5):
    guess, back = model.begin_update(x)
    gradient, value = loss(guess, y)
    back(gradient)
    model.finish_update(optimizer)
    numbers.append(float(value))
kept = model.to_bytes()
before = model.predict(x)
model.from_bytes(kept)
numbers += [float(abs(model.predict(x) - before).max()), float(before[0, 0])]
lstm = thinc.PyTorchLSTM(4, 6)
lstm.initialize()
same.weights((lstm.layers[0] if lstm.layers else lstm).shims[0]._model)
padded = thinc.Padded(
    rng.standard_normal((5, 3, 6)).astype("f"), np.array([3, 3, 2, 1, 1]), np.array([5, 3, 2]), np.array([0, 1, 2])
)
out, back = lstm(padded, is_train=True)
numbers += [float(out.data.sum()), float(np.abs(back(out).data).sum())]
same.report(numbers)

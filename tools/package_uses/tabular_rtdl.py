"""Networks for tables: MLP, ResNet and FT-Transformer with embedded numbers, and TabM's ensemble in one network"""

import rtdl_num_embeddings as embeddings
import rtdl_revisiting_models as models
import same
import torch
from tabm import TabM

numbers_in, kinds = same.data(24, 6), same.labels(48, 4).reshape(24, 2)
target = same.data(24, 1, seed=1)
bins = embeddings.compute_bins(numbers_in, n_bins=5)


def fit(net: torch.nn.Module, out) -> list[float]:
    return same.train(same.weights(net), lambda m: (out(m) - target).square().mean(), steps=4, lr=0.02)


numbers = fit(models.MLP(d_in=6, d_out=1, n_blocks=2, d_block=16, dropout=0.0), lambda m: m(numbers_in))
numbers += fit(
    models.ResNet(
        d_in=6, d_out=1, n_blocks=2, d_block=16, d_hidden=None, d_hidden_multiplier=2.0, dropout1=0, dropout2=0
    ),
    lambda m: m(numbers_in),
)
transformer = models.FTTransformer(
    n_cont_features=6, cat_cardinalities=[4, 4], d_out=1, n_blocks=2, d_block=16, attention_n_heads=4,
    attention_dropout=0.0, ffn_d_hidden=None, ffn_d_hidden_multiplier=4 / 3, ffn_dropout=0.0, residual_dropout=0.0,
)  # fmt: skip
numbers += fit(transformer, lambda m: m(numbers_in, kinds))
for embed in (
    embeddings.LinearReLUEmbeddings(6, 4),
    embeddings.PeriodicEmbeddings(6, 4, lite=False),
    embeddings.PiecewiseLinearEmbeddings(bins, 4, activation=False, version="B"),
):
    numbers += fit(torch.nn.Sequential(embed, torch.nn.Flatten(), torch.nn.Linear(24, 1)), lambda m: m(numbers_in))
for kind in ("tabm", "tabm-mini", "tabm-packed"):
    net = TabM.make(
        n_num_features=6, cat_cardinalities=[4, 4], d_out=1, arch_type=kind, k=4, n_blocks=2, d_block=16, dropout=0.0
    )
    numbers += fit(net, lambda m: m(numbers_in, kinds).mean(1))
same.report(numbers)

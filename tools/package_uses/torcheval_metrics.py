"""Metrics of classification, ranking, regression and words, gathered over batches and merged"""

import same
import torch
from torcheval import metrics
from torcheval.metrics import functional
from torcheval.metrics.toolkit import clone_metric, reset_metrics

scores, classes = same.data(40, 4), same.labels(40, 4)
chances, truth = torch.sigmoid(same.data(40)), same.labels(40, 2)
numbers = []


def several(make, batches) -> None:
    first, second = make(), make()
    for i, batch in enumerate(batches):
        (first if i % 2 else second).update(*batch)
    first.merge_state([clone_metric(second)])
    found = first.compute()
    for part in found if isinstance(found, (tuple, list)) else [found]:
        for value in part if isinstance(part, list) else [part]:
            numbers.append(torch.as_tensor(value).double().sum().item())
    reset_metrics([first])


by_class = list(zip(scores.split(10), classes.split(10), strict=True))
binary = list(zip(chances.split(10), truth.split(10), strict=True))
values = list(zip(same.data(40, 2).split(10), same.data(40, 2, seed=1).split(10), strict=True))
for make in (
    lambda: metrics.MulticlassAccuracy(average="macro", num_classes=4), lambda: metrics.MulticlassF1Score(average=None, num_classes=4),
    lambda: metrics.MulticlassPrecision(average="weighted", num_classes=4), lambda: metrics.MulticlassRecall(average="macro", num_classes=4),
    lambda: metrics.MulticlassConfusionMatrix(4), lambda: metrics.MulticlassAUROC(num_classes=4), lambda: metrics.MulticlassAUPRC(num_classes=4),
    lambda: metrics.HitRate(k=2), lambda: metrics.ReciprocalRank(),
):  # fmt: skip
    several(make, by_class)
for make in (
    metrics.BinaryAccuracy, metrics.BinaryAUROC, metrics.BinaryAUPRC, metrics.BinaryF1Score, metrics.BinaryConfusionMatrix,
    metrics.BinaryNormalizedEntropy, metrics.BinaryPrecisionRecallCurve, lambda: metrics.BinaryBinnedAUROC(threshold=11),
    lambda: metrics.BinaryRecallAtFixedPrecision(min_precision=0.4),
):  # fmt: skip
    several(make, [(a, b.float() if make is metrics.BinaryNormalizedEntropy else b) for a, b in binary])
for make in (
    metrics.MeanSquaredError,
    lambda: metrics.R2Score(multioutput="variance_weighted"),
    lambda: metrics.WeightedCalibration(num_tasks=10),
):
    several(make, values)
several(metrics.PeakSignalNoiseRatio, values)
several(metrics.Mean, [(a,) for a, _ in values])
several(lambda: metrics.Cat(), [(a,) for a, _ in values])
several(lambda: metrics.WordErrorRate(), [(["a b c", "d e"], ["a x c", "d e f"]), (["g"], ["g h"])])
several(lambda: metrics.Perplexity(), [(same.data(2, 5, 7), same.labels(10, 7).view(2, 5)) for _ in range(2)])
several(
    lambda: metrics.BLEUScore(n_gram=2),
    [(["the squirrel is eating the nut"], [["a squirrel is eating a nut", "the squirrel ate"]])],
)
numbers += [functional.frequency_at_k(chances, 0.5).sum().item(), functional.num_collisions(classes).sum().item()]
same.report(numbers)

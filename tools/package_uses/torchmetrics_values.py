"""Metrics of classification, regression and pictures."""

import same
from torchmetrics import Accuracy, F1Score, MeanSquaredError, MetricCollection
from torchmetrics.classification import MulticlassAUROC, MulticlassConfusionMatrix
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure

logits, y = same.data(40, 4).softmax(-1), same.labels(40, 4)
both = MetricCollection(
    [Accuracy(task="multiclass", num_classes=4), F1Score(task="multiclass", num_classes=4, average="macro")]
)
both.update(logits[:20], y[:20])
both.update(logits[20:], y[20:])
a, b = same.data(2, 3, 16, 16), same.data(2, 3, 16, 16, seed=1)
same.report(
    [
        *(v.item() for v in both.compute().values()),
        MulticlassAUROC(4)(logits, y).item(),
        *MulticlassConfusionMatrix(4)(logits, y).flatten().tolist(),
        MeanSquaredError()(a, b).item(),
        PeakSignalNoiseRatio(data_range=4.0)(a, b).item(),
        StructuralSimilarityIndexMeasure(data_range=4.0)(a, b).item(),
    ]
)

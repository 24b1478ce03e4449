"""Trees, forests and pipelines of scikit-learn compiled to tensors"""

import numpy as np
import same
from hummingbird.ml import convert
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

rng = np.random.default_rng(0)
x, y = rng.standard_normal((60, 5)).astype("float32"), rng.integers(0, 3, 60)
numbers = []
for model in (
    RandomForestClassifier(5, max_depth=4, random_state=0),
    make_pipeline(StandardScaler(), LogisticRegression()),
    SVC(probability=False),
    make_pipeline(MinMaxScaler(), RandomForestClassifier(3, max_depth=8, random_state=0)),
):
    made = convert(model.fit(x, y), "torch")
    numbers += made.predict(x).tolist()
for strategy in ("gemm", "tree_trav", "perf_tree_trav"):
    made = convert(
        GradientBoostingRegressor(n_estimators=4, max_depth=3, random_state=0).fit(x, y),
        "torch",
        extra_config={"tree_implementation": strategy},
    )
    numbers += made.predict(x).ravel().tolist()
same.report(numbers)

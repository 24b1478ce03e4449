"""Keras on this backend: a convolutional and a recurrent model, fit, evaluated, saved and loaded"""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import same

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)


def fill(model):
    for i, weight in enumerate(model.weights):
        if weight.dtype == "float32":
            fresh = np.random.default_rng(i).standard_normal(weight.shape) * 0.2
            weight.assign(np.abs(fresh) + 0.5 if "variance" in weight.path else fresh)
    return model


images, classes = rng.standard_normal((16, 12, 12, 3)).astype("float32"), rng.integers(0, 4, 16)
inputs = keras.Input((12, 12, 3))
x = keras.layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
x = keras.layers.BatchNormalization()(x)
x = keras.layers.MaxPooling2D()(x)
x = keras.layers.DepthwiseConv2D(3, strides=2, padding="same")(x)
x = keras.layers.Conv2DTranspose(6, 3, strides=2, padding="same")(x)
x = keras.layers.LayerNormalization()(x)
x = keras.layers.GlobalAveragePooling2D()(x)
model = fill(keras.Model(inputs, keras.layers.Dense(4)(x)))
model.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = model.fit(images, classes, batch_size=4, epochs=3, shuffle=False, verbose=0, validation_split=0.25)
numbers = [*history.history["loss"], *history.history["val_loss"], *history.history["accuracy"]]

words = rng.integers(0, 30, (8, 10))
inputs = keras.Input((10,), dtype="int64")
x = keras.layers.Embedding(30, 16, mask_zero=True)(inputs)
x = keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True))(x)
x = keras.layers.MultiHeadAttention(2, 8)(x, x)
x = keras.layers.GRU(6)(x)
text = fill(keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(x)))
text.compile(
    optimizer=keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    loss="binary_crossentropy",
    metrics=["mae", keras.metrics.AUC()],
)
numbers += text.fit(words, classes[:8] % 2, batch_size=4, epochs=3, shuffle=False, verbose=0).history["loss"]
numbers += text.evaluate(words, classes[:8] % 2, verbose=0)

with tempfile.TemporaryDirectory() as folder:
    for kept, given in ((model, images), (text, words)):
        kept.save(os.path.join(folder, "model.keras"))
        again = keras.models.load_model(os.path.join(folder, "model.keras"))
        numbers += again.predict(given, verbose=0).ravel()[:8].tolist()
same.report(numbers)

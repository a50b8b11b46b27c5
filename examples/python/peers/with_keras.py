"""The same program in four frameworks: Keras with TensorFlow."""
import keras
import numpy as np
import tensorflow as tf

data = np.load("digits.npz")
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
model.fit(data["x"], data["y"], batch_size=64, epochs=3, verbose=2)
model.save("digits.keras")

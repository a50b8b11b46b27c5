"""A digit classifier: data, model, training, saving. The same bits as examples/mnist_mlp.c."""
import sys

import tutti

folder = sys.argv[1] if len(sys.argv) > 1 else "data/mnist"
train = tutti.data.MNIST("train", dir=folder, batch=256)
test = tutti.data.MNIST("test", dir=folder, batch=256, shuffle=False)

model = tutti.Sequential([
    tutti.Flatten(),
    tutti.Dense(128, act="relu"),
    tutti.Dropout(0.2),
    tutti.Dense(10, act="softmax"),
], strategy="mirrored", devices="all")
model.compile(optimizer=tutti.optimizers.Adam(lr=1e-3), loss="cross_entropy", metrics=["accuracy"])
history = model.fit(train, epochs=5, validation_data=test)
model.save("mnist.tutti")
print(history.hash)

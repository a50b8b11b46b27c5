"""The same program in four frameworks: Tutti."""
import numpy as np
import tutti

data = np.load("digits.npz")
model = tutti.Sequential([
    tutti.Flatten(),
    tutti.Dense(64, act="relu"),
    tutti.Dense(10),
], strategy="mirrored", devices="all")
model.compile("adam", "cross_entropy", ["accuracy"])
model.fit(data["x"], data["y"], batch_size=64, epochs=3)
model.save("digits.tutti")

"""Training without fit(): a graph, its gradients and updates, one run per batch."""
import tutti
from tutti import ops

g = tutti.Graph(seed=1)
x = g.feed("x", (None, 28, 28, 1))
y = g.feed("y", (None,), "i32")
hidden = g.variable("hidden", (784, 64), init="glorot_uniform")
last = g.variable("out", (64, 10), init="glorot_uniform")
logits = ops.matmul(ops.matmul(ops.flatten(x), hidden, act="relu"), last)
loss = ops.mean(ops.cross_entropy(logits, y))
weights = [hidden, last]
updates = [ops.update_sgd(w, dw, momentum=0.9) for w, dw in zip(weights, tutti.grad(loss, weights))]

run = g.session()
for step, (images, labels) in enumerate(tutti.data.Digits(6400, batch=64)):
    value = run(loss, {x: images, y: labels}, targets=updates, step=step, lr=0.05)
    if step % 50 == 49:
        print(f"step {step + 1}: loss {value:.4f}")

"""The same program in four frameworks: JAX with Optax, sharded over all devices."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(np.array(jax.devices()), ("data",))
rows = NamedSharding(mesh, PartitionSpec("data"))
everywhere = NamedSharding(mesh, PartitionSpec())
data = np.load("digits.npz")
x, y = data["x"].reshape(-1, 784), data["y"]


def dense(key, n, m):
    bound = np.sqrt(6 / (n + m))
    return {"w": jax.random.uniform(key, (n, m), minval=-bound, maxval=bound), "b": jnp.zeros(m)}


keys = jax.random.split(jax.random.key(0))
params = jax.device_put([dense(keys[0], 784, 64), dense(keys[1], 64, 10)], everywhere)
adam = optax.adam(1e-3)
state = jax.device_put(adam.init(params), everywhere)


def loss_of(p, images, labels):
    h = jax.nn.relu(images @ p[0]["w"] + p[0]["b"])
    logits = h @ p[1]["w"] + p[1]["b"]
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return loss, (logits.argmax(-1) == labels).mean()


@jax.jit
def step(p, s, images, labels):
    (loss, accuracy), grads = jax.value_and_grad(loss_of, has_aux=True)(p, images, labels)
    updates, s = adam.update(grads, s)
    return optax.apply_updates(p, updates), s, loss, accuracy


for epoch in range(3):
    order = np.random.default_rng(epoch).permutation(len(x))
    sums = np.zeros(2)
    for i in range(0, len(x) - 63, 64):
        batch = order[i:i + 64]
        images, labels = jax.device_put((x[batch], y[batch]), rows)
        params, state, loss, accuracy = step(params, state, images, labels)
        sums += float(loss), float(accuracy)
    print(f"epoch {epoch + 1}/3 loss {sums[0] / (len(x) // 64):.4f} "
          f"accuracy {sums[1] / (len(x) // 64):.4f}")
np.savez("digits-weights.npz", **{f"{i}.{k}": v for i, p in enumerate(params) for k, v in p.items()})

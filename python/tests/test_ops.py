"""Ops on values, against NumPy; operators; DLPack; gradients."""
import numpy as np
import pytest
import tutti
from tutti import ops

rng = np.random.default_rng(0)
X = rng.standard_normal((4, 5), dtype=np.float32)
Y = rng.standard_normal((4, 5), dtype=np.float32)


def near(a, b, tolerance=1e-5):
    a = a.numpy() if hasattr(a, "numpy") else a
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    assert a.shape == np.asarray(b).shape


UNARY = {"neg": np.negative, "abs": np.abs, "exp": np.exp, "sin": np.sin, "cos": np.cos,
         "tanh": np.tanh, "square": np.square, "sign": np.sign,
         "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0),
         "silu": lambda x: x / (1 + np.exp(-x)), "softplus": lambda x: np.log1p(np.exp(x))}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    near(getattr(ops, name)(X), UNARY[name](X))


@pytest.mark.parametrize("name", ["sqrt", "log", "rsqrt"])
def test_unary_of_positive(name):
    x = np.abs(X) + 0.1
    near(getattr(ops, name)(x), {"sqrt": np.sqrt, "log": np.log, "rsqrt": lambda v: v**-0.5}[name](x))


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
          "minimum": np.minimum, "maximum": np.maximum, "equal": np.equal, "less": np.less,
          "greater": np.greater, "less_equal": np.less_equal, "greater_equal": np.greater_equal,
          "not_equal": np.not_equal}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    near(getattr(ops, name)(X, Y), BINARY[name](X, Y))


@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_binary_broadcasts(name):
    near(getattr(ops, name)(X, Y[0]), BINARY[name](X, Y[0]))
    near(getattr(ops, name)(X, 2.5), BINARY[name](X, np.float32(2.5)))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("keep", [False, True])
def test_reductions(name, axis, keep):
    want = getattr(np, name)(X, axis=axis, keepdims=keep)
    near(getattr(ops, name)(X, axis=axis, keep_dims=keep), want)


@pytest.mark.parametrize("a, b", [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5))])
def test_matmul(a, b):
    x, y = rng.standard_normal(a, dtype=np.float32), rng.standard_normal(b, dtype=np.float32)
    near(ops.matmul(x, y), x @ y)


def test_matmul_with_options():
    w, bias = rng.standard_normal((6, 5), dtype=np.float32), np.arange(6, dtype=np.float32)
    near(ops.matmul(X, w, transpose_b=True, bias=bias, act="relu"), np.maximum(X @ w.T + bias, 0))


def test_shapes():
    near(ops.reshape(X, (2, 10)), X.reshape(2, 10))
    near(ops.transpose(X, (1, 0)), X.T)
    near(ops.concat([X, Y], 1), np.concatenate([X, Y], 1))
    near(ops.stack([X, Y], 0), np.stack([X, Y]))
    near(ops.slice(X, 1, 1, 3), X[:, 1:3])
    near(ops.pad(X, 0, 1, 2), np.pad(X, ((1, 2), (0, 0))))
    near(ops.tile(X, 1, 2), np.tile(X, (1, 2)))
    near(ops.expand_dims(X, 0), X[None])
    near(ops.squeeze(ops.expand_dims(X, 0), 0), X)
    assert [p.shape for p in ops.split(X, 2)] == [(2, 5), (2, 5)]


def test_choices_and_types():
    near(ops.where(X > 0 if isinstance(X > 0, np.ndarray) else None, X, Y), np.where(X > 0, X, Y))
    assert ops.cast(X, "i32").dtype == "i32"
    assert ops.cast(X, np.int32).numpy().dtype == np.int32
    near(ops.clip(X, -0.5, 0.5), np.clip(X, -0.5, 0.5))
    near(ops.one_hot(np.array([0, 2], np.int32), 3, "f32"), np.eye(3, dtype="f4")[[0, 2]])
    near(ops.gather(X, np.array([1, 0], np.int32), 0), X[[1, 0]])
    near(ops.argmax(X, 1), X.argmax(1))


def test_softmax_and_losses():
    e = np.exp(X - X.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    near(ops.softmax(X), p)
    near(ops.log_softmax(X), np.log(p))
    labels = np.array([0, 4, 2, 1], np.int32)
    near(ops.cross_entropy(X, labels), -np.log(p[np.arange(4), labels]))
    masked = ops.cross_entropy(X, labels, ignore=4).numpy()
    assert masked[1] == 0 and masked[0] > 0


def test_operators():
    x, y = tutti.tensor(X), tutti.tensor(Y)
    near(x + y, X + Y)
    near(2 - x, 2 - X)
    near(x * 3 / 2, X * 3 / 2)
    near(-x, -X)
    near(x @ y.T, X @ Y.T, 1e-4)
    near(x ** 2, X ** 2)
    near(x[1:3, ::], X[1:3])
    near(x[0], X[0])
    near(x[-1, 2], X[-1, 2])
    near(x[..., 1], X[..., 1])
    near(x.reshape(5, 4).sum(0), X.reshape(5, 4).sum(0))
    assert float((x < y).astype("f32").sum()) == (X < Y).sum()


def test_values_share_memory_with_numpy():
    t = tutti.tensor(X)
    assert t.numpy().ctypes.data == X.ctypes.data
    assert np.from_dlpack(ops.relu(X)).shape == X.shape
    y = ops.relu(X)
    assert np.from_dlpack(y).ctypes.data == y.numpy().ctypes.data


def test_types_of_values():
    assert tutti.tensor([1, 2]).dtype == "i32"
    assert tutti.tensor([1.0]).dtype == "f32"
    assert tutti.tensor(np.zeros(2)).dtype == "f64"
    assert tutti.tensor(np.zeros(2), "f32").dtype == "f32"
    assert tutti.tensor([True]).dtype == "bool"
    assert tutti.tensor(np.zeros(2, np.int16)).dtype == "i32"


def test_gradient_of_a_function():
    near(tutti.grad(lambda x: ops.sum(x * x))(X), 2 * X)
    near(tutti.grad(lambda w: ops.mean(ops.matmul(X, w)))(Y.T.copy()),
         np.repeat(X.mean(0)[:, None] / 4, 4, 1))


def test_graph_by_hand():
    g = tutti.Graph()
    x, w = g.feed("x", (None, 5)), g.variable("w", (5, 1), init="normal", b=0.1)
    loss = ops.mean((x @ w - 1.0) ** 2)
    update = ops.update_sgd(w, tutti.grad(loss, w))
    run = g.session()
    losses = [float(run(loss, {x: X}, targets=[update], lr=0.1, step=i)) for i in range(50)]
    assert losses[-1] < 0.2 * losses[0]
    assert g.trainable[0].name == "w" and "matmul" in str(g)
    w0 = run.get(w)
    run.set(w, np.zeros((5, 1)))
    assert float(run(loss, {x: X})) == 1.0 and not np.array_equal(w0, run.get(w))


def test_gradient_by_hand_is_that_of_numpy():
    g = tutti.Graph()
    x, w = g.feed("x", (None, 5)), g.variable("v", (5, 2), init="normal", b=1.0)
    y = ops.sum(ops.tanh(x @ w))
    run, dw = g.session(), tutti.grad(y, [w])[0]
    value = run.get(w)
    near(run(dw, {x: X}), X.T @ (1 - np.tanh(X @ value) ** 2), 1e-4)


def test_gradients_that_do_not_depend_are_none():
    g = tutti.Graph()
    a, b = g.variable("a", (2,)), g.variable("b", (2,))
    assert tutti.grad(ops.sum(a), [a, b])[1] is None


def test_a_graph_tensor_shows_its_batch():
    g = tutti.Graph()
    x = g.feed("x", (None, 3))
    assert x.shape == (None, 3) and "batch" in repr(x)
    assert (x * 2).dtype == "f32"


def test_print_and_assert(capsys):
    x = ops.print(X[:1], "rows")
    near(x, X[:1])
    with pytest.raises(tutti.AssertError, match="too large"):
        ops.assert_(X, X < 0, "too large")


def test_constants_in_a_with_block_are_nodes():
    with tutti.Graph() as g:
        y = ops.add(np.float32([1, 2]), 1.0)
    assert y.graph is g
    near(y.numpy(), [2, 3])

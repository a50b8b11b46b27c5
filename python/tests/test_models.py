"""Models: sequential, functional, every layer; weights; predict; evaluate."""
import json

import numpy as np
import pytest
import tutti
from tutti import ops

SHAPES = {"Dense": ((5,), (7,)), "Conv2D": ((9, 9, 2), None), "DepthwiseConv2D": ((9, 9, 2), None),
          "Embedding": ((6,), (6, 4)), "GPT": ((8,), (8, 11)), "ResNet": ((32, 32, 3), (10,)),
          "LeNet": ((28, 28, 1), (10,)), "Positional": ((6, 4), (6, 4)),
          "Attention": ((6, 4), (6, 4)), "TransformerBlock": ((6, 4), (6, 4)),
          "MaxPool2D": ((8, 8, 2), (4, 4, 2)), "AvgPool2D": ((8, 8, 2), (4, 4, 2)),
          "GlobalAvgPool2D": ((8, 8, 2), (2,)), "GlobalMaxPool2D": ((8, 8, 2), (2,)),
          "Reshape": ((6,), (2, 3)), "Permute": ((2, 3), (3, 2)), "Flatten": ((2, 3), (6,)),
          "Glu": ((6,), (3,)), "Swiglu": ((5,), (5,)), "Geglu": ((5,), (5,)), "Repeat": ((5,), (3, 5)),
          "ZeroPad": ((4, 4, 2), (6, 6, 2)), "Crop": ((4, 4, 2), (2, 2, 2)),
          "Upsample1D": ((4, 2), (8, 2)), "Upsample2D": ((4, 4, 2), (8, 8, 2)),
          "PixelShuffle": ((4, 4, 8), (8, 8, 2)), "PixelUnshuffle": ((4, 4, 2), (2, 2, 8)),
          "SpatialDropout": ((4, 4, 2), (4, 4, 2)), "GroupNorm": ((4, 4, 4), (4, 4, 4)),
          "InstanceNorm": ((4, 4, 2), (4, 4, 2)), "Conv1D": ((9, 2), None),
          "Conv1DTranspose": ((5, 2), None), "Conv2DTranspose": ((5, 5, 2), None),
          "SeparableConv2D": ((9, 9, 2), None), "MaxPool1D": ((8, 2), (4, 2)),
          "AvgPool1D": ((8, 2), (4, 2)), "GlobalAvgPool1D": ((8, 2), (2,)),
          "GlobalMaxPool1D": ((8, 2), (2,)), "AdaptiveAvgPool2D": ((7, 5, 2), (3, 3, 2)),
          "AdaptiveMaxPool2D": ((7, 5, 2), (3, 3, 2)), "LSTM": ((6, 4), (6, 3)),
          "GRU": ((6, 4), (6, 3)), "RNN": ((6, 4), (6, 3)),
          "MultiHeadAttention": ((6, 4), (6, 4)), "Autoencoder": ((5,), (5,)),
          "BERT": ((8,), (8, 11)), "LLaMA": ((8,), (8, 11)), "LSTMLM": ((8,), (8, 11)),
          "MobileNetV2": ((32, 32, 3), (10,)), "UNet": ((8, 8, 3), (8, 8, 2)),
          "ViT": ((8, 8, 3), (10,)), "Tabular": ((5,), (1,))}
JOINS = ("Add", "Concat", "Multiply", "Subtract", "Average", "Maximum", "Minimum", "Dot")
ARGUMENTS = {"Dense": (7,), "Conv2D": (3,), "MLP": ([4, 2],), "Attention": (2,),
             "TransformerBlock": (2,), "Reshape": ((2, 3),), "Permute": ([1, 0],),
             "Activation": ("tanh",), "Dropout": (0.5,), "ResNet": (18,), "Repeat": (3,),
             "Swiglu": (8,), "Geglu": (8,), "ZeroPad": (1,), "Crop": (1,), "Conv1D": (3,),
             "Conv1DTranspose": (3,), "Conv2DTranspose": (3,), "SeparableConv2D": (3,),
             "AdaptiveAvgPool2D": (3,), "AdaptiveMaxPool2D": (3,), "LSTM": (3,), "GRU": (3,), "RNN": (3,),
             "MultiHeadAttention": (2,), "Autoencoder": ([3, 2],), "Expression": ("x * sigmoid(x)",)}
WORDS = {"Embedding": {"vocab": 11, "width": 4}, "ResNet": {"width": 4, "small": True},
         "GPT": {"vocab": 11, "layers": 1, "heads": 2, "width": 8},
         "Residual": {"layers": [tutti.Dense(5)]}, "GroupNorm": {"groups": 2},
         "BERT": {"vocab": 11, "layers": 1, "heads": 2, "width": 8},
         "LLaMA": {"vocab": 11, "layers": 1, "heads": 2, "width": 8},
         "LSTMLM": {"vocab": 11, "layers": 1, "width": 8, "units": 8},
         "MobileNetV2": {"width": 0.1, "small": True}, "UNet": {"width": 2, "depth": 2},
         "ViT": {"patch": 4, "layers": 1, "heads": 2, "width": 8}}
TOKENS = ("Embedding", "GPT", "BERT", "LLaMA", "LSTMLM")
KINDS = sorted(n for n in tutti.layers.__all__
               if isinstance(getattr(tutti.layers, n), type) and getattr(tutti.layers, n).kind)


@pytest.mark.parametrize("name", KINDS)
def test_every_layer(name):
    layer = getattr(tutti, name)(*ARGUMENTS.get(name, ()), **WORDS.get(name, {}))
    shape, out = SHAPES.get(name, ((5,), None))
    dtype = "i32" if name in TOKENS else "f32"
    if name in JOINS:
        x = tutti.Input(shape)
        model = tutti.Model(x, layer([tutti.Dense(5)(x), x]))
    else:
        model = tutti.Sequential([layer], input=shape, dtype=dtype)
    x = np.ones((3, *shape), "int32" if dtype == "i32" else "float32")
    y = model.predict(x)
    assert len(y) == 3 and np.isfinite(y).all()
    if out is not None:
        assert y.shape[1:] == out
    assert repr(layer).startswith(name)


def test_dense_is_a_product():
    model = tutti.Sequential([tutti.Dense(3, act="relu", name="d")], input=(4,))
    w = model.get_weights()
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("f4")
    want = np.maximum(x @ w["d.weight"] + w["d.bias"], 0)
    np.testing.assert_allclose(model.predict(x), want, rtol=1e-5, atol=1e-6)
    assert model.count_params() == 15 and model.weight_names == ["d.weight", "d.bias"]


def test_weights_are_set_by_name():
    model = tutti.Sequential([tutti.Dense(3, name="d")], input=(4,))
    model.set_weights({"d.weight": np.ones((4, 3)), "d.bias": [1, 2, 3]})
    np.testing.assert_array_equal(model.predict(np.ones((1, 4))), [[5, 6, 7]])
    with pytest.raises(ValueError, match="no weight 'd.wieght'; did you mean 'd.weight'"):
        model.set_weights({"d.wieght": 0})
    with pytest.raises(ValueError, match="d.bias is \\(3,\\), but the value is \\(4,\\)"):
        model.set_weights({"d.bias": [1, 2, 3, 4]})


def test_functional_with_two_inputs_and_outputs():
    a, b = tutti.Input((2,), name="a"), tutti.Input((3,), name="b")
    h = tutti.Dense(8, act="tanh")(tutti.Concat()([a, b]))
    model = tutti.Model([a, b], {"sum": tutti.Dense(1)(h), "kind": tutti.Dense(2)(h)})
    model.compile(tutti.optimizers.Adam(0.03), [
        tutti.losses.MSE(output="sum", target="s"),
        tutti.losses.CrossEntropy(output="kind", target="k", weight=0.5)])
    rng = np.random.default_rng(0)
    x = {"a": rng.standard_normal((64, 2)), "b": rng.standard_normal((64, 3))}
    y = {"s": (x["a"].sum(1) + x["b"].sum(1))[:, None], "k": (x["a"][:, 0] > 0).astype(int)}
    h = model.fit(x, y, epochs=30, verbose=0)
    assert h.history["loss"][-1] < 0.5 * h.history["loss"][0]
    out = model.predict(x)
    assert out["sum"].shape == (64, 1) and out["kind"].shape == (64, 2)
    out2 = model.predict((x["a"], x["b"]))
    assert np.array_equal(out["sum"], out2["sum"])
    with pytest.raises(ValueError, match="the model has no input 'c'"):
        model.predict({"a": x["a"], "c": x["b"]})


def test_a_layer_called_twice_shares_its_weights():
    x = tutti.Input((4,))
    layer = tutti.Dense(4)
    model = tutti.Model(x, layer(layer(x)))
    assert model.count_params() == 20


def test_residual_is_a_sum():
    x = tutti.Input((4,))
    a = tutti.Model(x, tutti.Dense(4, name="d")(x) + x)
    b = tutti.Sequential([tutti.Residual([tutti.Dense(4, name="d")])], input=(4,))
    v = np.random.default_rng(0).standard_normal((3, 4)).astype("f4")
    assert np.array_equal(a.predict(v), b.predict(v))


def test_pins_to_devices():
    model = tutti.Sequential([tutti.Dense(4, device="cpu:1"), tutti.Dense(2, device="cpu:0")],
                             input=(3,), devices="cpu:0*2")
    assert model.predict(np.ones((2, 3))).shape == (2, 2)


def test_own_layer_knows_training():
    seen = []

    class Noise(tutti.Layer):
        def build(self, x):
            seen.append(self.training)
            return ops.dropout(x, 0.5) if self.training else x

    model = tutti.Sequential([Noise(), tutti.Dense(1)], input=(4,))
    model.compile("sgd", "mse")
    assert True in seen and False in seen
    with pytest.raises(RuntimeError, match="in build"):
        Noise().weight("w", (1,))


def test_own_layer_with_options():
    class Poly(tutti.Layer):
        def __init__(self, degree, **more):
            super().__init__(**more)
            self.degree = degree

        def build(self, x):
            y = 0.0
            for i in range(self.degree + 1):
                y = self.weight(f"c{i}", (1,), init="constant", a=1) * x ** float(i) + y
            return y

    model = tutti.Sequential([Poly(2, name="p")], input=(1,))
    np.testing.assert_allclose(model.predict([[2.0], [3.0]]), [[7], [13]], rtol=1e-5)
    assert model.weight_names == ["p.c0", "p.c1", "p.c2"]


def test_summary_and_repr(capsys):
    model = tutti.Sequential([tutti.Dense(3)], input=(4,))
    model.summary()
    assert "dense_1" in capsys.readouterr().out
    assert json.loads(model.summary(json=True))
    assert "2 weights" in repr(model)


def test_add_appends():
    model = tutti.Sequential(input=(4,))
    model.add(tutti.Dense(3))
    model.add(tutti.Dense(2))
    assert model.predict(np.zeros((1, 4))).shape == (1, 2)


def test_evaluate(digits, small):
    x, y = digits
    model = small()
    model.fit(x, y, epochs=3, verbose=0)
    got = model.evaluate(x, y)
    p = model.predict(x)
    assert got["accuracy"] == pytest.approx((p.argmax(1) == y).mean())
    e = p - p.max(1, keepdims=True)
    want = -(e[np.arange(len(y)), y] - np.log(np.exp(e).sum(1))).mean()
    assert got["loss"] == pytest.approx(want, rel=1e-4)
    parts = model.evaluate([(x[:200], y[:200]), (x[200:], y[200:])].__iter__())
    assert parts["accuracy"] == pytest.approx(got["accuracy"])


def test_predict_takes_what_arrays_are():
    model = tutti.Sequential([tutti.Dense(2)], input=(3,))
    a = model.predict([[1, 2, 3]])
    assert np.array_equal(a, model.predict(np.float64([[1, 2, 3]])))
    assert np.array_equal(a, model.predict(tutti.tensor([[1.0, 2, 3]])))
    assert model.predict(np.zeros((0, 3))).shape == (0, 2)
    assert np.array_equal(model.predict(np.ones((600, 3)), batch_size=7),
                          model.predict(np.ones((600, 3))))


def test_predict_a_data_set():
    data = tutti.data.Digits(50, batch=20, shuffle=False)
    model = tutti.Sequential([tutti.Flatten(), tutti.Dense(10)], input=(28, 28, 1))
    assert model.predict(data).shape == (50, 10)


def test_a_model_built_by_its_data_takes_the_vocabulary(tmp_path):
    (tmp_path / "t.txt").write_text("hello world " * 40)
    data = tutti.data.Text(str(tmp_path / "t.txt"), context=8, batch=4)
    model = tutti.Sequential([tutti.GPT(layers=1, heads=2, width=8)])
    model.compile("adam", "cross_entropy", ["perplexity"])
    h = model.fit(data, epochs=1, verbose=0)
    assert h.history["perplexity"][0] < 100


def test_half_precision():
    model = tutti.Sequential([tutti.Dense(4, act="relu"), tutti.Dense(1)], input=(3,))
    model.compile("sgd", "mse", precision="bf16")
    model.fit(np.ones((8, 3)), np.ones((8, 1)), verbose=0)
    assert model.get_weights()["dense_1.weight"].dtype == np.float32

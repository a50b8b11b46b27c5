"""PyTorch: DLPack without copies, DataLoaders, the values of its ops, weights of its modules."""
import numpy as np
import pytest
import tutti
from tutti import data, ops, optimizers

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

torch.manual_seed(0)
X = torch.randn(64, 5)
Y = torch.randn(64, 1)


def line():
    model = tutti.Sequential([tutti.Dense(1)], input=(5,))
    model.compile(optimizers.SGD(0.1), "mse")
    return model


def test_dlpack_both_ways_without_copies():
    t = tutti.from_dlpack(X)
    assert t.numpy().ctypes.data == X.data_ptr()
    y = ops.relu(X)
    back = torch.from_dlpack(y)
    assert back.data_ptr() == y.numpy().ctypes.data
    back[0, 0] = 42
    assert y.numpy()[0, 0] == 42
    assert data.Arrays(X, Y).arrays[0][1].ctypes.data == X.data_ptr()


def test_bf16_keeps_its_bits():
    b = X.bfloat16()
    t = tutti.from_dlpack(b)
    assert t.dtype == "bf16" and t.numpy().ctypes.data == b.data_ptr()
    assert np.array_equal(ops.cast(t, "f32").numpy(), b.float().numpy())


def test_tensors_with_gradients_are_taken():
    assert tutti.tensor(nn.Parameter(X)).shape == (64, 5)


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh", "silu", "softplus", "gelu"])
def test_ops(name):
    want = F.gelu(X, approximate="tanh") if name == "gelu" else getattr(
        F if name in ("silu", "softplus") else torch, name)(X)
    np.testing.assert_allclose(getattr(ops, name)(X).numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_conv2d():
    x, w = torch.randn(2, 8, 9, 3), torch.randn(3, 3, 3, 4)
    want = F.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), stride=2, padding=1)
    got = ops.conv2d(x, w, stride=2, pad=1)
    np.testing.assert_allclose(got.numpy(), want.permute(0, 2, 3, 1).numpy(), rtol=1e-4, atol=1e-4)


def test_attention_and_norms():
    q = torch.randn(2, 6, 8)
    heads = q.reshape(2, 6, 2, 4).transpose(1, 2)
    want = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
    got = ops.attention(q, q, q, heads=2, causal=True)
    np.testing.assert_allclose(got.numpy(), want.transpose(1, 2).reshape(2, 6, 8).numpy(), rtol=1e-4,
                               atol=1e-5)
    g, b = torch.randn(8), torch.randn(8)
    np.testing.assert_allclose(ops.layer_norm(q, g, b).numpy(), F.layer_norm(q, (8,), g, b).numpy(),
                               rtol=1e-4, atol=1e-5)


def test_gradients():
    w = torch.randn(5, 3, requires_grad=True)
    torch.tanh(X @ w).sum().backward()
    got = tutti.grad(lambda v: ops.sum(ops.tanh(ops.matmul(X, v))))(w)
    np.testing.assert_allclose(got.numpy(), w.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_loaders_and_data_sets():
    arrays = line().fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    loader = DataLoader(TensorDataset(X, Y), batch_size=16)
    assert line().fit(loader, epochs=2, verbose=0).hash == arrays.hash
    mapped = line().fit(data.Map(TensorDataset(X, Y), batch=16, shuffle=False), epochs=2, verbose=0)
    assert mapped.hash == arrays.hash
    assert line().fit(TensorDataset(X, Y), batch_size=16, verbose=0).steps == 4


def test_a_training_step_is_that_of_pytorch():
    module = nn.Linear(5, 1)
    model = line()
    from tutti import torch as tt
    tt.load_from(model, nn.Sequential(module))
    steps = torch.optim.SGD(module.parameters(), lr=0.1)
    for i in range(0, 64, 16):
        steps.zero_grad()
        F.mse_loss(module(X[i:i + 16]), Y[i:i + 16]).backward()
        steps.step()
    model.fit(X, Y, batch_size=16, shuffle=False, verbose=0)
    w = model.get_weights()
    np.testing.assert_allclose(w["dense_1.weight"], module.weight.detach().numpy().T, rtol=1e-4,
                               atol=1e-6)


def cnn():
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                         nn.Linear(4 * 6 * 6, 10))


def test_weights_there_and_back():
    from tutti import torch as tt
    module = cnn().eval()
    module[1].running_mean += 0.3
    model = tutti.Sequential([tutti.Conv2D(4), tutti.BatchNorm(act="relu"), tutti.Flatten(),
                              tutti.Dense(10)], input=(8, 8, 2))
    tt.load_from(model, module)
    x = torch.randn(3, 8, 8, 2)
    want = module(x.permute(0, 3, 1, 2)).detach().numpy()
    np.testing.assert_allclose(model.predict(x), want, rtol=1e-4, atol=1e-5)
    back = tt.copy_to(model, cnn()).eval()
    np.testing.assert_allclose(back(x.permute(0, 3, 1, 2)).detach().numpy(), want, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="the module has 1 layers with weights .0., but the model has 3"):
        tt.load_from(model, nn.Sequential(nn.Linear(2, 2)))

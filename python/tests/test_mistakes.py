"""Mistakes: exceptions that name the culprit and say what to do."""
import numpy as np
import pytest
import tutti
from tutti import ops


def says(error, words):
    return pytest.raises(error, match=words)


def test_layers():
    with says(TypeError, "Dense\\(\\) has no argument 'activation'; it is called 'act' here"):
        tutti.Dense(3, activation="relu")
    with says(TypeError, "Conv2D\\(\\) has no argument 'kernel_size'; it is called 'kernel'"):
        tutti.Conv2D(3, kernel_size=3)
    with says(TypeError, "Dense\\(\\) has no argument 'unit'; did you mean 'units'"):
        tutti.Dense(3, unit=3)
    with says(ValueError, "Dense: act 'rellu' is not known; did you mean 'relu'"):
        tutti.Dense(3, act="rellu")
    with says(TypeError, "units must be a int, not '10'"):
        tutti.Dense("10")
    with says(TypeError, "missing 1 required positional argument: 'units'"):
        tutti.Dense()
    with says(TypeError, "Flatten\\(\\) has no argument 'x'"):
        tutti.Flatten(x=1)


def test_models():
    with says(TypeError, "Dense is a class; write Dense\\(...\\)"):
        tutti.Sequential([tutti.Dense])
    with says(TypeError, "'dense' is not a layer"):
        tutti.Sequential(["dense"])
    with says(TypeError, "there is no option 'device'; did you mean 'devices'"):
        tutti.Sequential([tutti.Dense(1)], device="cpu:0")
    with says(tutti.InvalidError, "units"):
        tutti.Sequential([tutti.Dense(-3)], input=(4,))
    with says(tutti.ShapeError, "conv2d_1.*must be"):
        tutti.Sequential([tutti.Conv2D(4)], input=(28,))
    with says(ValueError, "the shape of the input is not known yet"):
        tutti.Sequential([tutti.Dense(1)]).summary()
    with says(ValueError, "vocab must be given"):
        tutti.Sequential([tutti.Embedding(width=4)], input=(8,), dtype="i32")
    with says(ValueError, "the model has no layers"):
        tutti.Sequential([]).fit(np.zeros((4, 2)), np.zeros((4, 1)))
    with says(TypeError, "arrays are given to model.predict"):
        tutti.Dense(3)(np.zeros((2, 2)))
    with says(ValueError, "input that is not among the model's inputs"):
        a, b = tutti.Input((2,)), tutti.Input((2,))
        tutti.Model(a, tutti.Add()([a, b]))


def test_compile():
    m = tutti.Sequential([tutti.Dense(3)], input=(4,))
    with says(TypeError, "compile\\(\\) needs a loss"):
        m.compile("adam")
    with says(ValueError, "there is no metric 'acc'; it is called 'accuracy' here"):
        tutti.Sequential([tutti.Dense(1)]).compile("adam", "mse", ["acc"])
    with says(ValueError, "'sparse_categorical_crossentropy'; it is called 'cross_entropy' here"):
        tutti.Sequential([tutti.Dense(1)]).compile("adam", "sparse_categorical_crossentropy")
    with says(ValueError, "there is no loss 'cross_entrop'; did you mean 'cross_entropy'"):
        m.compile("adam", "cross_entrop")
    with says(ValueError, "there is no optimizer 'addam'; did you mean"):
        m.compile("addam", "mse")
    with says(ValueError, "there is no metric 'acc'"):
        m.compile("adam", "mse", ["acc"])
    with says(TypeError, "Adam\\(\\) has no argument 'learning_rate'; it is called 'lr' here"):
        m.compile(tutti.optimizers.Adam(learning_rate=1), "mse")
    with says(tutti.InvalidError, "accuracy cannot be used with the loss mse"):
        m.compile("adam", "mse", ["accuracy"])
    with says(tutti.InvalidError, "lr"):
        m.compile(tutti.optimizers.SGD(lr=-1), "mse")
    m.compile("adam", "mse")  # the context is not stuck
    assert m.count_params() == 15


def test_fit(digits, small):
    x, y = digits
    with says(RuntimeError, "not compiled: call compile"):
        tutti.Sequential([tutti.Dense(1)]).fit(x.reshape(400, -1), y)
    with says(ValueError, "different numbers of records: 'x' has 400, 'y' has 399"):
        small().fit(x, y[:-1])
    with says(ValueError, "epochs is 0"):
        small().fit(x, y, epochs=0)
    with says(TypeError, "a int is not data|a 'int'|int is not"):
        small().fit(5)
    with says(tutti.ShapeError, "give y as int32, such as y.astype\\('int32'\\)"):
        small().fit(x, y[:, None].astype("f4"))
    with says(TypeError, "not a callback"):
        small().fit(x, y, callbacks=[print])
    with says(ValueError, "nan is 'stopp'; did you mean 'stop'"):
        small().fit(x, y, nan="stopp")
    with says(tutti.Error, "10"):
        small().fit(x, y + 20, verbose=0)  # labels outside of the classes
    with says(TypeError, "there is no callback 'on_epoch_ended'"):
        tutti.callbacks.LambdaCallback(on_epoch_ended=print)
    with says(ValueError, "records of shape \\(28, 28, 1\\)"):
        m = small()
        m.fit(x, y, verbose=0)
        m.predict(x.reshape(400, -1))
    with says(tutti.Error, "shape|\\[784\\]|is"):
        m.fit(x.reshape(400, -1), y, verbose=0)


def test_data(tmp_path):
    with says(tutti.FileError, "nothing.csv"):
        len(tutti.data.CSV(str(tmp_path / "nothing.csv")))
    with says(tutti.FileError, "nothing"):
        tutti.load(tmp_path / "nothing")
    with says(TypeError, "CSV\\(\\) has no argument 'target'"):
        tutti.data.CSV("a.csv", target="y")
    with says(TypeError, "split\\(\\) takes one of fraction and rows"):
        tutti.data.Digits(10).split()
    with says(TypeError, "no element type here"):
        tutti.data.Arrays(np.zeros((2, 2), complex))
    with says(tutti.InvalidError, "job.yaml:1:1: unknown key .modell.; did you mean .model."):
        (tmp_path / "job.yaml").write_text("modell: []\n")
        tutti.Job(tmp_path / "job.yaml")


def test_graphs():
    with says(tutti.ShapeError, "\\[2, 3\\].*\\[4, 5\\]"):
        ops.matmul(np.zeros((2, 3)), np.zeros((4, 5)))
    with says(tutti.DtypeError, "i32|integer"):
        ops.softmax(np.zeros(3, np.int32))
    with says(TypeError, "has no value yet"):
        bool(tutti.Graph().feed("x", (None,)))
    g = tutti.Graph()
    x = g.feed("x", (None, 2))
    with says(ValueError, "depends on a feed"):
        x.numpy()
    with says(tutti.InvalidError, "x"):
        g.session()(ops.sum(x), {})
    with says(ValueError, "belongs to another graph"):
        ops.add(x, tutti.Graph().feed("z", (None, 2)))
    with says(ValueError, "there is no initializer 'glorot'"):
        g.variable("w", (2,), init="glorot")
    with says(TypeError, "there is no element type 'float8'"):
        g.feed("q", (None,), "float8")


def test_devices():
    if "gpu" not in tutti.devices("all")[0]["name"]:
        with says(tutti.Error, "gpu:all.*no gpu can be used"):
            tutti.devices("gpu:all")
    with says(tutti.Error, "gpu"):
        tutti.Sequential([tutti.Dense(1)], devices="gpu:7", input=(2,))
    with says(tutti.Error, "mirored"):
        tutti.Sequential([tutti.Dense(1)], strategy="mirored", input=(2,))


def test_errors_are_python_errors_too():
    assert issubclass(tutti.ShapeError, ValueError) and issubclass(tutti.ShapeError, tutti.Error)
    assert issubclass(tutti.FileError, OSError) and issubclass(tutti.OutOfMemory, MemoryError)
    try:
        ops.matmul(np.zeros((2, 3)), np.zeros((4, 5)))
    except tutti.Error as error:
        assert error.status == "TT_ESHAPE"
        assert type(error).__module__ == "tutti"


def test_python_functions_raise_their_own_exceptions(digits):
    x, y = digits

    def broken(target, output):
        raise KeyError("mine")

    m = tutti.Sequential([tutti.Flatten(), tutti.Dense(10)])
    m.compile("sgd", broken)
    with says(KeyError, "mine"):
        m.fit(x, y, verbose=0)
    m.compile("sgd", lambda t, o: 3)
    with says(TypeError, "must return a tensor"):
        m.fit(x, y, verbose=0)
    m.compile(tutti.optimizers.SGD(0.1, schedule=lambda step, steps: 1 / 0), "cross_entropy")
    with says(ZeroDivisionError, "division"):
        m.fit(x, y, verbose=0)
    m.compile(tutti.optimizers.SGD(0.1, schedule=lambda step, steps: -1.0), "cross_entropy")
    with says(ValueError, "-1.0 at step 0"):
        m.fit(x, y, verbose=0)
    m.compile("sgd", "cross_entropy")
    m.fit(x, y, verbose=0)  # and it can be used again

    class Wrong(tutti.Layer):
        def build(self, x):
            return ops.matmul(x, np.zeros((3, 3), "f4"))

    with says(tutti.ShapeError, "784"):
        tutti.Sequential([tutti.Flatten(), Wrong()], input=(28, 28))

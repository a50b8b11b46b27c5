"""One device and four: strategy and devices are all that changes, and the weights are equal."""
import tutti


def train(**where):
    model = tutti.Sequential([tutti.Flatten(), tutti.Dense(64, act="relu"), tutti.Dense(10)], **where)
    model.compile("adam", "cross_entropy", ["accuracy"])
    return model.fit(tutti.data.Digits(2000, batch=64), epochs=2).hash


one = train()
four = train(strategy="mirrored", devices="cpu:0*4")
print(one, four)
assert one == four

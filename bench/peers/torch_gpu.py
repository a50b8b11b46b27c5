"""The works of bench/gpu.c in PyTorch, the way its users run them fast: autocast to bf16, compiled,
fused optimizers, channels last, data on the device; the small works in f32, without TF32. Mode graph
captures the whole step by hand as a CUDA graph. Speaks the lines of bench/gpu_side.h.

usage: torch_gpu.py gpt2|resnet50|mlp|cnn compile|eager|graph --rows N [--layers N ...] [--half 1]"""
import argparse
import os
import sys
import time


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("work", choices=["gpt2", "resnet50", "mlp", "cnn"])
    p.add_argument("mode", choices=["compile", "eager", "graph"])
    for name in ("rows", "layers", "heads", "width", "context", "vocab", "side", "classes", "half"):
        p.add_argument("--" + name, type=int, default=0)
    return p.parse_args()


def gpt2(a, torch):
    """GPT-2 with biases, learned positions and a tied head; AdamW, gradients clipped at norm 1."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            w = a.width
            self.norm1, self.norm2 = nn.LayerNorm(w), nn.LayerNorm(w)
            self.qkv, self.out = nn.Linear(w, 3 * w), nn.Linear(w, w)
            self.up, self.down = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)

        def forward(self, x):
            rows, length, width = x.shape
            heads = self.qkv(self.norm1(x)).view(rows, length, 3, a.heads, width // a.heads)
            q, k, v = heads.permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(rows, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(a.vocab, a.width)
            self.place = nn.Embedding(a.context, a.width)
            self.blocks = nn.ModuleList(Block() for _ in range(a.layers))
            self.norm = nn.LayerNorm(a.width)
            for m in self.modules():
                if isinstance(m, (nn.Linear, nn.Embedding)):
                    nn.init.normal_(m.weight, std=0.02)

        def forward(self, tokens, targets):
            x = self.embed(tokens) + self.place.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            logits = F.linear(self.norm(x), self.embed.weight)
            return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    model = Model().cuda()
    data = torch.randint(0, a.vocab, (8, 2, a.rows, a.context), device="cuda")
    run = torch.compile(model) if a.mode == "compile" else model
    if not a.half:  # a small one, as the other small works: Adam, no clipping
        rule = adam(torch, model)
        return model, whole(a, torch, rule, lambda d: run(d[0], d[1]), data)
    rule = torch.optim.AdamW(
        model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True
    )

    def step(i):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(data[i % 8][0], data[i % 8][1])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rule.step()
        rule.zero_grad(set_to_none=True)

    return model, step


def resnet50(a, torch):
    """torchvision's ResNet-50, channels last; SGD with momentum."""
    import torchvision

    torch.backends.cudnn.benchmark = True
    model = torchvision.models.resnet50(num_classes=a.classes).cuda()
    model = model.to(memory_format=torch.channels_last)
    rule = torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, fused=True
    )
    x = torch.randn(a.rows, 3, a.side, a.side, device="cuda")
    x = x.to(memory_format=torch.channels_last)
    y = torch.randint(0, a.classes, (a.rows,), device="cuda")
    run = torch.compile(model) if a.mode == "compile" else model

    def step(_):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(run(x), y)
        loss.backward()
        rule.step()
        rule.zero_grad(set_to_none=True)

    return model, step


def adam(torch, model):
    return torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)


def whole(a, torch, rule, loss_of, data):
    """A step as it is, or captured: then its data are copied to where the graph reads them."""

    def plain(d):
        loss_of(d).backward()
        rule.step()
        rule.zero_grad(set_to_none=True)

    if a.mode != "graph":
        return lambda i: plain(data[i % 8])
    still = data[0]
    still = [x.clone() for x in still] if isinstance(still, tuple) else still.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            plain(still)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plain(still)

    def replay(i):
        new = data[i % 8]
        if isinstance(still, list):
            for to, of in zip(still, new):
                to.copy_(of)
        else:
            still.copy_(new)
        graph.replay()

    return replay


def classes(a, torch, model):
    """A model of images, or of anything with their shape, with Adam, f32."""
    model = model.cuda()
    rule = adam(torch, model)
    x = torch.randn(8, a.rows, 1, a.side, a.side, device="cuda")
    y = torch.randint(0, a.classes, (8, a.rows), device="cuda")
    run = torch.compile(model) if a.mode == "compile" else model
    data = [(x[i], y[i]) for i in range(8)]
    loss = torch.nn.functional.cross_entropy
    return model, whole(a, torch, rule, lambda d: loss(run(d[0]), d[1]), data)


def mlp(a, torch):
    """784, hidden layers of one width, classes."""
    nn = torch.nn
    widths = [a.side * a.side] + [a.width] * a.layers
    parts = [nn.Flatten()]
    for i in range(a.layers):
        parts += [nn.Linear(widths[i], widths[i + 1]), nn.ReLU()]
    return classes(a, torch, nn.Sequential(*parts, nn.Linear(widths[-1], a.classes)))


def cnn(a, torch):
    """Two convolutions, pooling, two dense layers."""
    nn = torch.nn
    flat = ((a.side - 4) // 2) ** 2 * 64
    return classes(
        a,
        torch,
        nn.Sequential(
            *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(flat, 128), nn.ReLU(), nn.Linear(128, a.classes)),
        ),
    )


def answer(torch, model, step):
    count = 1
    for line in sys.stdin:
        if not line.startswith("steps "):
            parameters = sum(p.numel() for p in model.parameters())
            print("memory", torch.cuda.max_memory_reserved(), parameters, flush=True)
            continue
        n = int(line.split()[1])
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
        torch.cuda.synchronize()
        marks[0].record()
        for i in range(n):
            step(count)
            count += 1
            marks[i + 1].record()
        torch.cuda.synchronize()
        times = (marks[i].elapsed_time(marks[i + 1]) for i in range(n))
        print("times", *("%.5f" % t for t in times), flush=True)


def main():
    since = float(os.environ.get("BENCH_SINCE", time.monotonic()))
    a = parse()
    try:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        torch.manual_seed(0)
        if a.half:
            torch.set_float32_matmul_precision("high")
        works = {"gpt2": gpt2, "resnet50": resnet50, "mlp": mlp, "cnn": cnn}
        model, step = works[a.work](a, torch)
        step(0)
        torch.cuda.synchronize()
        print("ready %.4f" % (time.monotonic() - since), flush=True)
        answer(torch, model, step)
    except Exception as e:  # whatever it is, the table says it
        print("failed", str(e).replace("\n", " ")[:200], flush=True)
        sys.exit(1)


main()

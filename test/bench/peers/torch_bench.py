"""PyTorch's side of the benchmarks: answers a row's name with one measurement, as serve.ts does."""
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

THREADS = 2
SAMPLE_NS = 100e6
WARM_UP_NS = 1000e6


def unary(function, *shape):
    x = torch.randn(*(shape or (10_000_000,)))
    return lambda: function(x)


def add(n, grad=False):
    a, b = torch.randn(n, requires_grad=grad), torch.randn(n)
    return lambda: a.add(b)


def mulsum_backward():
    a = torch.randn(4, requires_grad=True)

    def work():
        a.grad = None
        a.mul(a).sum().backward()

    return work


def matmul(n):
    a, b = torch.randn(n, n), torch.randn(n, n)
    return lambda: a.matmul(b)


def layer_norm():
    x, weight, bias = torch.randn(10_000, 1000), torch.ones(1000), torch.zeros(1000)
    return lambda: F.layer_norm(x, [1000], weight, bias)


def conv_forward():
    x, weight = torch.randn(16, 64, 56, 56), torch.randn(64, 64, 3, 3)
    return lambda: F.conv2d(x, weight, padding=1)


def conv_backward():
    x = torch.randn(16, 64, 56, 56, requires_grad=True)
    weight = torch.randn(64, 64, 3, 3, requires_grad=True)
    y = F.conv2d(x, weight, padding=1)
    cotangent = torch.randn(y.shape)
    return lambda: torch.autograd.grad([y], [x, weight], [cotangent], retain_graph=True)


def train_step(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    target = torch.randint(0, 10, (x.shape[0],))

    def work():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    return work


def mlp():
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    return train_step(model, torch.randn(64, 784))


def cnn():
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )
    return train_step(model, torch.randn(64, 1, 28, 28))


ROWS = {
    "add": lambda: add(4),
    "add.grad": lambda: add(4, grad=True),
    "mulsum.backward": mulsum_backward,
    "ops.add": lambda: add(10_000_000),
    "exp": lambda: unary(torch.exp),
    "tanh": lambda: unary(torch.tanh),
    "gelu": lambda: unary(F.gelu),
    "sum": lambda: unary(torch.sum),
    "softmax": lambda: unary(lambda x: F.softmax(x, 1), 10_000, 1000),
    "layerNorm": layer_norm,
    "matmul.256": lambda: matmul(256),
    "matmul.1024": lambda: matmul(1024),
    "conv2d.forward": conv_forward,
    "conv2d.backward": conv_backward,
    "mlp.sgd": mlp,
    "cnn.step": cnn,
}


def timed(work, calls, finish):
    begin = time.perf_counter_ns()
    for _ in range(calls):
        work()
    finish()
    return time.perf_counter_ns() - begin


def warm_up(work, finish):
    calls, total = 1, 0
    while True:
        ns = timed(work, calls, finish)
        total += ns
        if total >= WARM_UP_NS:
            return max(1, round(calls * SAMPLE_NS / ns))
        if ns < SAMPLE_NS:
            calls *= 2


def blas():
    """The BLAS library that is loaded; PyTorch's speed depends on it."""
    torch.randn(8, 8) @ torch.randn(8, 8)
    with open("/proc/self/maps") as maps:
        files = {line.split()[-1] for line in maps if "blas" in line}
    return "openblas-openmp" if any("openblas-openmp" in file for file in files) else "no OpenBLAS"


def say(message):
    print(json.dumps(message), flush=True)


def serve(note, rows, finish=lambda: None):
    """Greets, then answers each row's name on standard input; `finish` waits for work under way."""
    say({"version": f"PyTorch {torch.__version__}", "note": note, "rows": list(rows)})
    ready = {}
    for line in sys.stdin:
        name = line.strip()
        try:
            if name not in ready:
                ready = {}
                work = rows[name]()
                ready = {name: (work, warm_up(work, finish))}
            work, calls = ready[name]
            say({"ns": timed(work, calls, finish) / calls})
        except Exception as error:
            say({"error": str(error)})


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    serve(f"{THREADS} threads, {blas()}", ROWS)

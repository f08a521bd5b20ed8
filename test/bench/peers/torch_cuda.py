"""PyTorch's side of the GPU benchmarks: answers a row's name with one measurement."""
import torch
import torch.nn.functional as F
from torch import nn

from torch_bench import serve

DEVICE = "cuda"


def large():
    return torch.randn(2**18, 1024, device=DEVICE)


def unary(function):
    x = large()
    return lambda: function(x)


def add(*shape):
    a, b = torch.randn(*shape, device=DEVICE), torch.randn(*shape, device=DEVICE)
    return lambda: a.add(b)


def matmul(n, dtype):
    a, b = (torch.randn(n, n, device=DEVICE).to(dtype) for _ in range(2))
    return lambda: a.matmul(b)


def layer_norm():
    x = large()
    weight, bias = torch.ones(1024, device=DEVICE), torch.zeros(1024, device=DEVICE)
    return lambda: F.layer_norm(x, [1024], weight, bias)


def mlp_step(capturable):
    model = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    ).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), capturable=capturable)
    x = torch.randn(64, 784, device=DEVICE)
    target = torch.randint(0, 10, (64,), device=DEVICE)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), target).backward()
        optimizer.step()

    return step


def mlp_graph():
    step = mlp_step(True)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def cnn_epoch():
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10),
    ).to(DEVICE)
    count, batch = 60_000, 100
    optimizer = torch.optim.Adam(model.parameters())
    images = torch.randn(count, 1, 28, 28, device=DEVICE)
    labels = torch.randint(0, 10, (count,), device=DEVICE)

    def epoch():
        order = torch.randperm(count).to(DEVICE)
        for start in range(0, count, batch):
            picked = order[start : start + batch]
            optimizer.zero_grad()
            scores = model(images.index_select(0, picked))
            F.cross_entropy(scores, labels.index_select(0, picked)).backward()
            optimizer.step()

    return epoch


ROWS = {
    "add.enqueue": lambda: add(4),
    "matmul.64": lambda: matmul(64, torch.float32),
    "mlp.adam": lambda: mlp_step(False),
    "mlp.graph": mlp_graph,
    "add.1GiB": lambda: add(2**18, 1024),
    "exp.1GiB": lambda: unary(torch.exp),
    "gelu.1GiB": lambda: unary(F.gelu),
    "sum.1GiB": lambda: unary(torch.sum),
    "softmax.1GiB": lambda: unary(lambda x: F.softmax(x, 1)),
    "layerNorm.1GiB": layer_norm,
    "matmul.8192.bf16": lambda: matmul(8192, torch.bfloat16),
    "cnn.epoch": cnn_epoch,
}

if __name__ == "__main__":
    serve(torch.cuda.get_device_name(), ROWS, torch.cuda.synchronize)

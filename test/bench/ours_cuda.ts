// Cresset's side of the GPU benchmarks; every row has the same name and inputs in the peers' files.
import * as torch from "cresset";
import { nn, optim, type Tensor } from "cresset";
import { serve, type Rows } from "./serve.js";

const F = nn.functional;
const device = "cuda";
/** 2^28 floats: 1 GiB, as a matrix for the operators that work along rows. */
const large = () => torch.randn([2 ** 18, 1024], { device });

const unary = (f: (x: Tensor) => Tensor) => () => {
  const x = large();
  return () => f(x);
};

const matmul = (n: number, dtype: torch.DType) => () => {
  const [a, b] = [
    torch.randn([n, n], { device }).to(dtype),
    torch.randn([n, n], { device }).to(dtype),
  ];
  return () => a.matmul(b);
};

function mlpStep(capturable: boolean): () => void {
  torch.manualSeed(0);
  const model = new nn.Sequential(
    new nn.Linear(784, 256),
    new nn.ReLU(),
    new nn.Linear(256, 256),
    new nn.ReLU(),
    new nn.Linear(256, 10),
  ).to(device);
  const optimizer = new optim.Adam(model.parameters(), { capturable });
  const input = torch.randn([64, 784], { device });
  const target = torch.randint(0, 10, [64], { device });
  return () => {
    optimizer.zeroGrad();
    F.crossEntropy(model(input), target).backward();
    optimizer.step();
  };
}

/** The network of examples/03-mnist over one epoch of 60,000 images that lie on the GPU. */
function cnnEpoch(): () => void {
  const model = new nn.Sequential(
    new nn.Conv2d(1, 16, 5),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
    new nn.Conv2d(16, 32, 5),
    new nn.ReLU(),
    new nn.MaxPool2d(2),
    new nn.Flatten(),
    new nn.Linear(512, 128),
    new nn.ReLU(),
    new nn.Linear(128, 10),
  ).to(device);
  const [count, batch] = [60_000, 100];
  const optimizer = new optim.Adam(model.parameters());
  const images = torch.randn([count, 1, 28, 28], { device });
  const labels = torch.randint(0, 10, [count], { device });
  return () => {
    const order = torch.randperm(count).to(device);
    for (let start = 0; start < count; start += batch) {
      const picked = order.narrow(0, start, batch);
      optimizer.zeroGrad();
      const scores = model(images.indexSelect(0, picked));
      F.crossEntropy(scores, labels.indexSelect(0, picked)).backward();
      optimizer.step();
    }
  };
}

const rows: Rows = {
  "add.enqueue": () => {
    const [a, b] = [torch.randn([4], { device }), torch.randn([4], { device })];
    return () => a.add(b);
  },
  "matmul.64": matmul(64, torch.float32),
  "mlp.adam": () => mlpStep(false),
  "mlp.graph": () => {
    const step = mlpStep(true);
    for (let i = 0; i < 3; i++) step();
    const graph = new torch.cuda.CUDAGraph();
    torch.cuda.graph(graph, step);
    return () => graph.replay();
  },
  "add.1GiB": () => {
    const [a, b] = [large(), large()];
    return () => a.add(b);
  },
  "exp.1GiB": unary((x) => x.exp()),
  "gelu.1GiB": unary((x) => F.gelu(x)),
  "sum.1GiB": unary((x) => x.sum()),
  "softmax.1GiB": unary((x) => F.softmax(x, 1)),
  "layerNorm.1GiB": () => {
    const x = large();
    const [weight, bias] = [torch.ones([1024], { device }), torch.zeros([1024], { device })];
    return () => F.layerNorm(x, [1024], weight, bias);
  },
  "matmul.8192.bf16": matmul(8192, torch.bfloat16),
  "cnn.epoch": cnnEpoch,
};

await serve({ version: "this build", note: torch.cuda.getDeviceName() }, rows, () =>
  torch.cuda.synchronize(),
);

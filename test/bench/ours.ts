// Cresset's side of the benchmarks; every row has the same name and inputs in the peers' files.
import * as torch from "cresset";
import { serve, type Rows } from "./serve.js";

const million = 1_000_000;

await torch.init();

/** WebAssembly frees a step's tensors at its end only when it is told where the step is. */
const scoped: <R>(step: () => R) => R =
  process.env["CRESSET_HOST"] === "wasm" ? (step) => torch.tidy(step) : (step) => step();

/** 10M floats, as a square-ish matrix for the operators that work along rows. */
const large = () => torch.randn([10 * million]);
const rows1000 = () => torch.randn([10_000, 1000]);

const unary = (f: (x: torch.Tensor) => torch.Tensor) => () => {
  const x = large();
  return () => f(x);
};

const matmul = (n: number) => () => {
  const [a, b] = [torch.randn([n, n]), torch.randn([n, n])];
  return () => scoped(() => a.matmul(b).size(0));
};

const convInputs = () => ({
  x: torch.randn([16, 64, 56, 56]),
  weight: torch.randn([64, 64, 3, 3]),
});

/** The loop body of a training script: zero, forward, backward, step, read the loss. */
function trainStep(model: torch.nn.Module<[torch.Tensor], torch.Tensor>, input: torch.Tensor) {
  const optimizer = new torch.optim.SGD(model.parameters(), { lr: 0.01 });
  const target = torch.randint(0, 10, [input.shape[0]!]);
  const step = () => {
    optimizer.zeroGrad();
    const loss = torch.nn.functional.crossEntropy(model(input), target);
    loss.backward();
    optimizer.step();
    return loss.item();
  };
  return () => scoped(step);
}

const rows: Rows = {
  add: () => {
    const [a, b] = [torch.randn([4]), torch.randn([4])];
    return () => a.add(b);
  },
  "add.tidy": () => {
    const [a, b] = [torch.randn([4]), torch.randn([4])];
    return () =>
      torch.tidy(() => {
        for (let i = 0; i < 1000; i++) a.add(b);
      });
  },
  "add.grad": () => {
    const [a, b] = [torch.randn([4]).requiresGrad_(true), torch.randn([4])];
    return () => a.add(b);
  },
  "mulsum.backward": () => {
    const a = torch.randn([4]).requiresGrad_(true);
    return () => {
      a.grad = null;
      a.mul(a).sum().backward();
    };
  },

  "ops.add": () => {
    const [a, b] = [large(), large()];
    return () => a.add(b);
  },
  exp: unary((x) => x.exp()),
  tanh: unary((x) => x.tanh()),
  gelu: unary((x) => torch.nn.functional.gelu(x)),
  sum: unary((x) => x.sum()),
  softmax: () => {
    const x = rows1000();
    return () => torch.nn.functional.softmax(x, 1);
  },
  layerNorm: () => {
    const x = rows1000();
    const [weight, bias] = [torch.ones([1000]), torch.zeros([1000])];
    return () => torch.nn.functional.layerNorm(x, [1000], weight, bias);
  },
  "matmul.256": matmul(256),
  "matmul.512": matmul(512),
  "matmul.1024": matmul(1024),
  "conv2d.forward": () => {
    const { x, weight } = convInputs();
    return () => torch.nn.functional.conv2d(x, weight, { padding: 1 });
  },
  "conv2d.backward": () => {
    const { x, weight } = convInputs();
    const inputs = [x.requiresGrad_(true), weight.requiresGrad_(true)];
    const y = torch.nn.functional.conv2d(x, weight, { padding: 1 });
    const gradOutputs = [torch.randn(y.shape)];
    return () => torch.autograd.grad([y], inputs, { gradOutputs, retainGraph: true });
  },

  "mlp.sgd": () => {
    const model = new torch.nn.Sequential(
      new torch.nn.Linear(784, 128),
      new torch.nn.ReLU(),
      new torch.nn.Linear(128, 10),
    );
    return trainStep(model, torch.randn([64, 784]));
  },
  "cnn.step": () => {
    const model = new torch.nn.Sequential(
      new torch.nn.Conv2d(1, 16, 3, { padding: 1 }),
      new torch.nn.ReLU(),
      new torch.nn.MaxPool2d(2),
      new torch.nn.Conv2d(16, 32, 3, { padding: 1 }),
      new torch.nn.ReLU(),
      new torch.nn.MaxPool2d(2),
      new torch.nn.Flatten(),
      new torch.nn.Linear(32 * 7 * 7, 10),
    );
    return trainStep(model, torch.randn([64, 1, 28, 28]));
  },
};

await serve({ version: "this build" }, rows);

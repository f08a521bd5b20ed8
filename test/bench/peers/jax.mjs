// jax-js's side of the benchmarks, on its WebAssembly backend with jit where it helps.
import { readFileSync } from "node:fs";
import {
  defaultDevice,
  grad,
  init,
  jit,
  lax,
  nn,
  numpy as np,
  random,
  valueAndGrad,
} from "@jax-js/jax";
import { serve } from "../serve.ts";

await init("wasm");
const device = defaultDevice("wasm");
const manifest = new URL("../package.json", import.meta.resolve("@jax-js/jax"));
const { version } = JSON.parse(readFileSync(manifest, "utf8"));

let seed = 0;
const randn = (shape) => random.normal(random.key(seed++), shape);
/** Makes an array's pending work happen. */
const force = (array) => array.dataSync();

const labels = () => {
  const data = Float32Array.from({ length: 640 }, (_, i) =>
    i % 10 === ((i * 7) % 64) % 10 ? 1 : 0,
  );
  return np.array(data).reshape([64, 10]);
};

/** One SGD step in one compiled function; parameters and the loss come back. */
function trainStep(forward, initial, x) {
  const y = labels();
  const lossOf = (params, x, y) =>
    nn
      .logSoftmax(forward(params, x), 1)
      .mul(y)
      .sum()
      .mul(-1 / 64);
  const update = (param, gradient) => param.sub(gradient.mul(0.01));
  const step = jit((params, x, y) => {
    const kept = params.map((param) => param.ref);
    const [loss, gradients] = valueAndGrad(lossOf)(params, x, y);
    return [loss, kept.map((param, i) => update(param, gradients[i]))];
  });
  let params = initial;
  return () => {
    const [loss, updated] = step(params, x.ref, y.ref);
    params = updated;
    return loss.js();
  };
}

const pool = (x) => lax.reduceWindow(x, np.max, [2, 2], [2, 2]);

const matmul = (n) => () => {
  const [a, b] = [randn([n, n]), randn([n, n])];
  return () => force(np.matmul(a.ref, b.ref));
};

const rows = {
  "matmul.512": matmul(512),
  "matmul.1024": matmul(1024),
  add: () => {
    const [a, b] = [randn([4]), randn([4])];
    return () => force(a.ref.add(b.ref));
  },
  "mulsum.backward": () => {
    const a = randn([4]);
    const gradient = grad((x) => x.ref.mul(x).sum());
    return () => force(gradient(a.ref));
  },
  "mlp.sgd": () => {
    const params = [randn([784, 128]), randn([128]), randn([128, 10]), randn([10])];
    const forward = ([w1, b1, w2, b2], x) =>
      np.matmul(nn.relu(np.matmul(x, w1).add(b1)), w2).add(b2);
    return trainStep(
      forward,
      params.map((p) => p.mul(0.05)),
      randn([64, 784]),
    );
  },
  "cnn.step": () => {
    const conv = (x, w, b) =>
      nn.relu(lax.conv(x, w, [1, 1], "SAME").add(b.reshape([1, b.shape[0], 1, 1])));
    const forward = ([w1, b1, w2, b2, w3, b3], x) => {
      const y = pool(conv(pool(conv(x, w1, b1)), w2, b2));
      return np.matmul(y.reshape([64, 32 * 7 * 7]), w3).add(b3);
    };
    const shapes = [[16, 1, 3, 3], [16], [32, 16, 3, 3], [32], [1568, 10], [10]];
    return trainStep(
      forward,
      shapes.map((shape) => randn(shape).mul(0.05)),
      randn([64, 1, 28, 28]),
    );
  },
};

await serve({ version: `jax-js ${version} ${device}` }, rows);

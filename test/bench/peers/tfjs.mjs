// TensorFlow.js's side of the benchmarks, on its WebAssembly backend or that of TFJS_BACKEND.
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { serve } from "../serve.ts";

const require = createRequire(import.meta.url);
const tf = require("@tensorflow/tfjs");
const wasm = require("@tensorflow/tfjs-backend-wasm");
wasm.setWasmPaths(dirname(require.resolve("@tensorflow/tfjs-backend-wasm")) + "/");
await tf.setBackend(process.env["TFJS_BACKEND"] ?? "wasm");
await tf.ready();

/** One step of SGD on the model's variables, in a scope that frees what it made. */
function trainStep(forward, variables, x) {
  const optimizer = tf.train.sgd(0.01);
  const y = tf.oneHot(tf.randomUniform([64], 0, 10, "int32"), 10);
  const loss = () => tf.losses.softmaxCrossEntropy(y, forward(x));
  return () => tf.tidy(() => optimizer.minimize(loss, true, variables).dataSync()[0]);
}

const variable = (shape) => tf.variable(tf.randomNormal(shape, 0, 0.05));

const matmul = (n) => () => {
  const [a, b] = [tf.randomNormal([n, n]), tf.randomNormal([n, n])];
  return () => tf.matMul(a, b).dispose();
};

const rows = {
  ...(tf.getBackend() === "wasm" && { "matmul.512": matmul(512), "matmul.1024": matmul(1024) }),
  add: () => {
    const [a, b] = [tf.randomNormal([4]), tf.randomNormal([4])];
    return () => tf.add(a, b).dispose();
  },
  "mulsum.backward": () => {
    const a = tf.randomNormal([4]);
    const gradient = tf.grad((x) => x.mul(x).sum());
    return () => gradient(a).dispose();
  },
  "mlp.sgd": () => {
    const [w1, b1, w2, b2] = [[784, 128], [128], [128, 10], [10]].map(variable);
    const forward = (x) => x.matMul(w1).add(b1).relu().matMul(w2).add(b2);
    return trainStep(forward, [w1, b1, w2, b2], tf.randomNormal([64, 784]));
  },
  "cnn.step": () => {
    const shapes = [[3, 3, 1, 16], [16], [3, 3, 16, 32], [32], [1568, 10], [10]];
    const variables = shapes.map(variable);
    const [w1, b1, w2, b2, w3, b3] = variables;
    const block = (x, w, b) => x.conv2d(w, 1, "same").add(b).relu().maxPool(2, 2, "valid");
    const forward = (x) =>
      block(block(x, w1, b1), w2, b2)
        .reshape([64, 1568])
        .matMul(w3)
        .add(b3);
    return trainStep(forward, variables, tf.randomNormal([64, 28, 28, 1]));
  },
};

await serve({ version: `tfjs ${tf.version.tfjs} ${tf.getBackend()}` }, rows);

// `npm start`: sets up what is missing, then trains the MNIST example.
import { setup } from "./setup.mjs";
import { main, run, StepFailed } from "./steps.mjs";

main(() => {
  setup({ host: "native" });
  const args = ["--import", "tsx", "examples/03-mnist.ts", ...process.argv.slice(2)];
  if (!run(process.execPath, args).ok) throw new StepFailed("examples/03-mnist.ts failed");
});

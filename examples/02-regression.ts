// Regression: a small network learns a noisy sine, with a schedule for the learning rate.
import * as torch from "cresset";
import { DataLoader, nn, optim, TensorDataset } from "cresset";

const quick = process.argv.includes("--quick");
const epochs = quick ? 20 : 200;

torch.manualSeed(0);
const x = torch.linspace(-3, 3, 400).unsqueeze(1);
const y = x.sin().add(torch.randn([400, 1]).mul(0.1));
const batches = new DataLoader(new TensorDataset(x, y), { batchSize: 50, shuffle: true });

const model = new nn.Sequential(
  new nn.Linear(1, 32),
  new nn.Tanh(),
  new nn.Linear(32, 32),
  new nn.Tanh(),
  new nn.Linear(32, 1),
);
console.log(model);

const lossOf = new nn.MSELoss();
const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01 });
const schedule = new optim.lrScheduler.CosineAnnealingLR(optimizer, epochs);

for (let epoch = 1; epoch <= epochs; epoch++) {
  let total = 0;
  for (const [inputs, targets] of batches) {
    optimizer.zeroGrad();
    const loss = lossOf(model(inputs!), targets!);
    loss.backward();
    optimizer.step();
    total += Number(loss.item());
  }
  schedule.step();
  if (epoch % (epochs / 10) === 0) {
    console.log(`epoch ${epoch}: mean loss ${(total / batches.length).toFixed(4)}`);
  }
}

// The noise has variance 0.01, which is the best that the loss can become.
torch.noGrad(() => {
  for (const at of [-2, -1, 0, 1, 2]) {
    const found = Number(model(torch.tensor([[at]])).item());
    console.log(`sin(${at}) = ${Math.sin(at).toFixed(3)}, the model says ${found.toFixed(3)}`);
  }
});

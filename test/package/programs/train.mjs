// What every host runs: an addition, a product of matrices, a gradient and a tiny regression.
export function train(torch) {
  torch.manualSeed(0);
  const a = torch.tensor([1, 2], { requiresGrad: true });
  a.mul(a).sum().backward();

  const points = torch.randn([64, 2]);
  const targets = points.matmul(torch.tensor([[2], [-3]])).add(0.5);
  const model = new torch.nn.Linear(2, 1);
  const optimizer = new torch.optim.SGD(model.parameters(), { lr: 0.2 });
  let loss;
  for (let step = 0; step < 60; step++) {
    optimizer.zeroGrad();
    loss = torch.nn.functional.mseLoss(model(points), targets);
    loss.backward();
    optimizer.step();
  }
  return {
    shown: String(model),
    sum: a.add(torch.tensor([3, 4])).tolist(),
    product: torch
      .ones([2, 3])
      .matmul(torch.ones([3, 2]))
      .tolist(),
    gradient: a.grad.tolist(),
    random: torch.randn([2]).tolist(),
    weight: model.weight.tolist()[0],
    loss: loss.item(),
  };
}

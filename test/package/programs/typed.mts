// A user's typed ES module.
import * as torch from "cresset";
import { nn, optim, type Tensor } from "cresset";

class Net extends nn.Module<[Tensor], Tensor> {
  readonly inner = new nn.Linear(2, 1);

  override forward(x: Tensor): Tensor {
    return this.inner(x).relu();
  }
}

const net = new Net();
const optimizer = new optim.SGD(net.parameters(), { lr: 0.1 });
const loss: Tensor = nn.functional.mseLoss(net(torch.ones([4, 2])), torch.zeros([4, 1]));
loss.backward();
optimizer.step();
export const shape: number[] = [...net.inner.weight.shape];
// @ts-expect-error an unknown argument must be refused, or the types were not found
torch.ones("no shape");

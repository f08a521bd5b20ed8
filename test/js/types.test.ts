// The types that users write: modules with typed calls, layers, optimizers.
import { expectTypeOf, test } from "vitest";
import * as torch from "../../js/src/index.js";
import { nn, optim, Tensor } from "../../js/src/index.js";

class Pair extends nn.Module<[Tensor, number], { sum: Tensor }> {
  forward(x: Tensor, n: number): { sum: Tensor } {
    return { sum: x.add(n) };
  }
}
class Net extends nn.Module<[Tensor], Tensor> {
  act = new nn.ReLU();
  forward(x: Tensor): Tensor {
    return this.act(x);
  }
}

test("a module's call has the types of forward", () => {
  expectTypeOf<Pair>().toBeCallableWith(torch.ones([1]), 2);
  expectTypeOf<Pair>().returns.toEqualTypeOf<{ sum: Tensor }>();
  expectTypeOf<Net>().parameters.toEqualTypeOf<[Tensor]>();
  // @ts-expect-error one argument is missing
  expectTypeOf<ReturnType<Pair>>(() => new Pair()(torch.ones([1])));
});

test("modules of any kind fit containers and optimizers", () => {
  expectTypeOf(new nn.Sequential(new nn.ReLU(), new Net())).returns.toEqualTypeOf<Tensor>();
  expectTypeOf(new nn.Sequential<[Tensor], number>(new Pair())).returns.toEqualTypeOf<number>();
  expectTypeOf(new Net().parameters()).toEqualTypeOf<nn.Parameter[]>();
  expectTypeOf(optim.SGD).toBeConstructibleWith([torch.ones([1])], { lr: 0.1, momentum: 0.9 });
  expectTypeOf(nn.Conv2d).toBeConstructibleWith(3, 8, 3, { padding: "same" });
  expectTypeOf(nn.Conv2d).toBeConstructibleWith(3, 8, [3, 5], 1, 2, { bias: false });
  expectTypeOf(nn.Linear).toBeConstructibleWith(3, 8, false);
  // @ts-expect-error no such option
  expectTypeOf(nn.Linear).toBeConstructibleWith(3, 8, { biass: false });
  expectTypeOf(new nn.ModuleList([new Net()]).get(0)).toEqualTypeOf<Net>();
});

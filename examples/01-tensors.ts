// Tensors: making, indexing, broadcasting, dtypes, gradients, and how they print.
import * as torch from "cresset";

function show(title: string, value: unknown): void {
  console.log(`${title}\n`, value, "\n");
}

// Making tensors.
const a = torch.tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
show("a list of lists:", a);
show("its shape and dtype:", `[${a.shape}] ${a.dtype}`);
show("whole numbers stay whole when asked:", torch.tensor([1, 2], { dtype: torch.int64 }));
show("a range:", torch.arange(0, 1, 0.25));

// Arithmetic broadcasts as in PyTorch; optional arguments go by position or by name.
show(
  "a column plus a row:",
  a
    .select(1, 0)
    .unsqueeze(1)
    .add(torch.tensor([10, 20, 30])),
);
show("sums over dim 1:", a.sum(1, { keepdim: true }));
show("integers divide to floats:", torch.tensor([3, 4], { dtype: torch.int64 }).div(2));

// Indexing: integers, slices as text, null for a new dim, lists, masks.
show("a[0]:", a.index(0));
show("a[:, 1:3]:", a.index(":", "1:3"));
show("the large ones:", a.index(a.gt(3)));
const b = a.clone();
b.indexPut_([":", 0], -1);
show("first column overwritten:", b);

// Views share memory with their base.
const column = b.select(1, 1);
column.mul_(100);
show("b, changed through a view of its second column:", b);

// Gradients: every operator records how it is differentiated.
const x = torch.tensor([1, 2, 3], { dtype: torch.float64, requiresGrad: true });
const y = x.pow(3).sum();
y.backward();
show("x³ summed:", y);
show("its gradient, 3x²:", x.grad);

// Errors say what was expected and what came.
try {
  a.add(torch.ones([4]));
} catch (error) {
  show("an error:", `${(error as Error).name}: ${(error as Error).message}`);
}

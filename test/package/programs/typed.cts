// A user's typed CommonJS program.
import torch = require("cresset");

const x: torch.Tensor = torch.ones([2, 2], { dtype: torch.float64 });
const y: number = x.matmul(x).sum().item() as number;
export = { y };
// @ts-expect-error an unknown argument must be refused, or the types were not found
torch.ones("no shape");

// torch.backends: one object of switches per library.
export { cuda, cudnn } from "./backends.js";

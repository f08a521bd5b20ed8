// torch.fft.
export * from "./fft.gen.js";

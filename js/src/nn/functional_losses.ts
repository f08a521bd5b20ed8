// Losses of torch.nn.functional that take a JavaScript function.
export {};

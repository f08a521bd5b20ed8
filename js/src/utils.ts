// torch.utils: data loading.
export * as data from "./utils_data.js";

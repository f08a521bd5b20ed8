// torch.utils.data: datasets, samplers and the loader.
export {
  BatchSampler,
  DataLoader,
  Dataset,
  defaultCollate,
  randomSplit,
  RandomSampler,
  SequentialSampler,
  Subset,
  TensorDataset,
} from "./data.js";
export type { Collated, DataLoaderOptions, GeneratorLike, Sampler } from "./data.js";

// The messages between the page and the worker that trains.

/** What the page may change while the network learns. */
export interface Settings {
  learningRate: number;
  /** Images per training step. */
  batchSize: number;
}

export type ToWorker =
  /** The first message: where the digits are, and how to run. `threads` 0 means as many as fit. */
  | { type: "load"; dataUrl: string; seed: number; threads: number; settings: Settings }
  | { type: "train" }
  | { type: "pause" }
  /** Back to untrained weights, drawn from the same seed. */
  | { type: "reset" }
  | { type: "change"; settings: Settings }
  /** Asks what an image of 28 × 28 bytes shows; answered between two training steps. */
  | { type: "predict"; id: number; pixels: Uint8Array };

/** How the training goes; measured since the last report. */
export interface Pace {
  /** While training: the time for tests and for reading drawings is not counted. */
  imagesPerSecond: number;
  stepMilliseconds: number;
  heapBytes: number;
}

export type FromWorker =
  /** `share` of the digits that has arrived, from 0 to 1. */
  | { type: "loading"; share: number }
  | {
      type: "ready";
      threads: number;
      heapBytes: number;
      trainCount: number;
      testCount: number;
      samples: Sample[];
    }
  /** Sent several times a second while it trains: the losses since the last report. */
  | { type: "steps"; firstStep: number; losses: Float32Array; epoch: number; pace: Pace }
  /** The share of the test images that the network read rightly after `step` steps. */
  | { type: "accuracy"; step: number; share: number }
  | { type: "prediction"; id: number; probabilities: Float32Array }
  | { type: "paused"; step: number; finished: boolean }
  | { type: "untrained" }
  | { type: "failed"; message: string };

/** A test image to try without drawing. */
export interface Sample {
  digit: number;
  /** 28 × 28 bytes, 0 is paper and 255 is ink. */
  pixels: Uint8Array;
}

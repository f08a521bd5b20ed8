// The layout of the file of digits that the page loads.

/** Grey images of 28 × 28 bytes (0 is paper, 255 is ink), and the digit that each shows. */
export interface Digits {
  images: Uint8Array;
  labels: Uint8Array;
  count: number;
}

export interface DigitFile {
  train: Digits;
  test: Digits;
}

export const imageBytes = 28 * 28;
const headerBytes = 8;

/** Two 32-bit counts in little-endian order, then images and labels to train on and to test on. */
export function packDigits({ train, test }: DigitFile): Uint8Array<ArrayBuffer> {
  const length = headerBytes + (train.count + test.count) * (imageBytes + 1);
  const file = new Uint8Array(length);
  const header = new DataView(file.buffer);
  header.setUint32(0, train.count, true);
  header.setUint32(4, test.count, true);
  let at = headerBytes;
  for (const bytes of [train.images, train.labels, test.images, test.labels]) {
    file.set(bytes, at);
    at += bytes.length;
  }
  return file;
}

/** The inverse of `packDigits`; the parts share the file's memory. */
export function unpackDigits(file: Uint8Array): DigitFile {
  const header = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const damaged = (found: string) => new Error(`the file of digits is damaged: ${found}`);
  if (file.length < headerBytes) throw damaged(`it has only ${file.length} bytes`);
  const [trainCount, testCount] = [header.getUint32(0, true), header.getUint32(4, true)];
  const expected = headerBytes + (trainCount + testCount) * (imageBytes + 1);
  if (file.length !== expected) {
    throw damaged(`it has ${file.length} bytes instead of ${expected}`);
  }
  let at = headerBytes;
  const take = (length: number) => file.subarray(at, (at += length));
  const part = (count: number): Digits => ({
    images: take(count * imageBytes),
    labels: take(count),
    count,
  });
  return { train: part(trainCount), test: part(testCount) };
}

// Fetches the file of digits; every way in which that can fail is told in words.
import { unpackDigits, type DigitFile } from "./digits.js";

/** Fetches the digits and reports the share that has arrived; errors say what went wrong. */
export async function fetchDigits(
  url: string,
  onProgress: (share: number) => void,
): Promise<DigitFile> {
  const response = await fetch(url).catch((error: unknown) => {
    const reason = navigator.onLine ? String(error) : "this device is offline";
    throw new Error(`the digits could not be loaded: ${reason}`);
  });
  if (!response.ok || response.body === null) {
    throw new Error(`the digits could not be loaded: the server answered ${response.status}`);
  }
  const total = Number(response.headers.get("content-length") ?? 0);
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let received = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw new Error(`the digits broke off while loading: ${String(error)}`);
    });
    if (done) break;
    chunks.push(value);
    received += value.length;
    if (total > 0) onProgress(Math.min(1, received / total));
  }
  return unpackDigits(await inflate(new Blob(chunks)));
}

/** Unpacks gzip, unless the server or the browser has done so already. */
async function inflate(blob: Blob): Promise<Uint8Array> {
  const start = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const packed = start[0] === 0x1f && start[1] === 0x8b;
  const stream = packed
    ? blob.stream().pipeThrough(new DecompressionStream("gzip"))
    : blob.stream();
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

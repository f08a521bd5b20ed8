// What the page needs of the browser, checked before anything is loaded.

/** A module with one function that uses a SIMD instruction; engines without SIMD refuse it. */
const simdModule = Uint8Array.of(
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // magic, version
  ...[1, 5, 1, 0x60, 0, 1, 0x7b], // type: () → v128
  ...[3, 2, 1, 0], // one function of that type
  ...[10, 8, 1, 6, 0, 0x41, 0, 0xfd, 0x0f, 0x0b], // i8x16.splat(0)
);

/** Says what this browser lacks, or null when it can run the page. */
export function missingFeature(): string | null {
  if (typeof WebAssembly !== "object") {
    return "This browser has no WebAssembly, which the network is computed with.";
  }
  if (!WebAssembly.validate(simdModule)) {
    return (
      "This browser's WebAssembly has no SIMD instructions, which the network is computed with. " +
      "Every major browser has had them since 2023."
    );
  }
  if (typeof Worker !== "function" || typeof DecompressionStream !== "function") {
    return "This browser is too old for this page: it lacks workers or decompression streams.";
  }
  return null;
}

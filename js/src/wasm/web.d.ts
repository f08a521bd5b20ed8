// The parts of the web platform that Node's types leave out and the WebAssembly host uses.

declare namespace WebAssembly {
  type Imports = Record<string, Record<string, unknown>>;
  interface ImportDescriptor {
    module: string;
    name: string;
    kind: "function" | "global" | "memory" | "table" | "tag";
  }
  class Module {
    constructor(bytes: ArrayBufferView | ArrayBuffer);
    static imports(module: Module): ImportDescriptor[];
  }
  class Instance {
    constructor(module: Module, imports: Imports);
    readonly exports: object;
  }
  class Memory {
    constructor(limits: { initial: number; maximum: number; shared: boolean });
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  class RuntimeError extends Error {}
  function validate(bytes: Uint8Array): boolean;
  function compile(bytes: ArrayBufferView | ArrayBuffer): Promise<Module>;
  function compileStreaming(response: Response): Promise<Module>;
  function instantiate(module: Module, imports: Imports): Promise<Instance>;
}

declare class Worker {
  constructor(url: string | URL, options: { type: "module"; name?: string });
  onmessage: ((event: { data: unknown }) => void) | null;
  onerror: ((event: { message?: string }) => void) | null;
  postMessage(message: unknown): void;
  terminate(): void;
}

declare const crossOriginIsolated: boolean | undefined;
declare const location: { readonly origin: string; readonly href: string } | undefined;
declare const navigator: { readonly hardwareConcurrency?: number } | undefined;

// The page's end of the worker: starts it, passes messages on, and notices when it is gone.
import type { FromWorker, ToWorker } from "./protocol.js";

/** Silence after which a worker that trains or was asked is taken for dead, in milliseconds. */
const patience = 15_000;

export interface SessionEvents {
  onMessage(message: FromWorker): void;
  /** The worker failed to start, died, or has been silent for too long. */
  onDeath(reason: string): void;
}

export class Session {
  private readonly worker: Worker;
  private watch: ReturnType<typeof setTimeout> | undefined;
  private training = false;
  private asked = false;
  private ended = false;

  constructor(private readonly events: SessionEvents) {
    this.worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.receive(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      const offline = navigator.onLine ? "" : " This device is offline.";
      const reason = event.message || "its script could not be loaded";
      this.die(`The training worker stopped: ${reason}.${offline}`);
    };
    this.worker.onmessageerror = () => this.die("A message of the training worker was unreadable.");
  }

  send(message: ToWorker): void {
    if (message.type === "train") this.training = true;
    if (["pause", "predict", "reset"].includes(message.type)) this.asked = true;
    this.worker.postMessage(message);
    this.rewatch();
  }

  end(): void {
    this.ended = true;
    clearTimeout(this.watch);
    this.worker.terminate();
  }

  private receive(message: FromWorker): void {
    if (this.ended) return;
    this.asked = false;
    if (["paused", "untrained", "failed"].includes(message.type)) this.training = false;
    this.rewatch();
    this.events.onMessage(message);
  }

  private rewatch(): void {
    clearTimeout(this.watch);
    if (!this.training && !this.asked) return;
    const seconds = patience / 1000;
    this.watch = setTimeout(() => {
      this.die(`The training worker has not answered for ${seconds} seconds.`);
    }, patience);
  }

  private die(reason: string): void {
    if (this.ended) return;
    this.end();
    this.events.onDeath(reason);
  }
}

// Waiting between two attempts.

const SHORTEST_MS = 200;
const LONGEST_MS = 15_000;

/** How long to wait before each further attempt: longer each time, and never the same for everybody. */
export class Backoff {
  #attempts = 0;

  /** The next pause, in milliseconds; not shorter than the server asked for. */
  next(atLeast = 0): number {
    const longest = Math.min(LONGEST_MS, SHORTEST_MS * 2 ** this.#attempts);
    this.#attempts += 1;
    return Math.max(atLeast, longest * (0.5 + Math.random() / 2));
  }

  reset(): void {
    this.#attempts = 0;
  }
}

/** Waits; rejects with the signal's reason as soon as it aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) {
      stop();
    } else {
      signal?.addEventListener("abort", stop, { once: true });
    }
  });
}

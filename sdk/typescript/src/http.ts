// Requests to the server: one attempt, or several where that does nothing twice.
import { HaftError, refusal, unreachable } from "./error.js";
import { Backoff, pause } from "./pause.js";

/** Where the server is, and who asks. */
export interface HaftOptions {
  /** The address of the server, such as `http://127.0.0.1:7373`. */
  url: string;
  /** The key: `haft_…`. */
  key: string;
  /** What is used in the place of the global `fetch`. */
  fetch?: typeof fetch;
  /** How long a request that failed in passing is repeated, in milliseconds; 30,000 by default. */
  retryForMs?: number;
}

/** A request as it is sent. */
export interface Sending {
  method: string;
  path: string;
  query?: Readonly<Record<string, unknown>> | undefined;
  headers?: Record<string, string>;
  /** The body as JSON. */
  json?: string | undefined;
  /** What is sent in the place of the key. */
  bearer?: string | undefined;
  signal?: AbortSignal | undefined;
}

export class HttpClient {
  readonly #url: string;
  readonly #key: string;
  readonly #fetch: typeof fetch;
  readonly #retryForMs: number;

  constructor({ url, key, fetch, retryForMs = 30_000 }: HaftOptions) {
    this.#url = url.replace(/\/+$/, "");
    this.#key = key;
    // A browser's fetch wants to be called on its window.
    this.#fetch = fetch ?? ((...request) => globalThis.fetch(...request));
    this.#retryForMs = retryForMs;
  }

  /** One attempt. Resolves only with an answer that is no error. */
  async send(sending: Sending): Promise<Response> {
    const { method, path, query, headers, json, bearer, signal } = sending;
    const sent: Record<string, string> = { ...headers, authorization: `Bearer ${bearer ?? this.#key}` };
    const init: RequestInit = { method, headers: sent, cache: "no-store" };
    if (json !== undefined) {
      sent["content-type"] = "application/json";
      init.body = json;
    }
    if (signal !== undefined) {
      init.signal = signal;
    }
    const response = await this.#fetch(`${this.#url}${path}${search(query)}`, init).catch((cause) => {
      throw this.broken(cause, signal);
    });
    if (!response.ok) {
      throw await refusal(response);
    }
    return response;
  }

  /** The answer: a value where it is JSON, else the response itself. */
  async reply(sending: Sending, attempts: "once" | "repeat"): Promise<unknown> {
    const backoff = new Backoff();
    const giveUpAt = Date.now() + this.#retryForMs;
    for (;;) {
      try {
        return await this.#read(await this.send(sending), sending.signal);
      } catch (error) {
        if (!(error instanceof HaftError) || !isWorthRepeating(error, attempts)) {
          throw error;
        }
        const wait = backoff.next(error.retryAfterMs);
        if (Date.now() + wait > giveUpAt) {
          throw error;
        }
        await pause(wait, sending.signal);
      }
    }
  }

  async #read(response: Response, signal: AbortSignal | undefined): Promise<unknown> {
    if (!response.headers.get("content-type")?.startsWith("application/json")) {
      return response;
    }
    const text = await response.text().catch((cause) => {
      throw this.broken(cause, signal);
    });
    return JSON.parse(text);
  }

  /** Why there is no answer: somebody stopped asking, or the connection broke. */
  broken(cause: unknown, signal: AbortSignal | undefined): unknown {
    return signal?.aborted ? signal.reason : unreachable(this.#url, cause);
  }
}

// Who is sent away for asking too often has done nothing; after other failures that is not known. A fault of the server (500)
// is most likely still there a moment later.
function isWorthRepeating(error: HaftError, attempts: "once" | "repeat"): boolean {
  return error.status === 429 || (attempts === "repeat" && error.mayPass && error.status !== 500);
}

/** A path with its parts filled in. A part stays one: no text leads to another route. */
export function filled(path: string, parts: Readonly<Record<string, string>> = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const part = parts[name];
    if (part === undefined || part === "" || part === "." || part === "..") {
      const message = `\`${part ?? ""}\` cannot stand for {${name}} in ${path}`;
      throw new HaftError({ code: "INVALID_ARGS", status: 400, message, recoverable: false });
    }
    return encodeURIComponent(part);
  });
}

function search(query: Readonly<Record<string, unknown>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
}

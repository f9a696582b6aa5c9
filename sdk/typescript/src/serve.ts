// Serving external tools: calls that wait for a result are done here, and the results are sent back.
import { HaftError } from "./error.js";
import { type EventContext, type HaftEvent, type OutsideWork, follow } from "./events.js";
import type { Haft } from "./haft.js";
import type { HttpClient } from "./http.js";
import { Backoff, pause } from "./pause.js";

/** Does the work of a tool. What it returns is the result; what it throws is sent as the call's error. */
export type Handler = (args: Record<string, unknown>, ctx: CallContext) => unknown;

/** The call that a handler works for. */
export interface CallContext {
  callId: string;
  tool: string;
  runId: string;
  /** When a result comes too late. */
  expiresAt: string;
  /** Aborts when nobody wants the result any more: the call was cancelled, or somebody else gave a result. */
  signal: AbortSignal;
}

export interface ServeOptions {
  /** How many handlers run at once; 8 by default. */
  concurrency?: number | undefined;
  /** Ends serving: no further call is begun, and handlers that run are waited for. */
  signal?: AbortSignal | undefined;
  /** Told of handlers that throw, results that were refused, and lost connections; `console.error` by default. */
  onError?: ((error: unknown, ctx?: CallContext) => void) | undefined;
}

/** How many calls wait here for a free handler before reading of the stream is put off. */
const LONGEST_QUEUE = 1000;
/** Of how many calls it is remembered that they were done here. */
const MOST_REMEMBERED = 100_000;
/** How long a result is still sent after serving was ended. */
const LAST_ATTEMPTS_MS = 10_000;

/** A call that waits for its result. */
type WaitingCall = EventContext & OutsideWork;

/** A call whose handler runs, or whose result is being sent. */
interface RunningCall {
  /** Tells the handler that nobody wants the result any more. */
  unwanted: AbortController;
  /** Ends the sending of the result. */
  gaveUp: AbortController;
  /** When the handler has ended. */
  performed: Promise<string>;
  /** When the server has the result, too. */
  done: Promise<void>;
}

export class ToolServer {
  readonly #haft: Haft;
  readonly #http: HttpClient;
  readonly #handlers: Readonly<Record<string, Handler>>;
  readonly #concurrency: number;
  readonly #onError: (error: unknown, ctx?: CallContext) => void;
  readonly #stop = new AbortController();
  /** Calls that were taken here, the oldest first. */
  readonly #taken = new Set<string>();
  readonly #running = new Map<string, RunningCall>();
  #queue: WaitingCall[] = [];
  #search: Promise<void> | undefined;
  #searchAgain = false;

  constructor(haft: Haft, http: HttpClient, handlers: Readonly<Record<string, Handler>>, options: ServeOptions) {
    this.#haft = haft;
    this.#http = http;
    this.#handlers = handlers;
    this.#concurrency = Math.max(1, options.concurrency ?? 8);
    this.#onError = options.onError ?? ((error) => console.error("haft:", error));
  }

  /** Serves until the signal aborts. Rejects when the server refuses to be listened to. */
  async run(signal: AbortSignal | undefined): Promise<void> {
    const stop = () => this.#stop.abort();
    if (signal?.aborted) {
      return;
    }
    signal?.addEventListener("abort", stop, { once: true });
    try {
      await this.#listen();
    } finally {
      signal?.removeEventListener("abort", stop);
      this.#stop.abort();
      this.#queue = [];
      await this.#search?.catch(() => undefined);
      await this.#finish();
    }
    // Why the search has ended serving, where it did.
    await this.#search;
  }

  /** Waits for handlers as long as they take, and for their results a little longer. */
  async #finish(): Promise<void> {
    const running = [...this.#running.values()];
    await Promise.all(running.map(({ performed }) => performed));
    const late = new Error("serving ended before the server had the result; whoever serves the tool next does the call again");
    const timer = setTimeout(() => running.forEach(({ gaveUp }) => gaveUp.abort(late)), LAST_ATTEMPTS_MS);
    await Promise.all(running.map(({ done }) => done));
    clearTimeout(timer);
  }

  async #listen(): Promise<void> {
    const types = "tool.pending,tool.completed,tool.failed,tool.cancelled";
    const signal = this.#stop.signal;
    for await (const event of follow(this.#http, { path: "/api/events", query: { types }, signal, onError: this.#onError })) {
      this.#hear(event);
      await this.#room();
    }
  }

  #hear(event: HaftEvent): void {
    switch (event.type) {
      case "resync":
        this.#searchWaiting();
        break;
      case "tool.pending":
        // Without a tool, its caller only stopped waiting for a person's answer.
        if (event.data.tool !== undefined) {
          this.#take(event.data as WaitingCall);
        }
        break;
      case "tool.failed":
        // The result of a call that timed out is taken late.
        if (event.data.error.code === "TIMEOUT") {
          break;
        }
        this.#forget(event.data.toolCallId);
        break;
      case "tool.completed":
      case "tool.cancelled":
        this.#forget(event.data.toolCallId);
        break;
    }
  }

  #take(call: WaitingCall): void {
    if (!Object.hasOwn(this.#handlers, call.tool) || this.#taken.has(call.toolCallId)) {
      return;
    }
    this.#taken.add(call.toolCallId);
    if (this.#taken.size > MOST_REMEMBERED) {
      const [oldest] = this.#taken;
      this.#taken.delete(oldest as string);
    }
    this.#queue.push(call);
    this.#begin();
  }

  /** Nobody wants its result any more. */
  #forget(callId: string): void {
    this.#queue = this.#queue.filter((call) => call.toolCallId !== callId);
    this.#running.get(callId)?.unwanted.abort();
  }

  #begin(): void {
    while (this.#running.size < this.#concurrency && !this.#stop.signal.aborted) {
      const call = this.#queue.shift();
      if (call === undefined) {
        return;
      }
      this.#running.set(call.toolCallId, this.#run(call));
    }
  }

  /** Waits until there is room in the queue. */
  async #room(): Promise<void> {
    while (this.#queue.length >= LONGEST_QUEUE && !this.#stop.signal.aborted) {
      await Promise.race([...this.#running.values()].map(({ done }) => done));
    }
  }

  #run({ toolCallId: callId, tool, runId, expiresAt, args, submitToken }: WaitingCall): RunningCall {
    const [unwanted, gaveUp] = [new AbortController(), new AbortController()];
    const ctx: CallContext = { callId, tool, runId, expiresAt, signal: unwanted.signal };
    const performed = this.#perform(args, ctx);
    const sent = performed.then(async (body) => {
      if (!unwanted.signal.aborted) {
        await this.#submit(body, submitToken, { ctx, signal: gaveUp.signal });
      }
    });
    const done = sent.finally(() => {
      this.#running.delete(callId);
      this.#begin();
    });
    return { unwanted, gaveUp, performed, done };
  }

  /** Runs the handler; what it made of the call, as it is sent. */
  async #perform(args: Record<string, unknown>, ctx: CallContext): Promise<string> {
    const { callId, tool } = ctx;
    try {
      const result = JSON.stringify((await this.#handlers[tool]?.(args, ctx)) ?? null);
      if (result === undefined) {
        throw new TypeError(`the handler of ${tool} returned something that is no JSON`);
      }
      return `{"callId":${JSON.stringify(callId)},"result":${result}}`;
    } catch (error) {
      if (!ctx.signal.aborted) {
        this.#onError(error, ctx);
      }
      return failed(callId, error);
    }
  }

  /** Sends it until the server has it, or wants it no longer. */
  async #submit(
    given: string,
    token: string | undefined,
    { ctx, signal }: { ctx: CallContext; signal: AbortSignal },
  ): Promise<void> {
    const backoff = new Backoff();
    let [json, bearer] = [given, token];
    try {
      for (;;) {
        const refused = await this.#submitOnce(json, bearer, signal);
        if (refused === undefined || refused.status === 409 || refused.status === 410) {
          return;
        }
        if (bearer !== undefined && (refused.status === 401 || refused.status === 403)) {
          bearer = undefined;
        } else if (json === given && (refused.status === 413 || refused.status === 422)) {
          // It does not fit the tool's schema, or is too large. Its caller shall not wait in vain.
          this.#onError(refused, ctx);
          json = failed(ctx.callId, { code: "OUTPUT_INVALID", message: `the result was refused: ${refused.message}` });
        } else if (refused.mayPass) {
          await pause(backoff.next(refused.retryAfterMs), signal);
        } else {
          throw refused;
        }
      }
    } catch (error) {
      this.#onError(error, ctx);
    }
  }

  async #submitOnce(json: string, bearer: string | undefined, signal: AbortSignal): Promise<HaftError | undefined> {
    try {
      await this.#http.send({ method: "POST", path: "/api/tool-results", json, bearer, signal });
      return undefined;
    } catch (error) {
      if (error instanceof HaftError) {
        return error;
      }
      throw error;
    }
  }

  /** Looks for calls that wait already. Those that begin to wait from now on are told by the stream. */
  #searchWaiting(): void {
    this.#searchAgain = true;
    this.#search ??= this.#searchUntilDone();
    // It is looked at when serving ends.
    this.#search.catch(() => this.#stop.abort());
  }

  async #searchUntilDone(): Promise<void> {
    const backoff = new Backoff();
    while (this.#searchAgain && !this.#stop.signal.aborted) {
      this.#searchAgain = false;
      try {
        await this.#searchOnce();
      } catch (error) {
        if (this.#stop.signal.aborted) {
          return;
        }
        if (!(error instanceof HaftError && error.mayPass)) {
          throw error;
        }
        this.#searchAgain = true;
        this.#onError(error);
        await pause(backoff.next(), this.#stop.signal).catch(() => undefined);
      }
    }
    this.#search = undefined;
  }

  async #searchOnce(): Promise<void> {
    const signal = this.#stop.signal;
    for (const tool of Object.keys(this.#handlers)) {
      for await (const { callId, state } of this.#haft.calls({ tool, status: "pending" }, { signal })) {
        if (state === "waiting" && !this.#taken.has(callId)) {
          await this.#room();
          await this.#takeWaiting(callId);
        }
      }
    }
  }

  /** Takes a call as its own stream tells it: the call's input may have been changed by whoever said yes to it. */
  async #takeWaiting(id: string): Promise<void> {
    const { question } = await this.#haft.request("GET /api/calls/{id}", { path: { id }, signal: this.#stop.signal });
    if (question?.kind !== "result") {
      return;
    }
    const query = { types: "tool.pending" };
    const stream = { path: `/api/calls/${id}/events`, query, after: "0", signal: this.#stop.signal };
    for await (const { type, data } of follow(this.#http, stream)) {
      if (type === "tool.pending" && data.question === question.number) {
        this.#take(data as WaitingCall);
        return;
      }
    }
  }
}

/** The failure of a handler, as the server takes it. */
function failed(callId: string, thrown: unknown): string {
  const { code, message } = (typeof thrown === "object" && thrown !== null ? thrown : {}) as Record<string, unknown>;
  const text = typeof message === "string" && message !== "" ? message : String(thrown);
  return JSON.stringify({ callId, error: { code: typeof code === "string" ? code : undefined, message: text } });
}

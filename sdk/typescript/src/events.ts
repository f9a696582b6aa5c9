// Streams of events that outlive their connections.
import type {
  ApprovedBy,
  CallerRef,
  ChangeList,
  Effect,
  Form,
  Source,
  ToolError,
} from "./api.js";
import { HaftError } from "./error.js";
import type { HttpClient } from "./http.js";
import { Backoff, pause } from "./pause.js";
import { type Frame, FrameParser } from "./sse.js";

/** What each event tells, beside the `EventContext` that all but `resync` have. */
export interface EventData {
  "tool.call": { tool: string; args: Record<string, unknown>; calledAs?: string; removeBy?: string; test?: boolean };
  "tool.staged": { changes: ChangeList; turn: unknown };
  "tool.needs_approval": { effect: Effect; reason: string };
  "tool.approved": { approvedBy: ApprovedBy; by?: string; continuedAs?: string };
  "tool.rejected": { reason: string; userMessage?: string };
  "tool.started": { attempt: number };
  "tool.output_appended": { stream: "stdout" | "stderr" | "text"; chunk: string; offset: number };
  "tool.progress": { progress?: number; part?: { done: number; total: number }; message: string };
  "tool.asks": { question: number; form: Form };
  "tool.answered": { question: number; answer: unknown; by: CallerRef; source: Source };
  "tool.pending": { pendingToolCallId: string } & Partial<OutsideWork>;
  "changes.committed": { of: string; changes: ChangeList };
  "changes.undone": { of: string; changes: ChangeList };
  "tool.completed": { executionTimeMs: number; late?: boolean };
  "tool.failed": { error: ToolError; late?: boolean };
  "tool.cancelled": { reason: string };
  "tool.interrupted": { recovered: string };
}

/** What a program needs that gives the result of a call. */
export interface OutsideWork {
  /** Which of the call's questions. */
  question: number;
  tool: string;
  args: Record<string, unknown>;
  executionType: string;
  /** Whether its caller waits for it now. */
  waited: boolean;
  expiresAt: string;
  /** Ends this call; only for keys with `tools:execute`. */
  submitToken?: string;
}

/** Where an event belongs. */
export interface EventContext {
  toolCallId: string;
  runId: string;
  ts: string;
  agentId?: string;
  spaceId?: string;
  sessionId?: string;
}

/** Something that happened. After `resync` events are missing: read again what you keep a copy of. */
export type HaftEvent =
  | { [Type in keyof EventData]: { id: string; type: Type; data: EventContext & EventData[Type] } }[keyof EventData]
  | { id: string; type: "resync"; data: { after: number } };

/** What a stream is asked for. */
export interface StreamRequest {
  path: string;
  query?: Readonly<Record<string, unknown>>;
  /** Begins behind the event with this id; without it, with a `resync` that tells the newest one. */
  after?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Told each time the connection is lost; it is opened again by itself. */
  onError?: ((error: HaftError) => void) | undefined;
}

// No event has this number yet. The server answers with `resync` and the newest number there is, so that even a connection
// that breaks before its first event can be resumed.
const BEYOND_ALL = "9223372036854775807";
// The server says something every 15 seconds.
const LONGEST_SILENCE_MS = 45_000;

/** Every event, each once, across as many connections as it takes. Ends when the signal aborts. */
export async function* follow(http: HttpClient, request: StreamRequest): AsyncGenerator<HaftEvent, void, undefined> {
  const backoff = new Backoff();
  let last = request.after;
  while (!request.signal?.aborted) {
    const connection = new Connection(http, request, last);
    try {
      for await (const frame of connection.frames()) {
        if (request.signal?.aborted) {
          return;
        }
        if (isNew(frame, last)) {
          last = frame.id ?? last;
          yield told(frame);
        }
      }
    } catch (error) {
      if (request.signal?.aborted) {
        return;
      }
      if (!(error instanceof HaftError && error.mayPass)) {
        throw error;
      }
      connection.lost = error;
      request.onError?.(error);
    } finally {
      connection.close();
    }
    if (connection.heard) {
      backoff.reset();
    }
    const wait = backoff.next(connection.lost?.retryAfterMs ?? connection.retry);
    await pause(wait, request.signal).catch(() => undefined);
  }
}

// A resync may lead back: the database is then an older one.
function isNew(frame: Frame, last: string | undefined): boolean {
  return frame.event === "resync" || last === undefined || Number(frame.id) > Number(last);
}

function told({ id = "", event, data }: Frame): HaftEvent {
  try {
    return { id, type: event, data: JSON.parse(data) } as HaftEvent;
  } catch (cause) {
    const message = `event ${id} is no JSON; is this address a server of haft?`;
    throw new HaftError({ code: "UPSTREAM_ERROR", status: 200, message, recoverable: false }, { cause });
  }
}

class Connection {
  /** Why it was lost, where it did not just end. */
  lost: HaftError | undefined;
  /** Whether anything came, be it a comment. */
  heard = false;

  readonly #http: HttpClient;
  readonly #request: StreamRequest;
  readonly #last: string;
  readonly #parser = new FrameParser();
  readonly #control = new AbortController();
  readonly #stop = () => this.#control.abort(this.#request.signal?.reason);

  constructor(http: HttpClient, request: StreamRequest, last: string | undefined) {
    this.#http = http;
    this.#request = request;
    this.#last = last ?? BEYOND_ALL;
    request.signal?.addEventListener("abort", this.#stop, { once: true });
  }

  get retry(): number | undefined {
    return this.#parser.retry;
  }

  close(): void {
    this.#request.signal?.removeEventListener("abort", this.#stop);
    this.#control.abort();
  }

  async *frames(): AsyncGenerator<Frame, void, undefined> {
    const { path, query } = this.#request;
    const headers = { accept: "text/event-stream", "last-event-id": this.#last };
    const signal = this.#control.signal;
    const response = await this.#soon(this.#http.send({ method: "GET", path, query, headers, signal }));
    const kind = response.headers.get("content-type");
    if (response.body === null || !kind?.startsWith("text/event-stream")) {
      const message = `${path} is no stream of events; is this address a server of haft?`;
      throw new HaftError({ code: "UPSTREAM_ERROR", status: response.status, message, recoverable: false });
    }
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await this.#soon(reader.read());
      if (done) {
        return;
      }
      this.heard = true;
      yield* this.#parser.push(value);
    }
  }

  // A connection can be dead without an end.
  async #soon<T>(next: Promise<T>): Promise<T> {
    const silence = new Error(`nothing was heard for ${LONGEST_SILENCE_MS / 1000} s`);
    const timer = setTimeout(() => this.#control.abort(silence), LONGEST_SILENCE_MS);
    try {
      return await next;
    } catch (cause) {
      if (cause instanceof HaftError) {
        throw cause;
      }
      throw this.#http.broken(this.#control.signal.aborted ? silence : cause, this.#request.signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

// The client: one object for calls, events, answers and serving tools.
import type { ApprovalCard, ApproveBody, AnswerReply, CallItem, Outcome, RejectBody, Routes, StartBody } from "./api.js";
import { type EventData, type HaftEvent, follow } from "./events.js";
import { type HaftOptions, HttpClient, filled } from "./http.js";
import { Backoff, pause } from "./pause.js";
import { type Handler, type ServeOptions, ToolServer } from "./serve.js";

/** What can be given with every request. */
export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** What makes one of several equal requests; a random one by default. */
  idempotencyKey?: string | undefined;
}

type Given<Name extends string, Value> = [Value] extends [undefined]
  ? { [name in Name]?: undefined }
  : {} extends Value
    ? { [name in Name]?: Value }
    : { [name in Name]: Value };

/** What a route is given. */
export type RouteRequest<Route extends keyof Routes> = Given<"path", Routes[Route]["path"]> &
  Given<"query", Routes[Route]["query"]> &
  Given<"body", Routes[Route]["body"]> &
  RequestOptions;

/** How a call is made. */
export type CallOptions = Omit<StartBody, "input"> &
  RequestOptions & {
    /** Also waits for people and programs that take longer than `wait`, until the call has ended. */
    until?: "ended" | undefined;
  };

/** Which events. */
export interface EventsOptions {
  /** Only these names; `tool.*` means all that begin so. */
  types?: readonly (keyof EventData | (string & {}))[] | undefined;
  /** Only events of these calls. */
  calls?: readonly string[] | undefined;
  /** Only events of these sessions. */
  sessions?: readonly string[] | undefined;
  /** Begins behind the event with this id (`"0"`: with the oldest that is kept); now by default. */
  after?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Told each time the connection is lost; it is opened again by itself. */
  onError?: ((error: Error) => void) | undefined;
}

// What the server does once, however often the same request comes: by its Idempotency-Key, or because an equal result
// changes nothing.
const REPEATABLE: ReadonlySet<keyof Routes> = new Set<keyof Routes>([
  "POST /api/tools/{slug}/calls",
  "POST /api/calls/{id}/undo",
  "POST /api/tool-results",
  "POST /api/runs/{runId}/tool-results",
]);

const ENDS = ["tool.completed", "tool.failed", "tool.rejected", "tool.cancelled", "tool.interrupted"];

/** A server of haft, seen by one key. */
export class Haft {
  readonly #http: HttpClient;

  constructor(options: HaftOptions) {
    this.#http = new HttpClient(options);
  }

  /**
   * Asks any route. Gives its reply; where that is no JSON, the `Response`. What fails in passing is repeated where nothing
   * can happen twice by that.
   */
  async request<Route extends keyof Routes>(
    route: Route,
    ...[given]: {} extends RouteRequest<Route> ? [given?: RouteRequest<Route>] : [given: RouteRequest<Route>]
  ): Promise<Routes[Route]["reply"]> {
    const { path, query, body, signal, idempotencyKey }: PlainRequest = given ?? {};
    const [method, pattern] = route.split(" ") as [string, string];
    const headers: Record<string, string> = {};
    if (method === "POST") {
      headers["idempotency-key"] = idempotencyKey ?? randomKey();
    }
    const json = body === undefined ? undefined : JSON.stringify(body);
    const attempts = method === "GET" || REPEATABLE.has(route) ? "repeat" : "once";
    return this.#http.reply({ method, path: filled(pattern, path), query, headers, json, signal }, attempts);
  }

  /** Calls a tool. The envelope says how it ended, or that it waits for somebody. */
  async call(tool: string, input: Record<string, unknown> = {}, options: CallOptions = {}): Promise<Outcome> {
    const { until, signal, idempotencyKey, ...body } = options;
    const given = { path: { slug: tool }, body: { ...body, input }, signal, idempotencyKey };
    const outcome = await this.request("POST /api/tools/{slug}/calls", given);
    const follows = until === "ended" && outcome.status === "pending";
    return follows ? this.wait(outcome.pending.pendingToolCallId, { signal }) : outcome;
  }

  /** Waits until a call has ended, however long that takes. Of a call with an edited input, the one in its place. */
  async wait(callId: string, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<Outcome> {
    const backoff = new Backoff();
    let [id, after] = [callId, "0"];
    for (;;) {
      const call = await this.request("GET /api/calls/{id}", { path: { id }, signal });
      if (call.state === "ended" && call.outcome?.status === "pending") {
        // The call in its place is about to begin.
        await pause(backoff.next(), signal);
      } else if (call.state === "ended" && call.outcome) {
        return call.outcome;
      } else if (call.continuedAs) {
        [id, after] = [call.continuedAs, "0"];
      } else {
        after = await this.#turn(id, after, signal);
        signal?.throwIfAborted();
      }
    }
  }

  /** The next event of a call after which it has ended, or goes on as another one. */
  async #turn(id: string, after: string, signal: AbortSignal | undefined): Promise<string> {
    const query = { types: [...ENDS, "tool.approved"].join() };
    const path = filled("/api/calls/{id}/events", { id });
    for await (const event of follow(this.#http, { path, query, after, signal })) {
      if (event.type !== "tool.approved" || event.data.continuedAs !== undefined) {
        return event.id;
      }
    }
    return after;
  }

  /**
   * What happens, from now on or behind `after`. Connections that break are opened again: nothing is missed, nothing comes
   * twice. Ends when the signal aborts. Needs a key with `events:read`.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<HaftEvent, void, undefined> {
    const { types, calls, sessions, after, signal, onError } = options;
    const query = { types: types?.join(), calls: calls?.join(), sessions: sessions?.join() };
    let isBeginning = after === undefined;
    for await (const event of follow(this.#http, { path: "/api/events", query, after, signal, onError })) {
      if (!isBeginning) {
        yield event;
      }
      isBeginning = false;
    }
  }

  /** The id of the newest event. `events({ after })` goes on from there. */
  async lastEventId({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<string> {
    for await (const event of follow(this.#http, { path: "/api/events", signal })) {
      return event.id;
    }
    throw signal?.reason;
  }

  /**
   * Serves external tools: runs the handler of each call that waits for a result, and sends its result. Resolves when the
   * signal aborts and what was under way has ended. Needs a key with `tools:execute` and `events:read`.
   */
  async serve(handlers: Readonly<Record<string, Handler>>, options: ServeOptions = {}): Promise<void> {
    await new ToolServer(this, this.#http, handlers, options).run(options.signal);
  }

  /** Calls, newest first, page by page. */
  calls(query: Routes["GET /api/calls"]["query"] = {}, options: RequestOptions = {}): AsyncGenerator<CallItem, void, undefined> {
    return everyItem((after) => this.request("GET /api/calls", { query: { limit: 200, ...query, ...after }, ...options }));
  }

  /** What is asked, newest calls first, page by page. */
  approvals(
    query: Routes["GET /api/approvals"]["query"] = {},
    options: RequestOptions = {},
  ): AsyncGenerator<ApprovalCard, void, undefined> {
    return everyItem((after) => this.request("GET /api/approvals", { query: { ...query, ...after }, ...options }));
  }

  /** Says yes. With the card's `number` and `digest`, only to what was seen. */
  approve(id: string, body: ApproveBody = {}, options: RequestOptions = {}): Promise<AnswerReply> {
    return this.request("POST /api/approvals/{id}/approve", { path: { id }, body, ...options });
  }

  /** Says no. */
  reject(id: string, body: RejectBody = {}, options: RequestOptions = {}): Promise<AnswerReply> {
    return this.request("POST /api/approvals/{id}/reject", { path: { id }, body, ...options });
  }
}

// `crypto.randomUUID` is missing from pages that came over plain HTTP.
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

type PlainRequest = RequestOptions & {
  path?: Readonly<Record<string, string>> | undefined;
  query?: Readonly<Record<string, unknown>> | undefined;
  body?: unknown;
};

type Page<Item> = { items: Item[]; next?: string | null };

async function* everyItem<Item>(read: (after: { after?: string }) => Promise<Page<Item>>): AsyncGenerator<Item, void, undefined> {
  let page = await read({});
  yield* page.items;
  while (page.next) {
    page = await read({ after: page.next });
    yield* page.items;
  }
}

// Streams of events that break in every way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Haft, type HaftEvent } from "../src/index.js";
import { Gate, Server, until, whenOver } from "./server.js";

const server = await Server.start();
const haft = server.client();
await server.tool("outside", "external", { isAsync: true });

/** Makes many small calls; each is told by several events. */
async function callOften(batches: number): Promise<void> {
  const calls = Array.from({ length: 100 }, () => ({ tool: "list_directory" }));
  for (let n = 0; n < batches; n += 1) {
    await haft.request("POST /api/calls/batch", { body: { calls } });
  }
}

/** Notes what a stream tells, until it is told to stop. */
class Listener {
  readonly heard: HaftEvent[] = [];
  readonly done: Promise<void>;
  readonly #stop = new AbortController();

  constructor(client: Haft, options: Parameters<Haft["events"]>[0]) {
    whenOver(() => this.#stop.abort());
    this.done = this.#listen(client, options);
  }

  async #listen(client: Haft, options: Parameters<Haft["events"]>[0]): Promise<void> {
    for await (const event of client.events({ ...options, signal: this.#stop.signal })) {
      this.heard.push(event);
    }
  }

  stop(): Promise<void> {
    this.#stop.abort();
    return this.done;
  }

  ids(): string[] {
    return this.heard.map(({ id }) => id);
  }
}

/** Every event behind an id, read over one connection that does not break. */
async function everythingAfter(after: string): Promise<string[]> {
  const last = await haft.lastEventId();
  const ids: string[] = [];
  for await (const event of haft.events({ after })) {
    ids.push(event.id);
    if (event.id === last) {
      break;
    }
  }
  return ids;
}

/** A fetch whose streams break after some bytes, wherever that is. */
function breaking(): { fetch: typeof fetch; broken: () => number } {
  let broken = 0;
  const cut = async (...request: Parameters<typeof fetch>) => {
    const response = await fetch(...request);
    let left = 1 + Math.floor(Math.random() * 100_000);
    const cutter = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, out) {
        out.enqueue(bytes.subarray(0, left));
        left -= bytes.length;
        if (left < 0) {
          broken += 1;
          out.error(new TypeError("the connection broke"));
        }
      },
    });
    return new Response(response.body?.pipeThrough(cutter) ?? null, response);
  };
  return { fetch: cut, broken: () => broken };
}

test("ten thousand events come once each and in order, over connections that break", async () => {
  const after = await haft.lastEventId();
  const { fetch, broken } = breaking();
  const listener = new Listener(server.client({ fetch }), { after });
  await callOften(26);
  const all = await everythingAfter(after);
  assert.ok(all.length >= 10_000, `only ${all.length} events happened`);
  await until("all of them came", () => listener.heard.at(-1)?.id === all.at(-1));
  await listener.stop();
  assert.ok(broken() > 5, `only ${broken()} connections broke`);
  assert.deepEqual(listener.ids(), all);
});

test("a server that is killed and started again loses no event", async () => {
  const after = await haft.lastEventId();
  const listener = new Listener(haft, { after });
  for (let n = 0; n < 3; n += 1) {
    const before = listener.heard.length;
    const calls = callOften(2).catch(() => undefined);
    await until("events come", () => listener.heard.length > before);
    await server.kill();
    await calls;
    await server.startAgain();
  }
  await callOften(1);
  const all = await everythingAfter(after);
  await until("all of them came", () => listener.heard.at(-1)?.id === all.at(-1));
  await listener.stop();
  assert.deepEqual(listener.ids(), all);
});

test("a stream that breaks before its first event has begun where it was opened", async () => {
  const [opened, happened] = [new Gate(), new Gate()];
  let connections = 0;
  const breaksOnce: typeof fetch = async (url, init) => {
    connections += 1;
    if (connections > 1) {
      await happened.opened;
      return fetch(url, init);
    }
    const response = await fetch(url, init);
    const reader = response.body?.getReader();
    const first = await reader?.read();
    await reader?.cancel();
    const body = new ReadableStream<Uint8Array>({
      pull(out) {
        if (first?.value !== undefined) {
          out.enqueue(first.value);
          first.value = undefined;
          return;
        }
        opened.open();
        out.error(new TypeError("the connection broke"));
      },
    });
    return new Response(body, response);
  };
  const listener = new Listener(server.client({ fetch: breaksOnce }), { types: ["tool.completed"] });
  await opened.opened;
  const { tool_call_id } = await haft.call("list_directory");
  happened.open();
  await until("it came", () => listener.heard.length > 0);
  await listener.stop();
  const ids = listener.heard.map((event) => event.type === "tool.completed" && event.data.toolCallId);
  assert.deepEqual(ids, [tool_call_id]);
});

test("what is told again is heard once, and the server says when to come back", async () => {
  const frames = (...ids: number[]) => ids.map((id) => `id: ${id}\nevent: tool.started\ndata: {}\n\n`).join("");
  const streams = [`retry: 400\n\n${frames(1, 2, 3)}id: 4\ndata: cut`, frames(2, 3, 4)];
  const asked: { last: string | null; at: number }[] = [];
  const scripted: typeof fetch = async (_, init) => {
    asked.push({ last: new Headers(init?.headers).get("last-event-id"), at: Date.now() });
    const stream = streams.shift() ?? assert.fail("asked too often");
    return new Response(stream, { headers: { "content-type": "text/event-stream" } });
  };
  const ids: string[] = [];
  for await (const event of server.client({ fetch: scripted }).events({ after: "0" })) {
    ids.push(event.id);
    if (ids.length === 4) {
      break;
    }
  }
  assert.deepEqual(ids, ["1", "2", "3", "4"]);
  const [first, second] = asked;
  assert.deepEqual([first?.last, second?.last], ["0", "3"]);
  assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 399);
});

test("only what is asked for comes", async () => {
  const after = await haft.lastEventId();
  const { id } = (await haft.request("POST /api/sessions", { body: {} })) as { id: string };
  const first = await haft.call("list_directory", {}, { session: id });
  const second = await haft.call("list_directory");
  const last = (await haft.call("list_directory", {}, { session: id })).tool_call_id;
  const calls = async (options: Parameters<Haft["events"]>[0]) => {
    const told: string[] = [];
    for await (const event of haft.events({ ...options, after })) {
      told.push(event.type === "resync" ? "" : event.data.toolCallId);
      if (told.at(-1) === last) {
        break;
      }
    }
    return told;
  };
  assert.deepEqual(await calls({ types: ["tool.completed"] }), [first.tool_call_id, second.tool_call_id, last]);
  assert.deepEqual(await calls({ types: ["tool.comp*"], sessions: [id] }), [first.tool_call_id, last]);
  assert.deepEqual(await calls({ types: ["tool.call"], calls: [second.tool_call_id, last] }), [second.tool_call_id, last]);
});

test("where events are missing, the stream says so", async () => {
  const newest = await haft.lastEventId();
  for await (const event of haft.events({ after: "4000000000" })) {
    assert.deepEqual(event, { id: newest, type: "resync", data: { after: Number(newest) } });
    break;
  }
});

test("a stream ends when it is aborted, whether it is read or not", async () => {
  const stop = new AbortController();
  const events = haft.events({ after: "0", signal: stop.signal });
  assert.equal((await events.next()).done, false);
  stop.abort();
  assert.equal((await events.next()).done, true);
  const silent = new AbortController();
  const next = haft.events({ signal: silent.signal }).next();
  silent.abort();
  assert.equal((await next).done, true);
  assert.equal((await haft.events({ signal: silent.signal }).next()).done, true);
});

test("who may not listen is told so", async () => {
  const wrong = new Haft({ url: server.url, key: "haft_wrong_key" });
  await assert.rejects(wrong.events().next(), { code: "UNAUTHORIZED", status: 401 });
  const mute = new Haft({ url: server.url, key: server.key("mute", "tools:execute") });
  await assert.rejects(mute.events().next(), { code: "FORBIDDEN", status: 403 });
});

test("a server that is away is reported and waited for", async () => {
  const errors: string[] = [];
  await server.kill();
  const listener = new Listener(haft, { types: ["tool.completed"], onError: (error) => errors.push(error.message) });
  await until("it was told", () => errors.length > 1);
  await server.startAgain();
  await until("it listens again", async () => {
    await haft.call("list_directory");
    return listener.heard.length > 0;
  });
  await listener.stop();
  assert.ok(errors[0]?.includes("could not be reached"), errors[0]);
});

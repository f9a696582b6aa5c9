// Serving tools: every call is done, and no result counts twice, whatever breaks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallContext, Haft, type HaftError, type HaftOptions, type Handler, type Outcome } from "../src/index.js";
import { Gate, Server, until, whenOver } from "./server.js";

const server = await Server.start();
const haft = server.client();
const servingKey = server.key("serving", "tools:execute,events:read");

/** Serves with a key that may do nothing else. */
class Serving {
  readonly errors: unknown[] = [];
  readonly done: Promise<void>;
  readonly #stop = new AbortController();

  constructor(handlers: Record<string, Handler>, options: Partial<HaftOptions> & { concurrency?: number } = {}) {
    const client = new Haft({ url: server.url, key: servingKey, ...options });
    const onError = (error: unknown) => this.errors.push(error);
    whenOver(() => this.#stop.abort());
    this.done = client.serve(handlers, { concurrency: options.concurrency, signal: this.#stop.signal, onError });
  }

  end(): Promise<void> {
    this.#stop.abort();
    return this.done;
  }
}

let tools = 0;
/** A new external tool. */
async function newTool(more: Parameters<Server["tool"]>[2] = {}): Promise<string> {
  tools += 1;
  await server.tool(`tool_${tools}`, "external", { timeout: 60_000, ...more });
  return `tool_${tools}`;
}

/** Begins calls that are not waited for; their ids. */
async function begun(tool: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    ids.push((await haft.call(tool, { n }, { wait: 0 })).tool_call_id);
  }
  return ids;
}

function result(outcome: Outcome): unknown {
  return outcome.status === "success" ? outcome.result.structured : assert.fail(JSON.stringify(outcome));
}

async function results(ids: string[]): Promise<unknown[]> {
  return Promise.all(ids.map(async (id) => result(await haft.wait(id))));
}

test("a handler's result reaches the caller who waits", async () => {
  const tool = await newTool();
  const seen: CallContext[] = [];
  const serving = new Serving({
    [tool]: async (args, ctx) => {
      seen.push(ctx);
      return { doubled: (args["n"] as number) * 2 };
    },
  });
  const outcome = await haft.call(tool, { n: 21 }, { wait: 30, run: "run-7" });
  assert.deepEqual(result(outcome), { doubled: 42 });
  assert.deepEqual(result(await haft.call(tool, { n: 1 }, { wait: 30 })), { doubled: 2 });
  await serving.end();
  const [first] = seen;
  assert.deepEqual([first?.callId, first?.tool, first?.runId], [outcome.tool_call_id, tool, "run-7"]);
  assert.ok(Date.parse(first?.expiresAt ?? "") > Date.now());
  assert.deepEqual(serving.errors, []);
});

test("a handler that fails ends its call with its words", async () => {
  const schema = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
  const tool = await newTool({ outputSchema: schema });
  const returns: Record<string, () => unknown> = {
    throws: () => {
      throw Object.assign(new Error("no such record"), { code: "ENOENT" });
    },
    string: () => Promise.reject("just words"),
    big: () => 1n,
    function: () => () => 1,
    unfit: () => ({ n: "one" }),
    fits: () => ({ n: 1 }),
  };
  const serving = new Serving({ [tool]: (args) => returns[args["how"] as string]?.() });
  const ended = async (how: string) => {
    const outcome = await haft.call(tool, { how }, { wait: 30 });
    return outcome.status === "error" ? outcome.error : assert.fail(JSON.stringify(outcome));
  };
  const thrown = await ended("throws");
  assert.deepEqual([thrown.code, thrown.message, thrown.details], ["EXECUTION_ERROR", "no such record", { code: "ENOENT" }]);
  assert.equal((await ended("string")).message, "just words");
  assert.ok((await ended("big")).message.includes("BigInt"));
  assert.ok((await ended("function")).message.includes("no JSON"));
  assert.equal((await ended("unfit")).details?.["code"], "OUTPUT_INVALID");
  assert.deepEqual(result(await haft.call(tool, { how: "fits" }, { wait: 30 })), { n: 1 });
  await serving.end();
  assert.equal(serving.errors.length, 5);
});

test("a handler that returns nothing gives null", async () => {
  const tool = await newTool();
  const serving = new Serving({ [tool]: () => undefined });
  assert.equal(result(await haft.call(tool, {}, { wait: 30 })), null);
  await serving.end();
});

test("calls that waited before are done, those of other tools are not", async () => {
  const [tool, other] = [await newTool(), await newTool()];
  const ids = await begun(tool, 205);
  const [left] = await begun(other, 1);
  const serving = new Serving({ [tool]: (args) => args["n"] });
  const all = await results(ids);
  assert.deepEqual(all, ids.map((_, n) => n));
  await serving.end();
  const shown = await haft.request("GET /api/calls/{id}", { path: { id: left ?? "" } });
  assert.equal(shown.state, "waiting");
  assert.deepEqual(serving.errors, []);
});

test("nothing is done before the yes, and then what was said yes to", async () => {
  const tool = await newTool({ permissionPolicy: "always_ask" });
  const before = (await haft.call(tool, { path: "before" }, { wait: 0 })).tool_call_id;
  const ran: unknown[] = [];
  const handlers: Record<string, Handler> = {
    [tool]: (args) => {
      ran.push(args["path"]);
      return args["path"];
    },
  };
  const ready = await newTool();
  const serving = new Serving({ ...handlers, [ready]: () => "ready" });
  const [waiting] = await begun(ready, 1);
  await results([waiting ?? ""]);
  const asked = (await haft.call(tool, { path: "asked" }, { wait: 0 })).tool_call_id;
  assert.deepEqual(ran, []);
  await haft.approve(before, { input: { path: "edited" } });
  await haft.approve(asked);
  assert.deepEqual(await results([before, asked]), ["edited", "asked"]);
  await serving.end();
  assert.deepEqual(ran.sort(), ["asked", "edited"]);
  // The same when the yes was there before anybody served.
  const again = (await haft.call(tool, { path: "again" }, { wait: 0 })).tool_call_id;
  await haft.approve(again, { input: { path: "edited again" } });
  const later = new Serving(handlers);
  assert.deepEqual(await results([again]), ["edited again"]);
  await later.end();
});

test("a server that is killed while a handler works gets the result when it is back", async () => {
  const tool = await newTool();
  const [working, finish] = [new Gate(), new Gate()];
  let runs = 0;
  const serving = new Serving({
    [tool]: async (args) => {
      runs += 1;
      working.open();
      await finish.opened;
      return args;
    },
  });
  const [held] = await begun(tool, 1);
  await working.opened;
  await server.kill();
  const away = serving.errors.length;
  finish.open();
  await until("the stream and the result have failed to get through", () => serving.errors.length > away + 1);
  await server.startAgain();
  const more = await begun(tool, 3);
  assert.deepEqual(await results([held ?? "", ...more]), [{ n: 0 }, { n: 0 }, { n: 1 }, { n: 2 }]);
  await serving.end();
  assert.equal(runs, 4);
});

test("calls go on while the server is killed again and again", async () => {
  const tool = await newTool();
  const runs = new Map<string, number>();
  const serving = new Serving({
    [tool]: async (args, { callId }) => {
      runs.set(callId, (runs.get(callId) ?? 0) + 1);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
      return args;
    },
  });
  const ids: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    ids.push(...(await begun(tool, 20)));
    await server.kill();
    await server.startAgain();
  }
  const all = await results(ids);
  assert.deepEqual(all, ids.map((_, n) => ({ n: n % 20 })));
  await serving.end();
  assert.deepEqual([...runs.values()], ids.map(() => 1));
});

/** A fetch whose event streams break each time they have told something, and that can lose its place. */
function restless(options: { losesItsPlace: boolean }): { fetch: typeof fetch; connections: () => number } {
  let connections = 0;
  const broken: typeof fetch = async (url, init) => {
    if (!String(url).includes("/api/events")) {
      return fetch(url, init);
    }
    connections += 1;
    const headers = new Headers(init?.headers);
    if (options.losesItsPlace) {
      headers.set("last-event-id", "4000000000");
    }
    const response = await fetch(url, { ...init, headers });
    let told = 0;
    const cutter = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, out) {
        out.enqueue(bytes);
        told += new TextDecoder().decode(bytes).includes("event: tool.pending") ? 1 : 0;
        if (told > 0) {
          out.terminate();
        }
      },
    });
    return new Response(response.body?.pipeThrough(cutter) ?? null, response);
  };
  return { fetch: broken, connections: () => connections };
}

for (const losesItsPlace of [false, true]) {
  const how = losesItsPlace ? "and resyncs" : "and resumes";
  test(`a handler that is slower than a stream that breaks ${how} runs once`, async () => {
    const tool = await newTool();
    const finish = new Gate();
    const runs = new Map<string, number>();
    const { fetch, connections } = restless({ losesItsPlace });
    const slow: Handler = async (args, { callId }) => {
      runs.set(callId, (runs.get(callId) ?? 0) + 1);
      await finish.opened;
      return args;
    };
    const serving = new Serving({ [tool]: slow }, { fetch, concurrency: 20 });
    const ids: string[] = [];
    for (let n = 0; n < 4; n += 1) {
      ids.push(...(await begun(tool, 3)));
      const before = connections();
      await until("the stream was opened again", () => connections() > before || runs.size === 12);
    }
    await until("all of them are taken", () => runs.size === 12);
    finish.open();
    await results(ids);
    await serving.end();
    assert.ok(connections() > 2);
    assert.deepEqual([...runs.values()], ids.map(() => 1));
  });
}

test("a result whose receipt was lost is sent again and counts once", async () => {
  const tool = await newTool();
  let [lost, runs] = [0, 0];
  const lossy: typeof fetch = async (url, init) => {
    const response = await fetch(url, init);
    if (String(url).includes("/api/tool-results") && lost < 3) {
      lost += 1;
      throw new TypeError("the receipt was lost");
    }
    return response;
  };
  const count: Handler = () => {
    runs += 1;
    return { runs };
  };
  const serving = new Serving({ [tool]: count }, { fetch: lossy });
  const { tool_call_id } = await haft.call(tool, {}, { wait: 30 });
  await until("the receipt came", () => lost === 3);
  await serving.end();
  assert.deepEqual([runs, result(await haft.wait(tool_call_id))], [1, { runs: 1 }]);
  assert.deepEqual(serving.errors, []);
});

test("a submit token that is refused gives way to the key", async () => {
  const tool = await newTool();
  const bearers: string[] = [];
  const spoiling: typeof fetch = async (url, init) => {
    const headers = new Headers(init?.headers);
    if (String(url).includes("/api/tool-results")) {
      bearers.push(headers.get("authorization")?.split("_")[0] ?? "");
      headers.set("authorization", headers.get("authorization")?.replace("hafts_", "hafts_0") ?? "");
    }
    return fetch(url, { ...init, headers });
  };
  const serving = new Serving({ [tool]: () => 1 }, { fetch: spoiling });
  assert.equal(result(await haft.call(tool, {}, { wait: 30 })), 1);
  await serving.end();
  assert.deepEqual(bearers, ["Bearer hafts", "Bearer haft"]);
});

test("of two who serve the same tool, each call has one result", async () => {
  const tool = await newTool();
  const after = await haft.lastEventId();
  const serve = (name: string) => new Serving({ [tool]: (args) => ({ by: name, n: args["n"] }) });
  const both = [serve("first"), serve("second")];
  const ids = await begun(tool, 60);
  const all = (await results(ids)) as { by: string; n: number }[];
  await Promise.all(both.map((serving) => serving.end()));
  assert.deepEqual(all.map(({ n }) => n), ids.map((_, n) => n));
  assert.deepEqual(both.flatMap(({ errors }) => errors), []);
  const ends: string[] = [];
  const types = ["tool.completed", "tool.failed", "tool.cancelled"];
  for await (const event of haft.events({ after, types, calls: ids })) {
    ends.push(event.type === "tool.completed" && !event.data.late ? event.data.toolCallId : assert.fail(event.type));
    if (ends.length === ids.length) {
      break;
    }
  }
  assert.deepEqual(ends.sort(), ids.sort());
});

test("no more handlers run at once than wanted", async () => {
  const tool = await newTool();
  const full = new Gate();
  let [running, most] = [0, 0];
  const count: Handler = async () => {
    running += 1;
    most = Math.max(most, running);
    if (running === 3) {
      full.open();
    }
    await full.opened;
    running -= 1;
  };
  const ids = await begun(tool, 30);
  const serving = new Serving({ [tool]: count }, { concurrency: 3 });
  await results(ids);
  await serving.end();
  assert.equal(most, 3);
});

test("serving ends when what runs has ended, and leaves the rest to others", async () => {
  const tool = await newTool();
  const [working, finish] = [new Gate(), new Gate()];
  const ran: string[] = [];
  let ended = false;
  const slow: Handler = async (args, { callId, signal }) => {
    ran.push(callId);
    working.open();
    await finish.opened;
    assert.equal(signal.aborted, false);
    return args;
  };
  const serving = new Serving({ [tool]: slow }, { concurrency: 1 });
  const ids = await begun(tool, 3);
  await working.opened;
  const end = serving.end().then(() => {
    ended = true;
  });
  // A whole request later it would have ended, if it did not wait.
  await haft.request("GET /api/me");
  assert.equal(ended, false);
  finish.open();
  await end;
  assert.deepEqual(ran, ids.slice(0, 1));
  assert.deepEqual(await results(ids.slice(0, 1)), [{ n: 0 }]);
  const next = new Serving({ [tool]: (args) => args });
  assert.deepEqual(await results(ids), [{ n: 0 }, { n: 1 }, { n: 2 }]);
  await next.end();
});

test("serving ends also when the server stays away, and the call is done by whoever comes next", async () => {
  const tool = await newTool();
  const [working, finish] = [new Gate(), new Gate()];
  const slow: Handler = async () => {
    working.open();
    await finish.opened;
    return "lost";
  };
  const serving = new Serving({ [tool]: slow });
  const ids = await begun(tool, 1);
  await working.opened;
  await server.kill();
  finish.open();
  await serving.end();
  assert.ok(String(serving.errors.at(-1)).includes("does the call again"));
  await server.startAgain();
  const next = new Serving({ [tool]: () => "found" });
  assert.deepEqual(await results(ids), ["found"]);
  await next.end();
});

test("a handler hears that nobody wants its result any more", async () => {
  const tool = await newTool();
  const heard: string[] = [];
  const patient: Handler = (_, { callId, signal }) =>
    new Promise((_, reject) => {
      heard.push(`begins ${callId}`);
      signal.addEventListener("abort", () => {
        heard.push(`ends ${callId}`);
        reject(signal.reason);
      });
    });
  const serving = new Serving({ [tool]: patient }, { concurrency: 1 });
  const [cancelled, answered, queued] = (await begun(tool, 3)) as [string, string, string];
  await until("it works", () => heard.length === 1);
  await haft.request("POST /api/calls/{id}/cancel", { path: { id: queued } });
  await haft.request("POST /api/calls/{id}/cancel", { path: { id: cancelled } });
  await until("it works for the next one", () => heard.length === 3);
  await haft.request("POST /api/tool-results", { body: { callId: answered, result: "by somebody else" } });
  await until("it stops", () => heard.length === 4);
  await serving.end();
  assert.deepEqual(heard, [`begins ${cancelled}`, `ends ${cancelled}`, `begins ${answered}`, `ends ${answered}`]);
  assert.deepEqual(serving.errors, []);
});

test("a result that comes after its call has timed out is kept as a late one", async () => {
  const tool = await newTool({ timeout: 100 });
  const finish = new Gate();
  const serving = new Serving({
    [tool]: async () => {
      await finish.opened;
      return "late";
    },
  });
  const outcome = await haft.call(tool, {}, { wait: 30 });
  assert.equal(outcome.status === "error" && outcome.error.code, "TIMEOUT");
  finish.open();
  const path = { id: outcome.tool_call_id };
  await until("it is kept", async () => (await haft.request("GET /api/calls/{id}", { path })).late !== undefined);
  await serving.end();
  assert.deepEqual(serving.errors, []);
});

test("who may not serve is told so", async () => {
  const refused = async (key: string, code: string) => {
    const serve = new Haft({ url: server.url, key }).serve({ anything: () => 1 });
    await assert.rejects(serve, (error: HaftError) => error.code === code);
  };
  await refused("haft_wrong_key", "UNAUTHORIZED");
  await refused(server.key("deaf", "tools:execute"), "FORBIDDEN");
  const stop = new AbortController();
  stop.abort();
  await haft.serve({}, { signal: stop.signal });
});

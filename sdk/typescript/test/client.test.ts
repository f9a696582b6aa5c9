// Requests, calls and answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Haft, HaftError, type Outcome } from "../src/index.js";
import { Server, until } from "./server.js";

const server = await Server.start();
const haft = server.client();
await server.tool("greet", "internal");
await server.tool("outside", "external", { timeout: 60_000 });
await server.tool("careful", "external", { permissionPolicy: "always_ask", isAsync: true });

/** The calls of a tool, newest first. */
async function callsOf(tool: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const call of haft.calls({ tool, limit: 2 })) {
    ids.push(call.callId);
  }
  return ids;
}

function pendingId(outcome: Outcome): string {
  return outcome.status === "pending" ? outcome.pending.pendingToolCallId : assert.fail(outcome.status);
}

test("any route is asked by its name", async () => {
  const me = await haft.request("GET /api/me");
  assert.equal(me.tenant.slug, "acme");
  const page = await haft.request("GET /api/tools", { query: { origin: "tenant", limit: 2 } });
  assert.deepEqual(page.items.map((tool) => tool.name), ["careful", "greet"]);
  const numbers = await haft.request("GET /metrics");
  assert.ok(numbers instanceof Response && (await numbers.text()).includes("haft_"));
});

test("the types say what fits and what does not", () => {
  const neverRun = async () => {
    // @ts-expect-error: there is no such route
    await haft.request("GET /api/nothing");
    // @ts-expect-error: the path is missing
    await haft.request("GET /api/calls/{id}");
    // @ts-expect-error: the body is missing
    await haft.request("POST /api/keys");
    // @ts-expect-error: a list of scopes is wanted
    await haft.request("POST /api/keys", { body: { name: "n", scopes: "tools:read" } });
    await haft.request("POST /api/calls/{id}/undo", { path: { id: "tc_1" } });
    for await (const event of haft.events()) {
      // @ts-expect-error: not every event has this
      event.data.attempt;
      if (event.type === "tool.started") {
        event.data.attempt.toFixed();
      }
    }
  };
  assert.equal(typeof neverRun, "function");
});

test("an error has a code, a status and what helps", async () => {
  const unknown = { name: "HaftError", code: "TOOL_NOT_FOUND", status: 404, recoverable: false };
  await assert.rejects(haft.call("no_such_tool"), unknown);
  await assert.rejects(haft.call(".."), { code: "INVALID_ARGS" });
  const wrong = new Haft({ url: server.url, key: "haft_wrong_key" });
  await assert.rejects(wrong.call("greet"), { code: "UNAUTHORIZED", status: 401 });
  const nobody = new Haft({ url: "http://127.0.0.1:9", key: "haft_a_b", retryForMs: 0 });
  await assert.rejects(nobody.call("greet"), { code: "NETWORK_ERROR", status: 0, recoverable: true });
});

test("a call ends with its envelope", async () => {
  const outcome = await haft.call("read_file", { path: "nothing.txt" });
  assert.equal(outcome.status, "error");
  assert.equal(outcome.error.code, "FILE_NOT_FOUND");
  const { id } = (await haft.request("POST /api/sessions", { body: { title: "t" } })) as { id: string };
  const made = await haft.call("list_directory", {}, { workspace: "shop", session: id, run: "run-1", timeoutMs: 5000 });
  const shown = await haft.request("GET /api/calls/{id}", { path: { id: made.tool_call_id } });
  assert.deepEqual([shown.via.session, shown.via.run], [id, "run-1"]);
});

test("an answer that was lost on its way is asked for again, and the call is made once", async () => {
  let lost = 0;
  const lossy: typeof fetch = async (...request) => {
    const response = await fetch(...request);
    if (lost < 2) {
      lost += 1;
      await response.text();
      throw new TypeError("the answer was lost");
    }
    return response;
  };
  const outcome = await server.client({ fetch: lossy }).call("write_file", { path: "once.txt", content: "x" }, { wait: 0 });
  assert.equal(lost, 2);
  assert.deepEqual(await callsOf("write_file"), [outcome.tool_call_id]);
  lost = 0;
  // Whether a batch was carried out cannot be known, so that it is not sent again.
  const batch = { calls: [{ tool: "list_directory", id: "only" }] };
  const before = await callsOf("list_directory");
  const sent = server.client({ fetch: lossy }).request("POST /api/calls/batch", { body: batch });
  await assert.rejects(sent, { code: "NETWORK_ERROR" });
  assert.equal((await callsOf("list_directory")).length, before.length + 1);
});

test("the same key means the same call, another key another one", async () => {
  const first = await haft.call("outside", { n: 1 }, { wait: 0, idempotencyKey: "k1" });
  const again = await haft.call("outside", { n: 1 }, { wait: 0, idempotencyKey: "k1" });
  const other = await haft.call("outside", { n: 1 }, { wait: 0 });
  assert.equal(again.tool_call_id, first.tool_call_id);
  assert.ok(other.tool_call_id !== first.tool_call_id);
  await assert.rejects(haft.call("outside", { n: 2 }, { wait: 0, idempotencyKey: "k1" }), { status: 409 });
});

test("a request comes back after as long as the server said", async () => {
  const keys: (string | null)[] = [];
  const busy: typeof fetch = async (url, init) => {
    keys.push(new Headers(init?.headers).get("idempotency-key"));
    const [status, headers] = keys.length === 1 ? [429, { "retry-after": "1" }] : [503, { "retry-after": "0" }];
    return keys.length > 2 ? fetch(url, init) : new Response("{}", { status, headers: headers as Record<string, string> });
  };
  const began = Date.now();
  await server.client({ fetch: busy }).call("list_directory");
  assert.ok(Date.now() - began >= 1000, "it came back too early");
  assert.equal(keys.length, 3);
  assert.equal(new Set(keys).size, 1);
  const never: typeof fetch = async () => new Response("", { status: 503, headers: { "retry-after": "3600" } });
  await assert.rejects(server.client({ fetch: never }).call("list_directory"), { status: 503 });
});

test("a call that needs a yes is followed to its end", async () => {
  const ended = haft.call("write_file", { path: "yes.txt", content: "yes" }, { wait: 0, until: "ended" });
  let asked: string | undefined;
  await until("it is asked", async () => {
    for await (const card of haft.approvals({ kind: "approval" })) {
      asked = card.tool === "write_file" && JSON.stringify(card.input).includes("yes.txt") ? card.id : asked;
    }
    return asked !== undefined;
  });
  const reply = await haft.approve(asked ?? "");
  assert.equal(reply.answered, true);
  const outcome = await ended;
  assert.deepEqual([outcome.status, outcome.approved_by], ["success", "user"]);
  assert.deepEqual(await haft.wait(outcome.tool_call_id), outcome);
  const late = haft.reject(asked ?? "", { message: "no" });
  await assert.rejects(late, (error: HaftError) => error.status === 409 && error.details["decided"] !== undefined);
});

test("a no reaches whoever waits", async () => {
  const id = pendingId(await haft.call("write_file", { path: "no.txt", content: "" }, { wait: 0 }));
  const ended = haft.wait(id);
  await haft.reject(id, { message: "not now" });
  const outcome = await ended;
  assert.equal(outcome.status, "rejected");
  assert.equal(outcome.user_message, "not now");
});

test("a call with another input is followed to the one in its place", async () => {
  const id = pendingId(await haft.call("write_file", { path: "first.txt", content: "1" }, { wait: 0 }));
  const ended = haft.wait(id);
  await haft.approve(id, { input: { path: "second.txt", content: "2" } });
  const outcome = await ended;
  assert.equal(outcome.status, "success");
  assert.ok(outcome.tool_call_id !== id);
  assert.deepEqual(outcome.changes?.map((change) => change.path), ["second.txt"]);
});

test("all questions come, page by page", async () => {
  const made: string[] = [];
  for (let n = 0; n < 5; n += 1) {
    made.unshift(pendingId(await haft.call("careful", { n }, { wait: 0 })));
  }
  const seen: string[] = [];
  for await (const card of haft.approvals({ kind: "approval", limit: 2 })) {
    if (card.tool === "careful") {
      seen.push(card.id);
    }
  }
  assert.deepEqual(seen, made);
});

test("who waits can stop waiting", async () => {
  const stop = new AbortController();
  const outcome = await haft.call("outside", {}, { wait: 0 });
  const before = (await callsOf("outside")).length;
  const waits = [
    haft.wait(outcome.tool_call_id, { signal: stop.signal }),
    haft.call("outside", {}, { wait: 60, signal: stop.signal }),
  ];
  await until("the second call waits", async () => (await callsOf("outside")).length > before);
  stop.abort(new Error("enough"));
  for (const wait of waits) {
    await assert.rejects(wait, { message: "enough" });
  }
});

test("a call outlives its server", async () => {
  const ended = haft.call("outside", { survives: true }, { wait: 30, until: "ended" });
  const before = (await callsOf("outside")).length;
  let id: string | undefined;
  await until("it waits", async () => {
    const [newest] = await callsOf("outside");
    const shown = newest === undefined ? undefined : await haft.request("GET /api/calls/{id}", { path: { id: newest } });
    id = JSON.stringify(shown?.input) === '{"survives":true}' ? newest : undefined;
    return id !== undefined;
  });
  await server.kill();
  await server.startAgain();
  await haft.request("POST /api/tool-results", { body: { callId: id ?? "", result: { fine: true } } });
  const outcome = await ended;
  assert.equal(outcome.status, "success");
  assert.deepEqual(outcome.result.structured, { fine: true });
  assert.ok((await callsOf("outside")).length <= before + 1, "no second call was made");
});

// The official TypeScript clients. Arguments: the package ("client", or "sdk" for the one before it), how it agrees on
// the protocol, then the command of the server, or its URL with the token in TOKEN. It fails unless every answer is as
// it should be.
const assert = require("node:assert/strict");
const { createRequire } = require("node:module");

const [package, mode, ...server] = process.argv.slice(2);
const load = createRequire(`${process.env.PEERS}/package.json`);
const about = { name: `typescript-${package}`, version: "1" };
const shown = [];

// A person who says yes to one file and no to another, and closes the form of a third.
async function fillIn({ params }) {
  shown.push(params.message);
  if (params.message.includes("declined.txt")) return { action: "decline" };
  if (params.message.includes("refused.txt")) {
    return { action: "accept", content: { approve: false, message: "not this one" } };
  }
  return { action: "accept", content: { approve: true, message: "" } };
}

function transport(stdio, http) {
  const [command, ...args] = server;
  if (!command.startsWith("http://")) return new stdio({ command, args, env: process.env });
  const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
  return new http(new URL(command), { requestInit: { headers } });
}

async function connect() {
  const capabilities = { elicitation: { form: {} } };
  if (package === "sdk") {
    const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
    const { ElicitRequestSchema } = load("@modelcontextprotocol/sdk/types.js");
    const client = new Client(about, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, fillIn);
    await client.connect(transport(StdioClientTransport));
    return { client, call: (params, options) => client.callTool(params, undefined, options) };
  }
  const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
  const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
  const versionNegotiation = { mode: mode === "2026-07-28" ? { pin: mode } : mode };
  const client = new Client(about, { capabilities, versionNegotiation });
  client.setRequestHandler("elicitation/create", fillIn);
  await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
  const expected = mode === "legacy" ? "2025-11-25" : "2026-07-28";
  assert.equal(client.getNegotiatedProtocolVersion(), expected);
  return { client, call: (params, options) => client.callTool(params, options) };
}

// Every schema is one that can be used, and says what an answer is.
async function listed(client) {
  const { Ajv2020 } = load("ajv/dist/2020");
  const { tools } = await client.listTools();
  const shapes = {};
  for (const { name, inputSchema, outputSchema } of tools) {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.compile(inputSchema);
    shapes[name] = outputSchema && ajv.compile(outputSchema);
  }
  return shapes;
}

async function main() {
  const { client, call } = await connect();
  const shapes = await listed(client);
  const use = async (name, input, options) => {
    const result = await call({ name, arguments: input }, options);
    if (!result.isError) assert.ok(shapes[name](result.structuredContent), JSON.stringify(shapes[name].errors));
    return result;
  };

  const read = await use("read_file", { path: "a.txt" });
  assert.equal(read.structuredContent.content, "a\n");
  const missing = await use("read_file", { path: "nowhere" });
  assert.ok(missing.isError && missing.content[0].text.startsWith("FILE_NOT_FOUND"), JSON.stringify(missing));

  const heard = [];
  const onprogress = ({ message }) => heard.push(message);
  const said = await use("shell_exec", { command: "echo one; sleep 0.2; echo two" }, { onprogress });
  assert.equal(said.structuredContent.stdout, "one\ntwo\n");
  assert.equal(heard.join(""), "one\ntwo\n");

  const stop = new AbortController();
  const stopped = use("shell_exec", { command: "echo begun; sleep 300" }, { signal: stop.signal, onprogress: () => stop.abort() });
  await assert.rejects(stopped);

  const wrote = await use("write_file", { path: "made.txt", content: "made\n" });
  assert.ok(wrote.structuredContent.created, JSON.stringify(wrote));
  const refused = await use("write_file", { path: "refused.txt", content: "no\n" });
  assert.ok(refused.isError && refused.content[0].text.includes("not this one"), JSON.stringify(refused));
  const declined = await use("write_file", { path: "declined.txt", content: "no\n" });
  assert.ok(declined.isError && declined.content[0].text.startsWith("PENDING"), JSON.stringify(declined));
  assert.equal(shown.length, 3, shown.join("\n"));

  const many = await Promise.all(Array.from({ length: 50 }, () => use("read_file", { path: "a.txt" })));
  assert.ok(many.every((one) => one.structuredContent.content === "a\n"));
  await client.close();
}

const limit = setTimeout(() => {
  console.error("not done after 100 s", shown);
  process.exit(1);
}, 100_000);
main().then(
  () => clearTimeout(limit),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);

// Streams of bytes, cut in every way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Frame, FrameParser } from "../src/sse.js";

const STREAM = [
  "\uFEFF: a comment\n",
  "retry: 1500\n",
  "id: 1\nevent: tool.call\ndata: {\"name\": \"żółw 🐢\"}\n\n",
  "id: 2\r\nevent: tool.pending\r\ndata: one\r\ndata:two\r\ndata:\r\ndata:  three\r\n\r\n",
  ":\n\n",
  "id: 3\rdata: by returns alone\r\r",
  "event: without.data\nid: 4\n\n",
  "data\nunknown: field\nretry: soon\n\n",
  "data: no id of its own\n\n",
  "id: 5\ndata: never finished",
].join("");

const FRAMES: Frame[] = [
  { id: "1", event: "tool.call", data: '{"name": "żółw 🐢"}' },
  { id: "2", event: "tool.pending", data: "one\ntwo\n\n three" },
  { id: "3", event: "message", data: "by returns alone" },
  { id: "4", event: "message", data: "" },
  { id: "4", event: "message", data: "no id of its own" },
];

function parsed(pieces: Uint8Array[]): Frame[] {
  const parser = new FrameParser();
  const frames = pieces.flatMap((piece) => parser.push(piece));
  assert.equal(parser.retry, 1500);
  return frames;
}

test("a stream says the same wherever it is cut in two", () => {
  const bytes = new TextEncoder().encode(STREAM);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    assert.deepEqual(parsed([bytes.subarray(0, cut), bytes.subarray(cut)]), FRAMES, `cut at ${cut}`);
  }
});

test("a stream says the same byte by byte, with empty pieces in between", () => {
  const bytes = new TextEncoder().encode(STREAM);
  const pieces = Array.from(bytes, (byte) => [Uint8Array.of(byte), new Uint8Array()]).flat();
  assert.deepEqual(parsed(pieces), FRAMES);
});

// Server-sent events, read from bytes as they come.

/** One event of a stream. */
export interface Frame {
  /** The last id that the stream named, in this frame or before. */
  id: string | undefined;
  event: string;
  data: string;
}

/** Reads one connection. What is left unfinished at its end is no event. */
export class FrameParser {
  /** How long to wait before coming back, in milliseconds, where the server said so. */
  retry: number | undefined;

  readonly #decoder = new TextDecoder();
  #line = "";
  #endedByReturn = false;
  #id: string | undefined;
  #event = "";
  #data: string[] = [];

  /** The frames that are complete with these bytes. */
  push(bytes: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    let text = this.#decoder.decode(bytes, { stream: true });
    if (this.#endedByReturn && text !== "") {
      // The other half of a line's end.
      text = text.startsWith("\n") ? text.slice(1) : text;
      this.#endedByReturn = false;
    }
    let start = 0;
    for (const { 0: end, index } of text.matchAll(/\r\n|\n|\r/g)) {
      const line = this.#line + text.slice(start, index);
      this.#line = "";
      start = index + end.length;
      this.#endedByReturn = end === "\r" && start === text.length;
      const frame = this.#take(line);
      if (frame !== undefined) {
        frames.push(frame);
      }
    }
    this.#line += text.slice(start);
    return frames;
  }

  #take(line: string): Frame | undefined {
    if (line === "") {
      return this.#finish();
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    switch (field) {
      case "event":
        this.#event = value;
        break;
      case "data":
        this.#data.push(value);
        break;
      case "id":
        if (!value.includes("\0")) {
          this.#id = value;
        }
        break;
      case "retry":
        if (/^\d+$/.test(value)) {
          this.retry = Number(value);
        }
        break;
    }
    return undefined;
  }

  #finish(): Frame | undefined {
    const frame = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
    const isEvent = this.#data.length > 0;
    this.#event = "";
    this.#data = [];
    return isEvent ? frame : undefined;
  }
}

// A `haft serve` on a data folder of its own. The program is named by HAFT_PROGRAM.
import assert from "node:assert/strict";
import { type Child, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { type AuthoredTool, Haft, type HaftOptions } from "../src/index.js";

const EVERYTHING = "tools:read,tools:execute,tools:write,approvals:decide,events:read";

/** How long something may take that is waited for. */
const SOON_MS = 60_000;

const lastActs: (() => void)[] = [];
after(() => lastActs.forEach((act) => act()));

/** Does this after all tests of a file, so that nothing goes on that was begun by one that failed. */
export function whenOver(act: () => void): void {
  lastActs.push(act);
}

export class Server {
  url = "";
  readonly #folder = mkdtempSync(join(tmpdir(), "haft-sdk-"));
  #child: Child | undefined;

  /** A running one with the tenant `acme`; it is killed when the tests of its file are over. */
  static async start(): Promise<Server> {
    const server = new Server();
    mkdirSync(join(server.#folder, "shop"));
    after(() => server.#remove());
    await server.startAgain();
    server.#admin("tenant", "add", "acme");
    server.#admin("workspace", "add", "shop", "--tenant", "acme", "--map", join(server.#folder, "shop"));
    return server;
  }

  /** Starts it on the same data, at the same address. */
  async startAgain(): Promise<void> {
    const listen = this.url.replace("http://", "") || "127.0.0.1:0";
    const args = ["serve", "--listen", listen, "--json"];
    const child = spawn(program(), args, { cwd: this.#folder, env: this.#env(), stdio: ["ignore", "pipe", "inherit"] });
    this.#child = child;
    child.stdout.setEncoding("utf8");
    let first = "";
    for await (const text of child.stdout) {
      first += text;
      if (first.includes("\n")) {
        break;
      }
    }
    this.url = JSON.parse(first).url;
  }

  /** Ends it as the system would, without a word. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise<void>((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await gone;
    }
  }

  /** A new key of the tenant. */
  key(name: string, scopes: string, ...more: string[]): string {
    return this.#admin("key", "add", name, "--tenant", "acme", "--scopes", scopes, ...more)["key"] as string;
  }

  /** A client that may do everything. */
  client(options: Partial<HaftOptions> = {}): Haft {
    this.#key ??= this.key("full", EVERYTHING, "--workspace", "shop");
    return new Haft({ url: this.url, key: this.#key, ...options });
  }
  #key: string | undefined;

  /** Makes a tool. */
  async tool(slug: string, executionType: AuthoredTool["executionType"], more: Partial<AuthoredTool> = {}): Promise<void> {
    const about = { slug, description: "For a test.", inputSchema: { type: "object" }, executionType };
    await this.client().request("POST /api/tools", { body: { ...about, ...more } });
  }

  #admin(...args: string[]): Record<string, unknown> {
    const options = { cwd: this.#folder, env: this.#env(), encoding: "utf8" as const };
    return JSON.parse(execFileSync(program(), ["admin", ...args, "--json"], options));
  }

  #env(): Record<string, string> {
    const folder = this.#folder;
    const own = { HOME: folder, HAFT_DATA_DIR: join(folder, "data"), XDG_CONFIG_HOME: folder, NO_COLOR: "1" };
    return { PATH: process.env["PATH"] ?? "", ...own };
  }

  async #remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function program(): string {
  return process.env["HAFT_PROGRAM"] ?? assert.fail("HAFT_PROGRAM must name the program");
}

/** Waits for something to become true. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + SOON_MS;
  while (!(await isSo())) {
    assert.ok(Date.now() < end, `waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Something that is waited for by others until it is opened. */
export class Gate {
  open!: () => void;
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
}

// What the tests use of Node, so that its types need not be installed.
declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
  export function after(body: () => void | Promise<void>): void;
}

declare module "node:assert/strict" {
  const assert: {
    equal<T>(actual: unknown, expected: T, message?: string): asserts actual is T;
    deepEqual<T>(actual: unknown, expected: T, message?: string): asserts actual is T;
    ok(value: unknown, message?: string): asserts value;
    rejects(promise: Promise<unknown>, expected?: object | ((error: any) => boolean)): Promise<void>;
    fail(message: string): never;
  };
  export default assert;
}

declare module "node:child_process" {
  interface Child {
    readonly exitCode: number | null;
    readonly signalCode: string | null;
    readonly stdout: AsyncIterable<string> & { setEncoding(encoding: "utf8"): void };
    kill(signal: "SIGKILL"): boolean;
    once(event: "exit", listener: () => void): void;
  }
  type Options = { cwd: string; env: Record<string, string>; stdio?: ["ignore", "pipe", "inherit" | "ignore"] };
  export function spawn(program: string, args: string[], options: Options): Child;
  export function execFileSync(program: string, args: string[], options: Options & { encoding: "utf8" }): string;
}

declare module "node:fs" {
  export function mkdtempSync(prefix: string): string;
  export function mkdirSync(path: string): void;
  export function rmSync(path: string, options: { recursive: true; force: true }): void;
}

declare module "node:os" {
  export function tmpdir(): string;
}

declare module "node:path" {
  export function join(...parts: string[]): string;
}

declare const process: { env: Record<string, string | undefined> };

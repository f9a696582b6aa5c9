// The one error of this package.
import type { Problem } from "./api.js";

/** Facts for programs: those of the error, and those beside it, such as `decided` or `card`. */
export type ErrorDetails = Record<string, unknown>;

/** Why a request failed: the server refused it, or could not be reached (`NETWORK_ERROR`, status 0). */
export class HaftError extends Error {
  override readonly name = "HaftError";
  /** Which failure, such as `NOT_FOUND`. */
  readonly code: string;
  /** The status of the answer; 0 where there was none. */
  readonly status: number;
  /** Whether the same request may succeed later, unchanged. */
  readonly recoverable: boolean;
  readonly details: ErrorDetails;

  constructor(
    failure: { code: string; status: number; message: string; recoverable: boolean; details?: ErrorDetails },
    options?: { cause?: unknown },
  ) {
    super(failure.message, options);
    this.code = failure.code;
    this.status = failure.status;
    this.recoverable = failure.recoverable;
    this.details = failure.details ?? {};
  }

  /** Whether trying again may help: nobody was reached, or the server had no time. */
  get mayPass(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** After how many milliseconds to ask again, where the server said so. */
  get retryAfterMs(): number | undefined {
    const wait = this.details["retryAfterMs"];
    return typeof wait === "number" ? wait : undefined;
  }
}

/** The server was not reached, or the connection broke. */
export function unreachable(url: string, cause: unknown): HaftError {
  const why = cause instanceof Error ? innermost(cause).message || cause.message : String(cause);
  const message = `${url} could not be reached: ${why}; is the server running?`;
  return new HaftError({ code: "NETWORK_ERROR", status: 0, message, recoverable: true }, { cause });
}

// `fetch failed` says nothing; what it wraps does.
function innermost(error: Error): Error {
  return error.cause instanceof Error ? innermost(error.cause) : error;
}

/** What the server said instead of the answer that was wanted. */
export async function refusal(response: Response): Promise<HaftError> {
  const text = await response.text().catch(() => "");
  const { error, ...beside } = parsed(text) ?? unnamed(response, text);
  const details: ErrorDetails = { ...error.details, ...beside };
  const wait = retryAfter(response.headers.get("retry-after"));
  if (wait !== undefined && details["retryAfterMs"] === undefined) {
    details["retryAfterMs"] = wait;
  }
  return new HaftError({ ...error, status: response.status, details });
}

function parsed(text: string): Problem | undefined {
  try {
    const problem = JSON.parse(text) as Problem | null;
    return typeof problem?.error?.code === "string" ? problem : undefined;
  } catch {
    return undefined;
  }
}

// A proxy between us and the server has words of its own.
function unnamed(response: Response, text: string): Problem {
  const message = `${response.url} answered ${response.status}: ${text.slice(0, 200) || response.statusText}`;
  return { error: { code: "UPSTREAM_ERROR", message, recoverable: response.status >= 500 } };
}

function retryAfter(header: string | null): number | undefined {
  if (header === null) {
    return undefined;
  }
  const seconds = Number(header);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}

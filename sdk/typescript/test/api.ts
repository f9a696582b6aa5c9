// What the types say of real requests and replies. It is compiled and never run.
import type { ApprovalCard, Outcome, Problem, Routes } from "../src/api";

type Request<R extends keyof Routes> = Pick<Routes[R], "path" | "query" | "body">;
declare function ask<R extends keyof Routes>(route: R, request: Request<R>): Promise<Routes[R]["reply"]>;

export async function call(slug: string): Promise<string> {
  const outcome = await ask("POST /api/tools/{slug}/calls", {
    path: { slug },
    query: undefined,
    body: { input: { path: "a.txt" }, wait: 5 },
  });
  return said(outcome);
}

function said(outcome: Outcome): string {
  switch (outcome.status) {
    case "success":
      return outcome.result.content;
    case "pending":
      return `${outcome.pending.pendingToolCallId} waits until ${outcome.pending.expiresAt}`;
    case "rejected":
      return outcome.user_message ?? outcome.reason;
    case "error":
    case "cancelled":
      return outcome.error.code === "TIMEOUT" ? "too late" : outcome.error.message;
  }
}

export async function questions(): Promise<string[]> {
  const page = await ask("GET /api/approvals", { path: undefined, query: { state: "open", limit: 10 }, body: undefined });
  const shown = (card: ApprovalCard) => ("changes" in card ? card.changes.map((change) => change.path).join() : card.reason);
  return page.items.map(shown);
}

export function because(problem: Problem): string {
  return `${problem.error.code}: ${problem.error.message}`;
}

export async function mistakes(outcome: Outcome) {
  // @ts-expect-error: there is no such route
  await ask("GET /api/nothing", {});
  // @ts-expect-error: the path is incomplete
  await ask("GET /api/calls/{id}", { path: {}, query: undefined, body: undefined });
  // @ts-expect-error: a list of scopes is wanted
  await ask("POST /api/keys", { path: undefined, query: undefined, body: { name: "n", scopes: "tools:read" } });
  // @ts-expect-error: only a success has a result
  return outcome.result;
}

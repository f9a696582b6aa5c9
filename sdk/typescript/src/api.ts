// Written by `make docs` from the routes of the server. Do not edit.

/** What is accepted. */
export type AcceptBody = {
  /** Only this tool; all without it. */
  tool?: string | null;
  /** The `digest` that was shown of the tool, or of the server; 409 when the server says something else by now. */
  digest?: string | null;
};

/** Who did something, and how they came. */
export type ActorView = {
  /** Who, as `kind:id`; absent where nobody was known. */
  id?: string | null;
  /** What they were called. */
  name?: string | null;
  /** Through which door: `web`, `api`, `mcp`, `cli`, `house`. */
  source: string;
  /** By which key, program or sign-in. */
  via?: string | null;
  /** From which address. */
  address?: string | null;
};

/** Somebody's yes, where approval rules decide who says it. */
export type AgreementView = {
  /** The person, or the key where nobody is behind it. */
  person: string;
  /** By what they said it. */
  by: CallerRef;
  /** Through which door. */
  source: Source;
  /** To what: the whole, some paths, or another input. */
  answer: unknown;
  /** The digest of what was asked. */
  digest: string;
  /** The version of the approval rules that it was said under. */
  rulesVersion: number;
  at: string;
};

/** One page of a list. */
export type AgreementViewPage = {
  /** What is on it. */
  items: Array<AgreementView>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** What a remembered yes covers. */
export type AlwaysBody = {
  kind: AlwaysKind;
  /** How long: `30m`, `8h`, `7d`; until it is revoked when absent. */
  for?: string | null;
  /** How often; without limit when absent. */
  uses?: number | null;
};

export type AlwaysKind = "call" | "folder" | "bounds";

/** One answer to several questions that are alike. */
export type AnswerAllBody = {
  ids: Array<string>;
  /** What all of their cards say as `alike`; for a single one its `digest` does as well. */
  digest: string;
  answer: PlainAnswer;
  /** Why; whoever asked reads it. */
  message?: string | null;
};

/** An answer that counts. */
export type AnswerReply = {
  /** Whether the question is answered by it. */
  answered: boolean;
  /** How many others have to say the same before it is. */
  needed?: number | null;
  by: CallerRef;
  /** What the yes is remembered as. */
  grant?: GrantId | null;
  /** How the call ended, where it did so soon. */
  outcome?: Outcome | null;
};

/** One page of a list. */
export type AnyValuePage = {
  /** What is on it. */
  items: Array<unknown>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** A question as it is shown. */
export type ApprovalCard = ({
  /** What it is answered by. */
  id: CallId;
  callId: CallId;
  /** `approval`, `form` or `result`. */
  kind: string;
  /** Which of the call's questions. */
  number: number;
  tool: string;
  /** A long one is shown in brief. */
  input: unknown;
  /** What was left out of it. */
  inputCut?: unknown;
  effect: Effect;
  /** Why it is asked. */
  reason: string;
  askedBy: CallerRef;
  workspace: WorkspaceId | null;
  askedAt: string;
  expiresAt: string;
  /** When it was passed on to others, because nobody had answered in time. */
  escalatedAt?: string | null;
  /** Which bound of which grant nearly matched. */
  nearly?: string | null;
  answer?: string;
  by?: CallerRef;
  at?: string;
  /** Through which door. */
  source?: Source;
  /** The answer with all that belongs to it. */
  given?: unknown;
  message?: string | null;
  /** What a yes is bound to. */
  digest: string;
  /** What questions that are alike have in common. */
  alike?: string | null;
}) & ({
  changes: ChangeList;
  output: ToolOutput;
  /** What a yes does with the changes. */
  turn: unknown;
  isolation: Isolation | null;
} | {
  description: Described;
} | {
  message: string;
  form: Form;
} | {
  message: string;
  schema: unknown;
  /** All that is known of what is waited for. */
  awaited: unknown;
});

/** One page of a list. */
export type ApprovalCardPage = {
  /** What is on it. */
  items: Array<ApprovalCard>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** Rules to be put in the place of others. */
export type ApprovalRulesBodyBody = {
  rules: Array<WrittenApprovalRuleBody>;
  /** The version that they take the place of. */
  version: number;
};

/** The rules in force. */
export type ApprovalRulesView = {
  version: number;
  /** The first that is about a call counts. */
  rules: Array<WrittenApprovalRule>;
  savedBy?: string | null;
  savedAt?: string | null;
};

/** A yes. */
export type ApproveBody = {
  /** Which of the call's questions was seen. */
  number?: number | null;
  /** What was seen. */
  digest?: string | null;
  /** Only these paths. */
  paths?: Array<string> | null;
  /** This input in the place of the one that is asked about. */
  input?: Record<string, unknown> | null;
  /** A yes that is remembered. */
  always?: AlwaysBody | null;
  /** A word to whoever asked. */
  message?: string | null;
};

/** Who said yes. */
export type ApprovedBy = "auto" | "user" | "config";

/** Who may answer. */
export type Approvers = {
  /** Whoever has one of these roles. */
  roles?: Array<string>;
  /** These people, by their ids or mail addresses. */
  people?: Array<string>;
};

/** When a person is asked, beside what a call does. */
export type Asks = "by_effect" | "always" | "never_for_reads" | "only_to_destroy";

/** Something that a model can listen to. */
export type Audio = {
  /** `audio/wav` and the like. */
  mimeType: string;
  /** The bytes in base64. */
  data: string;
};

/** One act. */
export type AuditView = {
  /** Which row of the tenant's log, from 1. */
  seq: number;
  /** When. */
  at: string;
  /** What was done, such as `key.added`. */
  action: string;
  /** To what, as `kind:id`. */
  on: string;
  /** Who did it. */
  by: ActorView;
  /** What it was and what it is now, without secrets. */
  change?: unknown;
  /** The hash of the row before, as hexadecimal digits. */
  previous: string;
  /** The hash of this row. */
  hash: string;
  /** Whose log it is in, where it is one of several. */
  tenant?: string | null;
};

/** One page of a list. */
export type AuditViewPage = {
  /** What is on it. */
  items: Array<AuditView>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** A tool as somebody wrote it, checked. */
export type AuthoredTool = {
  /** What it is called by. */
  slug?: string;
  /** The name that people read; without a slug it is that. */
  name?: string | null;
  /** When to use it. */
  description: string;
  /** What goes in. */
  inputSchema: unknown;
  /** What comes out. */
  outputSchema?: unknown;
  /** Who does the work. */
  executionType: ExecutionType;
  /** The request of a `gateway` tool. */
  execution?: Execution | null;
  /** Whether calls are shown in the space where they happen. */
  visible?: boolean | null;
  /** Whether the caller goes on before the result is there. */
  isAsync?: boolean;
  /** How long a call may take, in milliseconds. */
  timeout?: number | null;
  /** How long a result from outside is waited for at all, in milliseconds. */
  expiresAfter?: number | null;
  /** How far it reaches. */
  effect?: Effect | null;
  /** When a person is asked. */
  permissionPolicy?: PermissionPolicy;
  /** What a caller needs to use it, beside using tools. */
  requiredPermission?: string | null;
  /** What it belongs to. */
  category?: string | null;
  /** How a result is shown. */
  outputSections?: unknown;
  /** Whether there shall be such a tool. */
  enabled?: boolean | null;
};

/** Calls to be made. */
export type BatchBody = {
  calls: Array<BatchItem>;
  /** How many seconds to wait for answers from outside; 60 by default, 600 at most. It holds for each of them. */
  wait?: number | null;
  /** The workspace to work in; that of the key by default. */
  workspace?: string | null;
};

/** One of them. */
export type BatchItem = {
  tool: string;
  input?: Record<string, unknown>;
  /** Given back with its envelope. */
  id?: string | null;
};

/** The id of a call: `tc_` and a UUIDv7. */
export type CallId = string;

/** A call in a list. */
export type CallItem = {
  callId: CallId;
  workspace: WorkspaceId | null;
  tool: string;
  /** What whoever asked is called. */
  caller: string;
  /** Through which door. */
  source: Source;
  state: CallState;
  /** How it ended, or `pending`; `null` while it runs. */
  status: string | null;
  /** The error's code, where there is one. */
  code: string | null;
  startedAt: string;
  finishedAt: string | null;
  /** How long the work took. */
  durationMs: number | null;
  /** Whether somebody was asked about it. */
  asked: boolean;
  isolation: Isolation | null;
  input?: unknown;
  callerId?: CallerId;
  via?: Via;
  parent?: CallId | null;
  /** What it did, or was about to do, with staged changes. */
  turn?: unknown;
  outcome?: Outcome | null;
};

/** One page of a list. */
export type CallItemPage = {
  /** What is on it. */
  items: Array<CallItem>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** Where a call stands. */
export type CallState = "preparing" | "waiting" | "executing" | "ended";

/** A call with its input, its question and its outcome. */
export type CallView = {
  callId: CallId;
  /** The call that went on in its place, where somebody gave it another input. */
  continuedAs?: CallId | null;
  tool: string;
  input: unknown;
  caller: CallerRef;
  /** Through which door. */
  source: Source;
  /** What it is part of. */
  via: Via;
  /** Whether it only tried a tool. */
  test: boolean;
  workspace?: WorkspaceId | null;
  /** The call that made it. */
  parent?: CallId | null;
  state: CallState;
  /** How it ended, or `pending`. */
  status: string;
  startedAt: string;
  /** What it waits for. */
  question?: WaitingQuestion | null;
  /** The node that carries it on once it is there again. */
  waitingFor?: string | null;
  /** A result that came after its end. */
  late?: LateView | null;
  outcome?: Outcome | null;
};

/** Who somebody is, whatever they are called. Grants, answers and kept results go by it. */
export type CallerId = {
  /** What kind of caller. */
  kind: CallerKind;
  /** Which one of that kind, within the tenant. */
  id: string;
};

/** What kind of caller. */
export type CallerKind = "person" | "agent" | "key" | "token" | "owner" | "house";

/** Somebody in a record: who it was, and what they were called then. */
export type CallerRef = {
  /** What kind of caller. */
  kind: CallerKind;
  /** Which one of that kind, within the tenant. */
  id: string;
  /** The name people see. */
  name: string;
};

/** What kind of failure a code is; callers decide by it what to do next. */
export type Category = "invalid_params" | "permission" | "timeout" | "execution" | "transient" | "cancelled" | "internal";

/** One file, folder or link that a call would change or has changed. */
export type Change = {
  /** Where, relative to the workspace. */
  path: string;
  /** What happens to it. */
  kind: ChangeKind;
  /** Where it came from, for a rename. */
  from?: string | null;
  /** Bytes of what it takes the place of, for a rename onto something. */
  replaces?: number | null;
  /** A unified diff, where there is one to show. */
  diff?: string | null;
  /** The content is not text. */
  binary?: boolean;
  /** It is a folder. */
  directory?: boolean;
  /** It is, or becomes, an executable file. */
  executable?: boolean;
  /** Bytes after the change; before it, for a delete. */
  size: number;
  /** Lines added. */
  added: number;
  /** Lines removed. */
  removed: number;
  /** Why a person should look twice. */
  flags: Array<Flag>;
  /** It is build output or a cache, by all of its paths: what is ignored and untracked, as it was before the call. */
  derived?: boolean;
  /** One line that stands for this and for what belongs to it, such as `commit 1a2b3c on main`. */
  summary?: string | null;
  /** What the commit that `summary` names changes, where that could be read. */
  patch?: string | null;
  /** It goes because it has served its purpose, as what git keeps of a merge until that is committed. */
  spent?: boolean;
  /** Whether it is in the workspace. */
  state: ChangeState;
};

/** What happens to a path. */
export type ChangeKind = "created" | "changed" | "deleted" | "mode" | "link" | "renamed";

/** Everything one call would change, in path order. */
export type ChangeList = Array<Change>;

/** Where a change stands. */
export type ChangeState = "staged" | "committed" | "discarded" | "undone";

/** What a call changed, and what the process that it ran said. */
export type ChangesView = {
  callId: CallId;
  /** How it ended, or `pending`. */
  status: string;
  changes: ChangeList;
  exitCode?: number | null;
  output?: string | null;
};

/** How a channel went last. */
export type ChannelView = {
  /** Whether it is set up. */
  available: boolean;
  /** How many notices wait to be sent. */
  waiting: number;
  sentAt?: string | null;
  failedAt?: string | null;
  /** What went wrong last. */
  failure?: string | null;
  /** How often notices were given up. */
  givenUp: number;
};

export type ChannelViews = {
  mail: ChannelView;
  webhook: ChannelView;
};

/** The answer of whoever was asked. */
export type ConsentBody = {
  response_type?: string | null;
  client_id?: string | null;
  redirect_uri?: string | null;
  code_challenge?: string | null;
  code_challenge_method?: string | null;
  state?: string | null;
  scope?: string | null;
  resource?: string | null;
  /** Which of one's tenants. */
  tenant: string;
  /** The workspace there; none when it is empty or absent. */
  workspace?: string | null;
  /** What the program may do, of what it asked for. */
  scopes: Array<string>;
  allow: boolean;
};

/** Where to go next. */
export type ConsentReply = {
  to: string;
};

/** A program that somebody let in. */
export type ConsentView = {
  /** What it is ended by. */
  id: string;
  /** The program. */
  client: string;
  /** What it calls itself. */
  name: string;
  /** What it may do. */
  scopes: Array<string>;
  /** Since when. */
  since: string;
};

/** One page of a list. */
export type ConsentViewPage = {
  /** What is on it. */
  items: Array<ConsentView>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** A name that a tool had before, and what its parameters were called then. */
export type DeprecatedAlias = {
  /** The old name. */
  name: string;
  /** The last day on which it is understood, in UTC. */
  removeBy: string;
  /** What parameters were called, and what they are called now. */
  paramMap?: Record<string, string>;
};

/** What is known of a call that can only be described before it is done. */
export type Described = {
  /** What the approver is shown. */
  preview: string | null;
  /** The rung that its processes would run on; `None` when it starts none that matter to the decision. */
  isolation?: Isolation | null;
  /** Whether it runs aside, so that the files that it changes can be brought back. */
  runs_aside?: boolean;
  /** Whether a yes may be remembered. */
  lasting?: Rememberable;
  /** Why it is asked for in every mode. */
  must_ask?: string | null;
  /** The host that haft itself would reach for it; `None` when it reaches none, or nobody can tell which. */
  reach?: Reach | null;
};

/** The answer of whoever was asked. */
export type DeviceAnswerBody = {
  /** The code that the device shows. */
  code: string;
  /** Which of one's tenants. */
  tenant: string;
  /** The workspace there; none when it is empty or absent. */
  workspace?: string | null;
  /** What the program may do, of what it asked for. */
  scopes: Array<string>;
  allow: boolean;
};

/** Nothing but that it is done. */
export type Done = {
  /** Always `true`. */
  done: boolean;
};

/** How far a call reaches. Ordered: a later one includes the earlier. */
export type Effect = "read" | "write" | "execute" | "destructive";

/** A file or the like that comes with a result. */
export type Embedded = ({
  /** Where it is from. */
  uri: string;
  /** What it is. */
  mimeType?: string | null;
}) & ({
  text: string;
} | {
  blob: string;
});

/** Why a call did not succeed. Each code has a page in `docs/errors/`. */
export type ErrorCode = "INVALID_ARGS" | "INVALID_PATH" | "FILE_NOT_FOUND" | "PERMISSION_DENIED" | "TIMEOUT" | "EXECUTION_ERROR" | "TOOL_NOT_FOUND" | "FORBIDDEN" | "UNAUTHORIZED" | "NOT_FOUND" | "RATE_LIMITED" | "QUOTA_REACHED" | "UPSTREAM_ERROR" | "COMMAND_BLOCKED" | "NOT_TRUSTED" | "TOOL_HELD" | "NEEDS_LOGIN" | "URL_NOT_ALLOWED" | "ALREADY_EXISTS" | "IS_A_DIRECTORY" | "NOT_A_DIRECTORY" | "NOT_EMPTY" | "NO_MATCH" | "AMBIGUOUS_MATCH" | "STALE_FILE" | "BINARY_FILE" | "TOO_LARGE" | "RESOURCE_LIMIT" | "SANDBOX_UNAVAILABLE" | "UNAVAILABLE" | "NETWORK_ERROR" | "BUSY" | "REJECTED" | "APPROVAL_EXPIRED" | "CANCELLED" | "EXPIRED" | "CONFLICT" | "INTERRUPTED" | "OUTCOME_UNKNOWN" | "STORE_UNAVAILABLE" | "OUTPUT_INVALID" | "INTERNAL";

/** The request of a `gateway` tool. */
export type Execution = {
  /** Where to. */
  url: string;
  /** GET, POST, PUT, PATCH or DELETE. */
  method?: string;
  /** What to say beside it; `{{secret:NAME}}` stands for a secret. */
  headers?: Record<string, string>;
};

/** Who does the work. */
export type ExecutionType = "gateway" | "external" | "space" | "internal";

/** What fills a form in, or is the result. */
export type FillBody = {
  values: unknown;
};

/** Why a person should look twice at a change. */
export type Flag = "haft_files" | "git_hook" | "git_config_command" | "link_outside" | "set_uid" | "sensitive_name" | "runs_by_itself" | "ignore_rules" | "inside_git";

/** What a tool wants to know in the middle of its work. */
export type Form = {
  /** What the answer is known by. */
  name: string;
  /** What is asked, for people. */
  message: string;
  /** What fits: a flat object, whose fields are texts, numbers, yes or no, and choices. */
  schema: unknown;
};

/** What somebody outside made of a call: its result, or why there is none. */
export type GivenResult = {
  callId: string;
  result?: unknown;
  error?: OutsideFailure | null;
};

/** A yes to be given in advance. */
export type GrantBody = {
  /** The tool that may go on without asking. */
  tool: string;
  /** What it covers; whatever the tool does when absent. */
  bounds?: unknown;
  /** For whom: `{ kind, id }`. Oneself by default; for those who manage everybody's, anybody. */
  caller?: unknown;
  /** How long it lasts, such as `8h`; until it is revoked when absent. */
  for?: string | null;
  /** How often it can be used; without limit when absent. */
  uses?: number | null;
  /** The workspace that it counts in; that of the caller by default. */
  workspace?: string | null;
};

/** The id of a grant: `g_` and a UUIDv7. */
export type GrantId = string;

/** A result that another call gave: it was shortened there, and the whole of it is read there. */
export type HandedOn = {
  /** The call that gave it. */
  call: CallId;
  /** The tool of that call. */
  tool: string;
  /** Where it stands in the value, as a JSON Pointer. */
  at: string;
};

/** An upstream MCP server that is reached over HTTP. */
export type HttpServerFields = {
  /** Small letters, digits and `-`; its tools are called `mcp__NAME__TOOL`. */
  name: string;
  /** Always `http`. */
  transport?: string | null;
  /** Where it is. */
  url?: string | null;
  /** What is sent with every request; `{{secret:NAME}}` stands for a secret. */
  headers?: Record<string, string>;
  /** How people log in there, where it wants to know who asks. */
  oauth?: ServerLogin;
  /** The only tools that are used; all without it. */
  allowedTools?: Array<string> | null;
  /** Tools that are not used. */
  deniedTools?: Array<string>;
  /** How long it may be silent in the middle of a call, in milliseconds: 30000 without it. */
  timeout?: number | null;
  /** Whether it is used. */
  enabled?: boolean;
  /** Whether what it says of the effects of its tools is believed. */
  trusted?: boolean;
};

/** A picture that a model can look at. */
export type Image = {
  /** `image/png` and the like. */
  mimeType: string;
  /** The bytes in base64. */
  data: string;
};

/** One item of a caller's inbox. */
export type InboxItem = {
  /** Which one. */
  id: InboxItemId;
  /** What it is: `tool_result`. */
  kind: string;
  /** The call that it comes from. */
  callId?: CallId | null;
  /** What it says. A `tool_result` has `callId`, `tool`, `status`, `result` or `error`, and where they apply `runId` and `late`. */
  body: unknown;
  /** When it came. */
  createdAt: string;
  /** When its caller was done with it. */
  consumedAt?: string | null;
};

/** The id of an item: `in_` and a UUIDv7, so that they are in the order of their time. */
export type InboxItemId = string;

/** One page of a list. */
export type InboxItemPage = {
  /** What is on it. */
  items: Array<InboxItem>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** The rung of the fence around the processes that a call started. */
export type Isolation = "none" | "limits" | "landlock" | "namespaces";

/** A key to be made. */
export type KeyBody = {
  name: string;
  /** What it is for, such as `tools:execute`. */
  scopes: Array<string>;
  /** The workspace that it works in. */
  workspace?: string | null;
  /** Until when; until it is removed by default. */
  expiresAt?: string | null;
};

/** A key, shown once. */
export type KeyReply = {
  id: string;
  key: string;
};

/** A key as others see it. */
export type KeyView = {
  /** What it is found by. */
  id: string;
  /** The name that people gave it. */
  name: string;
  /** What it is for. */
  scopes: Array<string>;
  /** The workspace that it works in. */
  workspace?: string | null;
  /** Who made it; absent for the operator. */
  madeBy?: string | null;
  /** Since when. */
  createdAt: string;
  /** Until when. */
  expiresAt?: string | null;
  /** When it was last used, to the minute. */
  lastUsedAt?: string | null;
  /** Until when the secret counts that it had before. */
  oldSecretUntil?: string | null;
};

/** One page of a list. */
export type KeyViewPage = {
  /** What is on it. */
  items: Array<KeyView>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** A result that came after the end. */
export type LateView = {
  given: Submission;
  by: CallerRef;
  at: string;
};

/** Whose login is used at a server. */
export type LoginFor = "person" | "tenant";

/** A login that was begun. */
export type LoginLink = {
  /** Where the person goes. */
  url: string;
  /** Until when they may come back. */
  expiresAt: string;
};

/** Of which questions somebody hears by mail. */
export type MailWish = "off" | "mine" | "all";

/** Who asks. */
export type Me = {
  caller: CallerRef;
  tenant: TenantView;
  /** The tenants that one can change to. */
  tenants: Array<TenantView>;
  /** What one may do here. */
  permissions: Array<string>;
};

/** What may happen without asking. */
export type ModeWord = "none" | "safe" | "all";

/** A kind of question. */
export type NoticeKind = "approval" | "form" | "result";

/** Where a tenant is told of questions by HTTP. */
export type NoticeWebhook = {
  /** An address that takes what Slack's incoming webhooks take. `{{secret:NAME}}` stands for a secret of the tenant. */
  url: string;
  /** The name of the secret that each request is signed with. */
  secret?: string | null;
};

/** What a tenant is told. */
export type NoticesView = {
  /** What holds for people who have not chosen. */
  mail: MailWish;
  /** Where the tenant itself is told. */
  webhook?: NoticeWebhook | null;
  /** Of which kinds of questions people are told. */
  kinds: Array<NoticeKind>;
  channels: ChannelViews;
};

/** One of them. */
export type OfferView = {
  kind: AlwaysKind;
  bounds: unknown;
  /** How many of the last calls it would have covered, in words. */
  covered: string;
};

/** The yeses that can be made of one. */
export type OffersView = {
  /** Narrowest first; none where a yes cannot be remembered. */
  offers: Array<OfferView>;
  /** Why it cannot. */
  withheld?: string | null;
};

/** What happens to a question that nobody has answered in time. */
export type OnExpiry = "reject" | "escalate";

/** How a call ended, or where it stands while it waits. */
export type Outcome = ({
  /** Which call. */
  tool_call_id: CallId;
  /** The tool's own name, also when an alias was used. */
  tool: string;
  /** What was committed and what is left staged. */
  changes?: ChangeList | null;
  /** Whether `undo_call` can take back what the call did. */
  undoable: boolean;
  /** Who said yes; absent when nobody was asked because the call never got that far. */
  approved_by?: ApprovedBy | null;
  /** The grant that said yes. */
  grant?: GrantId | null;
  /** The rung of the processes that the call really started. */
  isolation: Isolation;
  /** How often the work was tried. */
  attempts: number;
  /** Whether the answer came from the cache. */
  cached: boolean;
  /** When the call came in. */
  started_at: string;
  /** When it ended; absent while it waits. */
  finished_at?: string | null;
  /** How long the work took, waiting for an answer not counted. */
  execution_time_ms: number;
}) & ({
  status: "success";
  /** What it gives back. */
  result: ToolOutput;
} | {
  status: "error";
  /** Why. */
  error: ToolError;
} | {
  status: "rejected";
  /** A sentence for the model. */
  reason: string;
  /** The person's own words. */
  user_message?: string | null;
  /** `REJECTED` or `APPROVAL_EXPIRED`. */
  error: ToolError;
} | {
  status: "pending";
  /** What it waits for. */
  pending: Pending;
} | {
  status: "cancelled";
  /** Says by what. */
  error: ToolError;
});

/** Why there is no result. */
export type OutsideFailure = {
  code?: string | null;
  message: string;
};

/** Of what somebody is told. */
export type OwnNoticesView = {
  /** Of which questions one hears by mail. */
  mail: MailWish;
  /** Whether one has chosen that, and not the tenant. */
  chosen: boolean;
  /** Where mail goes. */
  address: string;
  /** Whether there is a server that takes mail. */
  available: boolean;
};

/** Another name of a parameter, which is never listed. */
export type ParameterAlias = {
  /** What may be written. */
  name: string;
  /** The parameter that it means. */
  of: string;
  /** It is in seconds, the parameter in milliseconds. */
  inSeconds?: boolean;
};

/** A new password. */
export type PasswordBody = {
  password: string;
  /** The one before, where there is one. */
  oldPassword?: string | null;
};

/** Which paths; all when absent. */
export type PathsBody = {
  paths?: Array<string> | null;
};

/** A call that waits. */
export type Pending = {
  /** The call to answer; a child call when an edited input waits in its place. */
  pendingToolCallId: CallId;
  /** When an answer comes too late. */
  expiresAt: string;
};

/** When a person is asked before it runs. */
export type PermissionPolicy = "auto" | "always_ask";

/** Somebody to be added. */
export type PersonBody = {
  email: string;
  /** `owner`, `admin`, `member` or `viewer`. */
  role: string;
  /** The name that others read; the beginning of the address by default. */
  name?: string | null;
};

/** What shall be another. */
export type PersonChangeBody = {
  role?: string | null;
  name?: string | null;
};

/** What somebody wants for themselves. */
export type PersonNotices = {
  /** `None` for what the tenant has set. */
  mail?: MailWish | null;
};

export type PlainAnswer = "approve" | "reject";

/** A yes that names its call. */
export type PlainApproveBody = {
  tool_call_id: string;
  /** This input in the place of the one that is asked about. */
  modifiedArgs?: Record<string, unknown> | null;
};

/** A no that names its call. */
export type PlainRejectBody = {
  tool_call_id: string;
  message?: string | null;
};

/** Rules to be put in the place of others. */
export type PolicyBody = {
  /** Each as `{ tool?, bounds?, decision: allow|ask|deny, reason? }`; the first that matches decides. */
  rules: Array<unknown>;
  /** What may happen without asking. */
  autoApprove?: ModeWord;
  /** The version that they take the place of. */
  version: number;
};

/** Another input, to be looked at before it is approved. */
export type PreviewBody = {
  input: Record<string, unknown>;
};

export type Problem = {
  error: {
    code: string;
    message: string;
    recoverable: boolean;
    details?: Record<string, unknown>;
  };
};

/** How much of something a tenant may have, and has. */
export type QuotaView = {
  /** What it is about: `calls_per_day`, `people`, `keys`, `tools`, `open_questions` or `media` (bytes). */
  name: string;
  /** The most; absent where the operator set none. */
  most?: number | null;
  /** How much it is now. Calls are counted only where there is a quota, open questions up to 10,000. */
  used: number;
  /** Whether four fifths of it are used. */
  near: boolean;
};

/** One page of a list. */
export type QuotaViewPage = {
  /** What is on it. */
  items: Array<QuotaView>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** The one host that a call reaches. */
export type Reach = {
  /** Its name or address. */
  host: string;
  /** Whether the user has put it on the list of hosts that are read from unasked. */
  listed: boolean;
  /** Whether the call sends something there that may change it; bounds on hosts cover only what is read. */
  sends: boolean;
};

/** What a yes was about. Digests are SHA-256 of canonical JSON: keys in order, no spaces. */
export type Receipt = {
  /** Always `haft-receipt-1`. */
  format: string;
  /** The tenant. */
  tenant: string;
  /** The call. */
  callId: string;
  /** The tool. */
  tool: string;
  /** Who asked for the call. */
  caller: CallerRef;
  /** Who said yes; empty where a rule, a grant or the mode did. */
  answeredBy: Array<ReceiptAnswer>;
  /** What said yes: `user`, `auto` or `config`. */
  how: ApprovedBy;
  /** The rule or the grant, where one said yes. */
  rule?: string | null;
  /** The digest of the exact input. */
  inputDigest: string;
  /** How far the call reaches. */
  effect?: Effect | null;
  /** The digest of what the call would do, or did where nobody was asked. */
  effectDigest: string;
  /** The digest of all that the question showed, where somebody was asked. */
  questionDigest?: string | null;
  /** The version of the tenant's policy that held. */
  policyVersion?: number | null;
  /** The version of the tenant's approval rules that held. */
  rulesVersion?: number | null;
  /** When the yes counted. */
  at: string;
  /** The id of the key that signed this. */
  keyId: string;
  /** The Ed25519 signature of the canonical JSON of all the rest, in base64. */
  signature: string;
};

/** The yes of one person. */
export type ReceiptAnswer = {
  /** What kind of caller. */
  kind: CallerKind;
  /** Which one of that kind, within the tenant. */
  id: string;
  /** The name people see. */
  name: string;
  /** Through which door. */
  source: Source;
  /** When. */
  at: string;
};

/** What others check receipts by. */
export type ReceiptKey = {
  /** Always `Ed25519`. */
  algorithm: string;
  /** What receipts name it by. */
  keyId: string;
  /** The public key, in base64. */
  publicKey: string;
};

/** A no. */
export type RejectBody = {
  /** Why; whoever asked reads it. */
  message?: string | null;
};

/** Whether the yes to a call that could only be described may be remembered. */
export type Rememberable = "this_input" | {
  no: {
    /** Why, in words that follow "always is withheld:". */
    why: string;
  };
};

/** Rules to be tried. */
export type ReplayBody = {
  /** Each as `{ tool?, bounds?, decision: allow|ask|deny, reason? }`. */
  rules: Array<unknown>;
  /** What may happen without asking. */
  autoApprove?: ModeWord;
  /** On how many of the last calls; 50 by default, 500 at most. */
  last?: number | null;
};

/** What became of a result. */
export type Resolved = {
  callId: string;
  /** Always `resolved`. */
  status: string;
  /** `inline` to whoever waited, or to the caller's `inbox`. */
  delivered: string;
};

/** What became of one result or of several. */
export type ResolvedResults = Resolved | {
  items: Array<unknown>;
};

/** A window of a result. */
export type ResultWindow = {
  /** The text of the window; JSON when a pointer was given and it names more than a string. */
  content: string;
  /** Where to go on reading; absent at the end. */
  nextOffset?: number | null;
  /** How many characters there are. */
  total: number;
  /** The result was longer than haft keeps: this is only its beginning. */
  capped?: boolean;
};

/** One result, or several. */
export type Results = Array<GivenResult> | GivenResult;

/** What is wanted of a new secret. */
export type RotateBody = {
  /** How long the old secret counts beside the new one, such as `24h`; not at all by default. */
  grace?: string | null;
};

/** A secret to be set. */
export type SecretBody = {
  value: SecretText;
  /** Where it may be sent. Without it a secret keeps the hosts that it has; a new one is bound to the first tool's. */
  hosts?: Array<string>;
};

/** A value that no error repeats. */
export type SecretText = string;

/** A server to be added. */
export type ServerBody = HttpServerFields;

/** How people log in at a server. */
export type ServerLogin = {
  /** The client that was registered for haft by hand; without it haft describes or registers itself. */
  clientId?: string | null;
  /** Its secret, as `{{secret:NAME}}`. */
  clientSecret?: string | null;
  /** The scopes to ask for; what the server wants without them. */
  scopes?: Array<string>;
  /** Whether each person has a login of their own, or one is used for the whole tenant. */
  for?: LoginFor;
};

/** A session to be begun. */
export type SessionBody = {
  /** What people call it. */
  title?: string;
};

/** How long an address shall work. */
export type SignBody = {
  /** In seconds; an hour by default, seven days at most. */
  expiresIn?: number | null;
};

/** How somebody signs in. */
export type SignInBody = {
  /** A link that was printed or sent, or its code. */
  link?: string | null;
  /** A mail address. */
  email?: string | null;
  /** Its password. */
  password?: string | null;
  /** The tenant; the first one by default. */
  tenant?: string | null;
};

/** What the page keeps after signing in. */
export type SignInReply = {
  /** Sent as `X-CSRF-Token` with every change. */
  csrf: string;
  caller: CallerRef;
  tenant: TenantView;
};

/** A sign-in as its person sees it. */
export type SignInView = {
  /** What it is ended by. */
  id: string;
  /** The tenant that it looks at. */
  tenant: string;
  /** Since when. */
  since: string;
  /** Until when. */
  until: string;
  /** Whether it is the one that asks. */
  current: boolean;
};

/** One page of a list. */
export type SignInViewPage = {
  /** What is on it. */
  items: Array<SignInView>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** An address that anybody can open. */
export type SignedAddress = {
  url: string;
  /** Until when, in seconds since the epoch. */
  exp: number;
};

/** Through which door a call or an answer came in. */
export type Source = "cli" | "mcp" | "web" | "api" | "link" | "edit" | "house";

/** A call to be made. */
export type StartBody = {
  /** What the tool is given. */
  input?: Record<string, unknown>;
  /** How many seconds to wait for an answer from outside; 60 by default, 600 at most. */
  wait?: number | null;
  /** The workspace to work in; that of the key by default. */
  workspace?: string | null;
  /** The session that it belongs to. */
  session?: string | null;
  /** The run that it belongs to. */
  run?: string | null;
  /** The space that it belongs to. */
  space?: string | null;
  /** How long the work may take. */
  timeoutMs?: number | null;
  /** Whether to work anew, also where a cached result is still valid. */
  noCache?: boolean;
  /** Whether to answer as soon as the call has begun, with its id; it goes on by itself and waits for nobody. */
  detach?: boolean;
};

/** What somebody outside made of a call: `{"result": …}`, or `{"error": {"code"?, "message"}}`. */
export type Submission = {
  result: unknown;
} | {
  error: {
    /** What whoever tried it calls this failure. */
    code?: string | null;
    /** Why. */
    message: string;
  };
};

/** Which tenant to change to. */
export type TenantBody = {
  slug: string;
};

/** What a tenant wants to be told, and where. */
export type TenantNotices = {
  /** What holds for people who have not chosen. */
  mail?: MailWish;
  /** Where the tenant itself is told. */
  webhook?: NoticeWebhook | null;
  /** Of which kinds of questions people are told. */
  kinds?: Array<NoticeKind>;
};

/** For how many days a tenant keeps what is past, each from 1 to 3650. What is not set is kept as long as the operator says; nothing is kept longer. */
export type TenantRetention = {
  /** Ended calls, with their questions and events. */
  journalDays?: number | null;
  /** The whole of long results. */
  outputsDays?: number | null;
  /** What was uploaded; without it, until somebody removes it. */
  mediaDays?: number | null;
  /** Items of inboxes that were read; without it, for ever. */
  inboxDays?: number | null;
};

/** The settings of a tenant. What is not set has its default. */
export type TenantSettings = {
  /** After how many hours people must sign in again, from 1 to 720. */
  signInHours: number;
  /** After how many days a new key ends at the latest, from 1 to 3650; without it a key lasts until it is removed. */
  keyDays?: number | null;
  /** How long what is past is kept, where that is shorter than the operator keeps it. */
  retention?: TenantRetention;
};

/** The settings of a tenant. What is not set has its default. */
export type TenantSettingsBody = {
  /** After how many hours people must sign in again, from 1 to 720. */
  signInHours?: number;
  /** After how many days a new key ends at the latest, from 1 to 3650; without it a key lasts until it is removed. */
  keyDays?: number | null;
  /** How long what is past is kept, where that is shorter than the operator keeps it. */
  retention?: TenantRetention;
};

/** A tenant as others see it. */
export type TenantView = {
  /** What it is found by. */
  id: string;
  /** What it is called in addresses and on the command line. */
  slug: string;
  /** The name that people read. */
  name: string;
};

/** What is to be tried. */
export type TestBody = {
  /** `mail` (the default), to oneself, or `webhook`. */
  channel?: TestChannel;
};

export type TestChannel = "mail" | "webhook";

/** What was sent. */
export type TestReply = {
  channel: TestChannel;
  sent: boolean;
  /** The address that it went to. */
  to?: string | null;
};

/** What a caller learns about a call that did not succeed. */
export type ToolError = {
  /** Which failure. */
  code: ErrorCode;
  /** What was tried, on what, why it failed, what to do next. */
  message: string;
  /** Whether the same call may succeed later, unchanged. */
  recoverable: boolean;
  /** What kind of failure. */
  category: Category;
  /** Facts for programs: issues, nearest names, conflicting paths. */
  details?: Record<string, unknown>;
};

/** Where a tool comes from. */
export type ToolOrigin = "code" | "tenant" | "upstream" | "project";

/** What a tool gives back. */
export type ToolOutput = {
  /** Text for the model, cut to the limit. */
  content: string;
  /** Text for people who are asked for a yes, where it differs. */
  display_content?: string | null;
  /** The value, conforming to the output schema. */
  structured: unknown;
  /** Pictures. */
  images?: Array<Image>;
  /** Something to listen to. */
  audio?: Array<Audio>;
  /** Files and the like that come with it. */
  resources?: Array<Embedded>;
  /** Facts beside the value. */
  metadata: Record<string, unknown>;
  /** The result of another call that this one only hands on. */
  handed_on?: HandedOn | null;
};

/** A tool as it is shown. One that somebody has saved has the fields that they wrote, too. */
export type ToolView = {
  slug: string;
  /** Whether the caller can call it. */
  usable: boolean;
  /** What its definition costs a model, in tokens. */
  tokens: number;
  /** Whether models are shown it: `always`, `never`, `fits` or `deferred`. */
  shown: string;
  /** The name it is called by. */
  name: string;
  /** The name people read. */
  title: string;
  /** When to use it, and when not. */
  description: string;
  /** What it belongs to. */
  category: string;
  /** What goes in. */
  inputSchema: unknown;
  /** What comes out. */
  outputSchema: unknown;
  /** An input that shows how it is used; where there is none, the required fields are enough. */
  example?: unknown;
  /** The worst that any input can do. */
  effect: Effect;
  /** What a caller needs to use it, such as `workspace.read`. */
  permission: string;
  /** Permanent other names, never listed to models. */
  aliases: Array<string>;
  /** Names that it had before, never listed to models. */
  deprecatedAliases?: Array<DeprecatedAlias>;
  /** Other names of parameters. */
  parameterAliases?: Array<ParameterAlias>;
  /** How long one call may work. */
  timeoutMs: number;
  /** When a person is asked. */
  asks: Asks;
  /** Whether acting twice is the same as acting once. */
  idempotent?: boolean;
  /** Whether it may deal with something beyond this machine. */
  openWorld?: boolean;
  /** Where it comes from. */
  origin: ToolOrigin;
  /** What the tenant's own row is: `tenant_custom` or `system_override`; `system` where it has none. */
  kind: string;
  /** Whether it can be used. */
  enabled: boolean;
  /** Whether calls are shown in the space where they happen, where that was changed. */
  visible?: boolean | null;
  /** How a result is shown, where that was changed. */
  outputSections?: unknown;
};

/** One page of a list. */
export type ToolViewPage = {
  /** What is on it. */
  items: Array<ToolView>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** What a call tries. It is recorded like any other, and counted nowhere. */
export type Trial = "saved" | "draft";

/** What a tool is tried with. */
export type TrialBody = {
  input?: Record<string, unknown>;
  /** A tool as it would be saved; it is tried in the place of the saved one, and saved nowhere. */
  draft?: unknown;
};

/** One save of a tool. */
export type VersionView = {
  /** Its number, from 1. */
  version: number;
  /** The hash of what was saved. */
  hash: string;
  /** Who saved it. */
  savedBy: string;
  /** When. */
  savedAt: string;
};

/** One page of a list. */
export type VersionViewPage = {
  /** What is on it. */
  items: Array<VersionView>;
  /** What leads to the next one; absent on the last. */
  next?: string | null;
};

/** What a call is part of, and for whom it is made. */
export type Via = {
  /** The session. */
  session?: string | null;
  /** The run of an agent. */
  run?: string | null;
  /** The agent. */
  agent?: string | null;
  /** The space. */
  space?: string | null;
  /** The people it is made for. */
  onBehalfOf?: Array<CallerRef>;
  /** The calls that led to it by a request over HTTP, the first one first. */
  calls?: Array<string>;
  /** What it only tries; `None` where it is meant. */
  trial?: Trial | null;
};

/** What a call waits for. */
export type WaitingQuestion = {
  kind: string;
  number: number;
  expiresAt: string;
  reason: string;
};

/** A workspace to be made. */
export type WorkspaceBody = {
  name: string;
};

/** A workspace of a tenant. Where the owner works in a folder, that is the folder's path. */
export type WorkspaceId = string;

/** A rule as it is written. */
export type WrittenApprovalRule = {
  /** For which tool; every tool when absent. */
  tool?: string | null;
  /** For calls that touch these, as in a rule of the policy; for all calls of the tool when absent. */
  bounds?: unknown;
  /** Why, for whoever reads the card. */
  reason?: string | null;
  /** Who may answer; everybody with `approvals.team.decide` when absent. */
  approvers?: Approvers | null;
  /** How many of them have to say yes; 1 when absent. One no is enough. */
  count?: number | null;
  /** Whether whoever asked, by whatever key or program, may not answer. */
  notTheAuthor: boolean;
  /** After how long others may answer too, such as `30m`, `8h` or `2d`. */
  escalateAfter?: string | null;
  /** Who those are. */
  escalateTo?: Approvers | null;
  /** What happens when nobody has answered in time; `reject` when absent. It is never a yes. */
  onExpiry?: OnExpiry | null;
  /** Whether a yes counts only from somebody who is signed in, not by a key, a program or a link in a mail. */
  signIn?: boolean;
};

/** A rule as it is written. */
export type WrittenApprovalRuleBody = {
  /** For which tool; every tool when absent. */
  tool?: string | null;
  /** For calls that touch these, as in a rule of the policy; for all calls of the tool when absent. */
  bounds?: unknown;
  /** Why, for whoever reads the card. */
  reason?: string | null;
  /** Who may answer; everybody with `approvals.team.decide` when absent. */
  approvers?: Approvers | null;
  /** How many of them have to say yes; 1 when absent. One no is enough. */
  count?: number | null;
  /** Whether whoever asked, by whatever key or program, may not answer. */
  notTheAuthor?: boolean;
  /** After how long others may answer too, such as `30m`, `8h` or `2d`. */
  escalateAfter?: string | null;
  /** Who those are. */
  escalateTo?: Approvers | null;
  /** What happens when nobody has answered in time; `reject` when absent. It is never a yes. */
  onExpiry?: OnExpiry | null;
  /** Whether a yes counts only from somebody who is signed in, not by a key, a program or a link in a mail. */
  signIn?: boolean;
};

/** Every route, by its method and path. */
export interface Routes {
  /** Says that the process lives. */
  "GET /healthz": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Says that the database answers. */
  "GET /readyz": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Numbers for Prometheus, on this machine and for its keys. */
  "GET /metrics": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Describes every route. */
  "GET /openapi.json": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** The page of this server. */
  "GET /": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** The page to sign in. */
  "GET /sign-in": {
    path: undefined;
    query: {
      /** The page here that is shown then. */
      to?: string;
      /** The tenant; the first one by default. */
      tenant?: string;
    };
    body: undefined;
    reply: unknown;
  };
  /** Signs in by the form that `haft open` makes. */
  "POST /sign-in": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** What the page to sign in does. */
  "GET /sign-in.js": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Goes to a provider to sign in there. */
  "GET /sign-in/oidc/{provider}": {
    path: {
      provider: string;
    };
    query: {
      /** The page here that is shown then. */
      to?: string;
      /** The tenant; the first one by default. */
      tenant?: string;
    };
    body: undefined;
    reply: unknown;
  };
  /** Comes back from a provider. */
  "GET /sign-in/oidc/{provider}/back": {
    path: {
      provider: string;
    };
    query: {
      state?: string;
      code?: string;
      iss?: string;
      error?: string;
      error_description?: string;
    };
    body: undefined;
    reply: unknown;
  };
  /** Signs in, by a link or a password. */
  "POST /api/sign-in": {
    path: undefined;
    query: undefined;
    body: SignInBody;
    reply: SignInReply;
  };
  /** Signs out. */
  "POST /api/sign-out": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Says who asks, where, and what they may do. */
  "GET /api/me": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: Me;
  };
  /** Changes to another of one's tenants. */
  "POST /api/me/tenant": {
    path: undefined;
    query: undefined;
    body: TenantBody;
    reply: Done;
  };
  /** Sets one's password. */
  "POST /api/me/password": {
    path: undefined;
    query: undefined;
    body: PasswordBody;
    reply: Done;
  };
  /** Lists where one is signed in. */
  "GET /api/me/sign-ins": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: SignInViewPage;
  };
  /** Ends one of one's sign-ins. */
  "DELETE /api/me/sign-ins/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Says who gives tokens for this server. */
  "GET /.well-known/oauth-protected-resource": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Says who gives tokens for this server. */
  "GET /.well-known/oauth-protected-resource/mcp": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Says how tokens are given. */
  "GET /.well-known/oauth-authorization-server": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Registers a program. */
  "POST /oauth/register": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** The page on which a person lets a program in. */
  "GET /oauth/authorize": {
    path: undefined;
    query: {
      response_type?: string;
      client_id?: string;
      redirect_uri?: string;
      code_challenge?: string;
      code_challenge_method?: string;
      state?: string;
      scope?: string;
      resource?: string;
    };
    body: undefined;
    reply: unknown;
  };
  /** What that page does. */
  "GET /oauth/consent.js": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Lets a program in, or refuses it. */
  "POST /api/oauth/consents": {
    path: undefined;
    query: undefined;
    body: ConsentBody;
    reply: ConsentReply;
  };
  /** Gives tokens for a code, or new ones for old ones. */
  "POST /oauth/token": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Ends a program's tokens. */
  "POST /oauth/revoke": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Lists the programs that one let in. */
  "GET /api/me/programs": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: ConsentViewPage;
  };
  /** Lets a program in no longer. */
  "DELETE /api/me/programs/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Gives codes to a program on a device. */
  "POST /oauth/device": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** The page on which somebody types the code of a device. */
  "GET /device": {
    path: undefined;
    query: {
      /** The code that the device shows. */
      code?: string;
      /** What somebody has just answered. */
      answered?: string;
    };
    body: undefined;
    reply: unknown;
  };
  /** Lets the program on a device in, or refuses it. */
  "POST /api/oauth/devices": {
    path: undefined;
    query: undefined;
    body: DeviceAnswerBody;
    reply: ConsentReply;
  };
  /** Lists keys. */
  "GET /api/keys": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: KeyViewPage;
  };
  /** Makes a key, shown once. */
  "POST /api/keys": {
    path: undefined;
    query: undefined;
    body: KeyBody;
    reply: KeyReply;
  };
  /** Gives a key another secret, shown once. */
  "POST /api/keys/{id}/rotate": {
    path: {
      id: string;
    };
    query: undefined;
    body: RotateBody;
    reply: KeyReply;
  };
  /** Removes a key. */
  "DELETE /api/keys/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Lists roles and what each may do. */
  "GET /api/roles": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: AnyValuePage;
  };
  /** Lists the people of the tenant, for those who are one. */
  "GET /api/people": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: AnyValuePage;
  };
  /** Adds somebody, with a link to sign in by once. */
  "POST /api/people": {
    path: undefined;
    query: undefined;
    body: PersonBody;
    reply: unknown;
  };
  /** Changes somebody's role or name. */
  "PATCH /api/people/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: PersonChangeBody;
    reply: unknown;
  };
  /** Takes somebody out, with their keys. */
  "DELETE /api/people/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Lists one's own tenants. */
  "GET /api/tenants": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: AnyValuePage;
  };
  /** Shows one of one's own tenants. */
  "GET /api/tenants/{slug}": {
    path: {
      slug: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Shows the tenant's settings. */
  "GET /api/settings": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: TenantSettings;
  };
  /** Replaces the tenant's settings. */
  "PUT /api/settings": {
    path: undefined;
    query: undefined;
    body: TenantSettingsBody;
    reply: TenantSettings;
  };
  /** Shows how much the tenant may have, and has. */
  "GET /api/quotas": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: QuotaViewPage;
  };
  /** Lists administrative acts, newest first; as JSON Lines with `format=jsonl`. */
  "GET /api/audit": {
    path: undefined;
    query: {
      /** Acts of this kind, such as `key.added`. */
      action?: string;
      /** By whom, as `person:ID` or `key:ID`. */
      by?: string;
      /** On what, as `kind:id`. */
      on?: string;
      /** Not before this time. */
      since?: string;
      /** How many, 50 by default and 200 at most. */
      limit?: number;
      /** What the page before gave as `next`. */
      after?: string;
      /** `json`, or `jsonl` for one row a line. */
      format?: string;
    };
    body: undefined;
    reply: AuditViewPage;
  };
  /** Lists workspaces. */
  "GET /api/workspaces": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: AnyValuePage;
  };
  /** Makes a workspace that haft keeps. */
  "POST /api/workspaces": {
    path: undefined;
    query: undefined;
    body: WorkspaceBody;
    reply: unknown;
  };
  /** Takes a workspace off the list. */
  "DELETE /api/workspaces/{name}": {
    path: {
      name: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Lists secrets by name and host. */
  "GET /api/secrets": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: AnyValuePage;
  };
  /** Sets a secret. */
  "PUT /api/secrets/{name}": {
    path: {
      name: string;
    };
    query: undefined;
    body: SecretBody;
    reply: unknown;
  };
  /** Removes a secret. */
  "DELETE /api/secrets/{name}": {
    path: {
      name: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Uploads the body. */
  "POST /api/media": {
    path: undefined;
    query: {
      /** The name of the file. */
      name?: string;
    };
    body: undefined;
    reply: unknown;
  };
  /** Gives what was uploaded, also by a signed address. */
  "GET /api/media/{id}": {
    path: {
      id: string;
    };
    query: {
      sig?: string;
      exp?: string;
    };
    body: undefined;
    reply: unknown;
  };
  /** Deletes what was uploaded. */
  "DELETE /api/media/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Makes an address that anybody can open. */
  "POST /api/media/{id}/sign": {
    path: {
      id: string;
    };
    query: undefined;
    body: SignBody;
    reply: SignedAddress;
  };
  /** Begins a session. */
  "POST /api/sessions": {
    path: undefined;
    query: undefined;
    body: SessionBody;
    reply: unknown;
  };
  /** Lists sessions, newest first. */
  "GET /api/sessions": {
    path: undefined;
    query: {
      /** How many, 50 by default and 200 at most. */
      limit?: number;
      /** What the page before gave as `next`. */
      after?: string;
    };
    body: undefined;
    reply: AnyValuePage;
  };
  /** Shows a session and where it stands. */
  "GET /api/sessions/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Tells a session's calls. */
  "GET /api/sessions/{id}/events": {
    path: {
      id: string;
    };
    query: {
      /** Only these names, parted by commas; `tool.*` means all that begin so. */
      types?: string;
      /** `canonical`, `spaces`, `session` or `agent`. */
      profile?: string;
      /** Only events of these calls, parted by commas. */
      calls?: string;
      /** Only events of these sessions, parted by commas. */
      sessions?: string;
      /** Only events of these spaces, parted by commas. */
      spaces?: string;
      /** Only events of these agents, parted by commas. */
      agents?: string;
      /** After so many seconds the stream ends, and tells how to go on. */
      maxAge?: number;
    };
    body: undefined;
    reply: unknown;
  };
  /** Lists the tools there are. */
  "GET /api/tools": {
    path: undefined;
    query: {
      limit?: number;
      after?: string;
      /** Only tools that come from here: `code`, `tenant`, `upstream` or `project`. */
      origin?: string;
      /** Only tools of this kind: `system`, `system_override` or `tenant_custom`. */
      kind?: string;
      /** Only tools of this category. */
      category?: string;
      /** Only tools whose name or description has this text. */
      q?: string;
      /** Only tools that are on, or only those that are off. */
      enabled?: boolean;
      /** The tools as they are in this workspace; that of the key by default. */
      workspace?: string;
    };
    body: undefined;
    reply: ToolViewPage;
  };
  /** Makes a tool. */
  "POST /api/tools": {
    path: undefined;
    query: undefined;
    body: AuthoredTool;
    reply: ToolView;
  };
  /** Shows a tool. */
  "GET /api/tools/{slug}": {
    path: {
      slug: string;
    };
    query: {
      /** As it is in this workspace; that of the key by default. */
      workspace?: string;
    };
    body: undefined;
    reply: ToolView;
  };
  /** Changes a tool. */
  "PATCH /api/tools/{slug}": {
    path: {
      slug: string;
    };
    query: undefined;
    body: Record<string, unknown>;
    reply: ToolView;
  };
  /** Deletes a tool. */
  "DELETE /api/tools/{slug}": {
    path: {
      slug: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Lists its saves. */
  "GET /api/tools/{slug}/versions": {
    path: {
      slug: string;
    };
    query: undefined;
    body: undefined;
    reply: VersionViewPage;
  };
  /** Makes an old version the newest. */
  "POST /api/tools/{slug}/versions/{n}/restore": {
    path: {
      slug: string;
      n: string;
    };
    query: undefined;
    body: undefined;
    reply: ToolView;
  };
  /** Tries a tool. */
  "POST /api/tools/{slug}/test": {
    path: {
      slug: string;
    };
    query: undefined;
    body: TrialBody;
    reply: Outcome;
  };
  /** Tries a tool and tells what happens. */
  "POST /api/tools/{slug}/test/stream": {
    path: {
      slug: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Lists upstream MCP servers. */
  "GET /api/servers": {
    path: undefined;
    query: {
      /** How many, 50 by default and 200 at most. */
      limit?: number;
      /** What the page before gave as `next`. */
      after?: string;
    };
    body: undefined;
    reply: AnyValuePage;
  };
  /** Adds an upstream MCP server. */
  "POST /api/servers": {
    path: undefined;
    query: undefined;
    body: ServerBody;
    reply: unknown;
  };
  /** Shows a server and its tools. */
  "GET /api/servers/{name}": {
    path: {
      name: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Changes a server. */
  "PATCH /api/servers/{name}": {
    path: {
      name: string;
    };
    query: undefined;
    body: Record<string, unknown>;
    reply: unknown;
  };
  /** Removes a server. */
  "DELETE /api/servers/{name}": {
    path: {
      name: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Asks a server for its tools now. */
  "POST /api/servers/{name}/refresh": {
    path: {
      name: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Accepts what a server says of its tools now. */
  "POST /api/servers/{name}/accept": {
    path: {
      name: string;
    };
    query: undefined;
    body: AcceptBody;
    reply: unknown;
  };
  /** Begins a login at a server. */
  "POST /api/servers/{name}/login": {
    path: {
      name: string;
    };
    query: undefined;
    body: undefined;
    reply: LoginLink;
  };
  /** Gives a login at a server up. */
  "DELETE /api/servers/{name}/login": {
    path: {
      name: string;
    };
    query: undefined;
    body: undefined;
    reply: Done;
  };
  /** Ends a login at a server. */
  "GET /servers/login": {
    path: undefined;
    query: {
      code?: string;
      state?: string;
      iss?: string;
      error?: string;
    };
    body: undefined;
    reply: unknown;
  };
  /** Says what haft is to other servers. */
  "GET /servers/client.json": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Lists its calls. */
  "GET /api/tools/{slug}/runs": {
    path: {
      slug: string;
    };
    query: {
      /** How many, 50 by default and 200 at most. */
      limit?: number;
      /** What the page before gave as `next`. */
      after?: string;
    };
    body: undefined;
    reply: AnyValuePage;
  };
  /** Counts calls by tool. */
  "GET /api/metrics/tools": {
    path: undefined;
    query: {
      /** Only calls since the day of this time (UTC). */
      since?: string;
    };
    body: undefined;
    reply: AnyValuePage;
  };
  /** Shows the rules in force. */
  "GET /api/policy": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Puts other rules in force. */
  "PUT /api/policy": {
    path: undefined;
    query: undefined;
    body: PolicyBody;
    reply: unknown;
  };
  /** Tries rules on calls. */
  "POST /api/policy/replay": {
    path: undefined;
    query: undefined;
    body: ReplayBody;
    reply: unknown;
  };
  /** Lists grants. */
  "GET /api/grants": {
    path: undefined;
    query: {
      limit?: number;
      after?: string;
      /** Only grants for this tool. */
      tool?: string;
      /** Whether those that are revoked, expired or used up are listed, too. */
      all?: boolean;
    };
    body: undefined;
    reply: AnyValuePage;
  };
  /** Says yes in advance. */
  "POST /api/grants": {
    path: undefined;
    query: undefined;
    body: GrantBody;
    reply: unknown;
  };
  /** Shows a grant. */
  "GET /api/grants/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Revokes a grant. */
  "DELETE /api/grants/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Calls a tool. */
  "POST /api/tools/{slug}/calls": {
    path: {
      slug: string;
    };
    query: undefined;
    body: StartBody;
    reply: Outcome;
  };
  /** Lists calls, newest first. */
  "GET /api/calls": {
    path: undefined;
    query: {
      limit?: number;
      after?: string;
      tool?: string;
      status?: string;
      /** Only calls through this door: `api`, `mcp`, `cli`, `web`, … */
      source?: string;
      workspace?: string;
      session?: string;
      agent?: string;
      space?: string;
      /** Only calls since this time. */
      since?: string;
      /** Whether each is told with its input, its outcome and what it did with changes. */
      details?: boolean;
    };
    body: undefined;
    reply: CallItemPage;
  };
  /** Shows a call. */
  "GET /api/calls/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: CallView;
  };
  /** Reads its result. */
  "GET /api/calls/{id}/output": {
    path: {
      id: string;
    };
    query: {
      /** The first character, from 0. */
      offset?: number;
      /** So many characters at most; 20,000 by default, 30,000 at most. */
      limit?: number;
      /** A JSON Pointer into the value; without it the text is read. */
      pointer?: string;
    };
    body: undefined;
    reply: ResultWindow;
  };
  /** Stops a call. */
  "POST /api/calls/{id}/cancel": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Outcome;
  };
  /** Tells all about a call. */
  "GET /api/calls/{id}/story": {
    path: {
      id: string;
    };
    query: {
      /** Whether to leave out what happened to it, which may be long. */
      brief?: boolean;
    };
    body: undefined;
    reply: unknown;
  };
  /** Waits for the end of a call. */
  "GET /api/calls/{id}/outcome": {
    path: {
      id: string;
    };
    query: {
      /** How many seconds to wait for the end; 0 by default, 600 at most. */
      wait?: number;
      /** Whether to give the whole of a long result. */
      whole?: boolean;
    };
    body: undefined;
    reply: Outcome;
  };
  /** What a yes was about, signed. */
  "GET /api/calls/{id}/receipt": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Receipt;
  };
  /** The public key that receipts are checked by. */
  "GET /api/receipts/key": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: ReceiptKey;
  };
  /** Shows its changes. */
  "GET /api/calls/{id}/changes": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: ChangesView;
  };
  /** Applies its changes. */
  "POST /api/calls/{id}/commit": {
    path: {
      id: string;
    };
    query: undefined;
    body: PathsBody;
    reply: Outcome;
  };
  /** Drops them. */
  "POST /api/calls/{id}/discard": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Outcome;
  };
  /** Takes them back. */
  "POST /api/calls/{id}/undo": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Outcome;
  };
  /** Brings them back. */
  "POST /api/calls/{id}/redo": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: Outcome;
  };
  /** Makes several calls. */
  "POST /api/calls/batch": {
    path: undefined;
    query: undefined;
    body: BatchBody;
    reply: AnyValuePage;
  };
  /** Takes results of a run's calls. */
  "POST /api/runs/{runId}/tool-results": {
    path: {
      runId: string;
    };
    query: undefined;
    body: Results;
    reply: ResolvedResults;
  };
  /** Takes results of calls of any runs. */
  "POST /api/tool-results": {
    path: undefined;
    query: undefined;
    body: Results;
    reply: ResolvedResults;
  };
  /** Lists one's own inbox, newest first. */
  "GET /api/inbox": {
    path: undefined;
    query: {
      /** `open` (the default) or `consumed`. */
      state?: string;
      limit?: number;
      after?: string;
    };
    body: undefined;
    reply: InboxItemPage;
  };
  /** Puts an item of one's inbox away. */
  "POST /api/inbox/{id}/consume": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: InboxItem;
  };
  /** Tells what happens. */
  "GET /api/events": {
    path: undefined;
    query: {
      /** Only these names, parted by commas; `tool.*` means all that begin so. */
      types?: string;
      /** `canonical`, `spaces`, `session` or `agent`. */
      profile?: string;
      /** Only events of these calls, parted by commas. */
      calls?: string;
      /** Only events of these sessions, parted by commas. */
      sessions?: string;
      /** Only events of these spaces, parted by commas. */
      spaces?: string;
      /** Only events of these agents, parted by commas. */
      agents?: string;
      /** After so many seconds the stream ends, and tells how to go on. */
      maxAge?: number;
    };
    body: undefined;
    reply: unknown;
  };
  /** Tells a call. */
  "GET /api/calls/{id}/events": {
    path: {
      id: string;
    };
    query: {
      /** Only these names, parted by commas; `tool.*` means all that begin so. */
      types?: string;
      /** `canonical`, `spaces`, `session` or `agent`. */
      profile?: string;
      /** Only events of these calls, parted by commas. */
      calls?: string;
      /** Only events of these sessions, parted by commas. */
      sessions?: string;
      /** Only events of these spaces, parted by commas. */
      spaces?: string;
      /** Only events of these agents, parted by commas. */
      agents?: string;
      /** After so many seconds the stream ends, and tells how to go on. */
      maxAge?: number;
    };
    body: undefined;
    reply: unknown;
  };
  /** Tells a run from its beginning. */
  "GET /api/runs/{runId}/events": {
    path: {
      runId: string;
    };
    query: {
      /** Only these names, parted by commas; `tool.*` means all that begin so. */
      types?: string;
      /** `canonical`, `spaces`, `session` or `agent`. */
      profile?: string;
      /** Only events of these calls, parted by commas. */
      calls?: string;
      /** Only events of these sessions, parted by commas. */
      sessions?: string;
      /** Only events of these spaces, parted by commas. */
      spaces?: string;
      /** Only events of these agents, parted by commas. */
      agents?: string;
      /** After so many seconds the stream ends, and tells how to go on. */
      maxAge?: number;
    };
    body: undefined;
    reply: unknown;
  };
  /** Lists what is asked. */
  "GET /api/approvals": {
    path: undefined;
    query: {
      limit?: number;
      after?: string;
      /** `open` (the default) or `answered`. */
      state?: string;
      /** Only `approval`, `form` or `result`. */
      kind?: string;
      /** Only those of one's own calls. */
      mine?: boolean;
    };
    body: undefined;
    reply: ApprovalCardPage;
  };
  /** Shows a question. */
  "GET /api/approvals/{id}": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: ApprovalCard;
  };
  /** Answers several. */
  "POST /api/approvals/answer": {
    path: undefined;
    query: undefined;
    body: AnswerAllBody;
    reply: AnyValuePage;
  };
  /** Shows what another input would do. */
  "POST /api/approvals/{id}/preview": {
    path: {
      id: string;
    };
    query: undefined;
    body: PreviewBody;
    reply: ApprovalCard;
  };
  /** Says yes. */
  "POST /api/approvals/{id}/approve": {
    path: {
      id: string;
    };
    query: undefined;
    body: ApproveBody;
    reply: AnswerReply;
  };
  /** Says no. */
  "POST /api/approvals/{id}/reject": {
    path: {
      id: string;
    };
    query: undefined;
    body: RejectBody;
    reply: AnswerReply;
  };
  /** Lists who has agreed. */
  "GET /api/approvals/{id}/agreements": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: AgreementViewPage;
  };
  /** Fills in a form, or gives a result. */
  "POST /api/approvals/{id}/fill": {
    path: {
      id: string;
    };
    query: undefined;
    body: FillBody;
    reply: AnswerReply;
  };
  /** Says yes to a call. */
  "POST /approve": {
    path: undefined;
    query: undefined;
    body: PlainApproveBody;
    reply: AnswerReply;
  };
  /** Says no to a call. */
  "POST /reject": {
    path: undefined;
    query: undefined;
    body: PlainRejectBody;
    reply: AnswerReply;
  };
  /** Shows how a yes can be remembered. */
  "GET /api/approvals/{id}/offers": {
    path: {
      id: string;
    };
    query: undefined;
    body: undefined;
    reply: OffersView;
  };
  /** Shows who decides about what. */
  "GET /api/approval-rules": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: ApprovalRulesView;
  };
  /** Changes who decides about what. */
  "PUT /api/approval-rules": {
    path: undefined;
    query: undefined;
    body: ApprovalRulesBodyBody;
    reply: ApprovalRulesView;
  };
  /** Shows of what the tenant is told, and how that went. */
  "GET /api/notices": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: NoticesView;
  };
  /** Changes of what the tenant is told. */
  "PUT /api/notices": {
    path: undefined;
    query: undefined;
    body: TenantNotices;
    reply: NoticesView;
  };
  /** Sends a notice to try it. */
  "POST /api/notices/test": {
    path: undefined;
    query: undefined;
    body: TestBody;
    reply: TestReply;
  };
  /** Shows of what one is told oneself. */
  "GET /api/me/notices": {
    path: undefined;
    query: undefined;
    body: undefined;
    reply: OwnNoticesView;
  };
  /** Changes of what one is told oneself. */
  "PUT /api/me/notices": {
    path: undefined;
    query: undefined;
    body: PersonNotices;
    reply: OwnNoticesView;
  };
  /** Shows what somebody is asked by a link. */
  "GET /a/{token}": {
    path: {
      token: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Chooses an answer, which decides nothing yet. */
  "POST /a/{token}": {
    path: {
      token: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
  /** Confirms the answer that was chosen. */
  "POST /a/{token}/confirm": {
    path: {
      token: string;
    };
    query: undefined;
    body: undefined;
    reply: unknown;
  };
}

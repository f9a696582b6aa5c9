//! What a tool is, and the life of one call.

mod alias;
mod always;
mod batch;
mod bounds;
mod cache;
mod call;
mod caller;
mod changes;
mod doors;
mod effect;
mod error;
mod event;
mod export;
mod grant;
mod issues;
mod log;
mod nearest;
mod outcome;
mod pipeline;
mod policy;
mod ran;
mod redact;
mod registry;
mod replay;
mod resume;
mod retry;
mod schema;
mod shorten;
mod signature;
mod stage;
mod tool;
pub mod tools;
mod unfinished;
mod work;

pub use alias::{CalledAs, DeprecatedAlias};
pub use always::{Breadth, Offer, Withheld};
pub use batch::Wish;
pub use bounds::{Bounds, BoundsError, Miss, Missed, Seen, WrittenBounds, host_matches};
pub use call::{AutoApprove, CallId, CallRequest, Listener};
pub use caller::{Caller, Scope, Source, TenantId};
pub use changes::{Change, ChangeKind, ChangeList, ChangeState, Direction, Flag, Turn};
pub use doors::{
    Answer, AnswerReceipt, Answered, CallRecord, CallState, Catalog, Delivery, Entry, Evidence, Guard, Journal,
    Opening, Question, QuestionAndAnswer, Questions, Recovered, Workbench,
};
pub use effect::{Effect, Isolation};
pub use error::{Category, ErrorCode, ToolError};
pub use event::{CallEvent, Stream};
pub use export::{annotations, to_anthropic, to_mcp, to_openai};
pub use grant::{Grant, GrantId, Standing};
pub use nearest::nearest;
pub use outcome::{ApprovedBy, End, Image, Outcome, Pending, ToolOutput};
pub use pipeline::{Doors, Pipeline};
pub use policy::{Case, Decision, Policy, Rule, Step, Verdict, decide, explain};
pub use ran::{CutShort, Described, Lasting, Ran, Reach};
pub use redact::Redactor;
pub use registry::{RegisteredTool, Registry, RegistryError, Shape};
pub use replay::{Past, Replay, Unjudged, Was};
pub use resume::Reply;
pub use schema::faults_of_input;
pub use signature::Signature;
pub use tool::{AnyTool, Asks, Output, Prepared, Stamp, Tool, ToolCtx, ToolSpec, typed};
pub use work::Limits;

//! The contract every tool meets, whether written in Rust, fetched from elsewhere or authored by a tenant.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    Audio, CallId, Caller, ChangeList, DeprecatedAlias, Described, Effect, Embedded, ErrorCode, Form, FormAnswer,
    HandedOn, Image, Isolation, ParameterAlias, PartialWork, ProgressPart, Ran, Scope, Source, Stream, Structured,
    ToolError, ToolOutput, Turn, form_session::FormRequest, schema,
};

/// What a tool is, as data: everything a list, a form or a model needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// The name it is called by.
    pub name: String,
    /// The name people read.
    pub title: String,
    /// When to use it, and when not.
    pub description: String,
    /// What it belongs to.
    pub category: String,
    /// What goes in.
    pub input_schema: Value,
    /// What comes out.
    pub output_schema: Value,
    /// An input that shows how it is used; where there is none, the required fields are enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// The worst that any input can do.
    pub effect: Effect,
    /// What a caller needs to use it, such as `workspace.read`.
    pub permission: String,
    /// Permanent other names, never listed to models.
    pub aliases: Vec<String>,
    /// Names that it had before, never listed to models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deprecated_aliases: Vec<DeprecatedAlias>,
    /// Other names of parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameter_aliases: Vec<ParameterAlias>,
    /// How long one call may work.
    #[serde(rename = "timeoutMs", serialize_with = "as_millis", deserialize_with = "of_millis")]
    #[schemars(with = "u64")]
    pub timeout: Duration,
    /// When a person is asked.
    pub asks: Asks,
    /// Whether acting twice is the same as acting once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// Whether it may deal with something beyond this machine.
    #[serde(rename = "openWorld", default, skip_serializing_if = "std::ops::Not::not")]
    pub open_world: bool,
}

impl ToolSpec {
    /// The old name, when this is one.
    pub fn deprecated_alias(&self, name: &str) -> Option<&DeprecatedAlias> {
        self.deprecated_aliases.iter().find(|alias| alias.name == name)
    }

    /// What a parameter is really called when the tool is called by this name and the parameter has another name, and
    /// its value under that.
    pub(crate) fn own_parameter(&self, tool: &str, parameter: &str, value: &Value) -> Option<(String, Value)> {
        if let Some(own) = self.deprecated_alias(tool).and_then(|alias| alias.parameters.get(parameter)) {
            return Some((own.clone(), value.clone()));
        }
        let alias = self.parameter_aliases.iter().find(|alias| alias.name == parameter)?;
        Some((alias.of.to_string(), alias.translated(value.clone())))
    }
}

fn as_millis<S: serde::Serializer>(limit: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(limit.as_millis())
}

fn of_millis<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

/// When a person is asked, beside what a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// What the call does decides.
    ByEffect,
    /// Always, whatever the mode, rules and grants say.
    Always,
    /// Never while it only reads, not even in mode `none`: it shows haft's own records.
    NeverForReads,
    /// Only for what destroys, where no file of a workspace is touched: whoever wrote it has said so.
    OnlyToDestroy,
}

/// Where a tool stands in what models are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Always.
    Always,
    /// Never: nobody has set it up yet, but it says so when it is called by its name.
    Never,
    /// As long as all definitions together cost little; otherwise a search finds it.
    WhileThereIsRoom,
    /// While others are not shown: it leads to them.
    ForOthers,
}

/// The call that another one only hands on.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// The tool's name or one of its aliases.
    pub tool: String,
    /// What it is given.
    pub input: Value,
}

/// What a tool learned and set aside without leaving a trace, so that the decision is made on evidence.
#[derive(Clone, Debug)]
pub enum Prepared<O> {
    /// It is done but for the commit.
    Staged {
        /// What the caller gets after the commit.
        output: O,
        /// What it would change.
        changes: ChangeList,
        /// What a yes does.
        turn: Turn,
        /// The rung of the processes it started; `None` when it started none.
        isolation: Option<Isolation>,
    },
    /// It can only be described.
    Plain(Described),
    /// It was stopped or ran into a limit; what it had changed stays staged, and nothing is asked or committed.
    CutShort(PartialWork),
}

/// What an answer was made from, in a few words: as long as it is the same, so is the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp(pub String);

/// What holds of a tool whatever its input is.
#[derive(Clone, Copy, Debug)]
pub struct ToolFacts {
    /// The name it is called by.
    pub name: &'static str,
    /// What it belongs to.
    pub category: &'static str,
    /// The worst that any input can do; the annotations come from it.
    pub worst: Effect,
    /// What a caller needs to use it.
    pub permission: &'static str,
    /// Permanent other names.
    pub aliases: &'static [&'static str],
    /// Other names of parameters.
    pub parameter_aliases: &'static [ParameterAlias],
    /// How long one call may work.
    pub timeout: Duration,
    /// When a person is asked, beside what a call does.
    pub asks: Asks,
    /// Whether acting twice is the same as acting once, so that it may be tried again.
    pub idempotent: bool,
    /// Whether it may deal with something beyond this machine.
    pub open_world: bool,
    /// The only tenants that have it, by name; everybody when it names none.
    pub tenants: &'static [&'static str],
}

impl ToolFacts {
    /// A tool that needs what its worst effect needs in a workspace, and may work for half a minute.
    pub const fn new(name: &'static str, category: &'static str, worst: Effect) -> Self {
        Self {
            name,
            category,
            worst,
            permission: worst.workspace_permission(),
            aliases: &[],
            parameter_aliases: &[],
            timeout: Duration::from_secs(30),
            asks: Asks::ByEffect,
            idempotent: false,
            open_world: false,
            tenants: &[],
        }
    }

    /// The same for one that only looks.
    pub const fn reading(name: &'static str, category: &'static str) -> Self {
        Self::new(name, category, Effect::Read)
    }
}

/// A tool written in Rust: the input struct is the schema, its doc comment is the description.
/// What a tool writes is either `run` (it reads), or `prepare` (it changes files), or both (it acts outside).
pub trait Tool: Send + Sync + 'static {
    /// What goes in.
    type Input: DeserializeOwned + JsonSchema + Send + Sync;
    /// What comes out.
    type Output: Output;

    /// What holds of it whatever its input is.
    const FACTS: ToolFacts;

    /// Names that it had before, each with the last day on which it is understood.
    fn deprecated_aliases() -> Vec<DeprecatedAlias> {
        Vec::new()
    }

    /// Whether models are shown it.
    fn shown(&self) -> Shown {
        Shown::Always
    }

    /// The call that this input means, where the tool hands calls on to others. Such a call is theirs in every respect.
    fn forward(&self, _input: &Value) -> Option<Forward> {
        None
    }

    /// The call that this input only waits for. Whoever could answer what that call asks may be asked meanwhile.
    fn follows(&self, _input: &Self::Input) -> Option<CallId> {
        None
    }

    /// How far this input reaches; never further than its worst. Cheap, touches nothing.
    fn effect(&self, _input: &Self::Input) -> Effect {
        Self::FACTS.worst
    }

    /// Everything that can be done without leaving a trace.
    fn prepare(
        &self,
        _ctx: &ToolCtx,
        _input: &Self::Input,
    ) -> impl Future<Output = Result<Prepared<Self::Output>, ToolError>> + Send {
        async { Ok(Prepared::Plain(Described::default())) }
    }

    /// What tells whether an earlier answer to this input still holds; `None` when nothing does. It is asked for before
    /// and after the work, and an answer is kept only if it was the same both times.
    fn stamp(&self, _ctx: &ToolCtx, _input: &Self::Input) -> impl Future<Output = Option<Stamp>> + Send {
        async { None }
    }

    /// The work itself, after the yes; only for what `prepare` could not stage.
    fn run(
        &self,
        _ctx: &ToolCtx,
        _input: Self::Input,
    ) -> impl Future<Output = Result<Ran<Self::Output>, ToolError>> + Send {
        async { Err(ToolError::new(ErrorCode::Internal, format!("`{}` has nothing to run", Self::FACTS.name))) }
    }
}

/// What a tool gives back: a value with its own text for the model.
pub trait Output: Serialize + JsonSchema + Send {
    /// The text for the model.
    fn text(&self) -> String;

    /// The text for people who are asked for a yes; `None` where it is the same.
    fn text_for_people(&self) -> Option<String> {
        None
    }

    /// Facts beside the value.
    fn metadata(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Pictures.
    fn images(&mut self) -> Vec<Image> {
        Vec::new()
    }

    /// Something to listen to.
    fn audio(&mut self) -> Vec<Audio> {
        Vec::new()
    }

    /// Files and the like that come with it.
    fn resources(&mut self) -> Vec<Embedded> {
        Vec::new()
    }

    /// The result of another call that it only hands on.
    fn handed_on(&self) -> Option<Box<HandedOn>> {
        None
    }
}

/// The same contract without types: what the line holds. Dynamic tools implement it directly.
pub trait AnyTool: Send + Sync {
    /// What the tool is.
    fn spec(&self) -> &ToolSpec;

    /// Whether its results are made by the very type that its output schema is made from, so that they fit.
    fn is_typed(&self) -> bool {
        false
    }

    /// Whether models are shown it. It is asked for once, when the tool is taken into a registry.
    fn shown(&self) -> Shown {
        Shown::Always
    }

    /// The only tenants that have it, by name; everybody when it names none.
    fn tenants(&self) -> &[&str] {
        &[]
    }

    /// The call that this input means, where the tool hands calls on to others.
    fn forward(&self, _input: &Value) -> Option<Forward> {
        None
    }

    /// The call that this input only waits for.
    fn follows(&self, _input: &Value) -> Option<CallId> {
        None
    }

    /// How far this input reaches. An input whose effect cannot be told has the worst one.
    fn effect(&self, input: &Value) -> Effect;

    /// Everything that can be done without leaving a trace.
    fn prepare<'a>(
        &'a self,
        ctx: &'a ToolCtx,
        input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>>;

    /// What tells whether an earlier answer to this input still holds.
    fn stamp<'a>(&'a self, _ctx: &'a ToolCtx, _input: &'a Value) -> BoxFuture<'a, Option<Stamp>> {
        Box::pin(std::future::ready(None))
    }

    /// The work itself, after the yes.
    fn run<'a>(&'a self, ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>>;
}

/// Erases a Rust tool's types.
pub fn typed<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    let mut input_schema = schema::of_input::<T::Input>();
    let description = schema::take_description(&mut input_schema);
    let example = schema::take_example(&mut input_schema);
    let mut output_schema = schema::of_output::<T::Output>();
    schema::take_description(&mut output_schema);
    let spec = ToolSpec {
        name: T::FACTS.name.to_owned(),
        title: humanised(T::FACTS.name),
        description,
        category: T::FACTS.category.to_owned(),
        input_schema,
        output_schema,
        example,
        effect: T::FACTS.worst,
        permission: T::FACTS.permission.to_owned(),
        aliases: T::FACTS.aliases.iter().map(|&alias| alias.to_owned()).collect(),
        deprecated_aliases: T::deprecated_aliases(),
        parameter_aliases: T::FACTS.parameter_aliases.to_vec(),
        timeout: T::FACTS.timeout,
        asks: T::FACTS.asks,
        idempotent: T::FACTS.idempotent,
        open_world: T::FACTS.open_world,
    };
    Arc::new(Typed { spec, tool })
}

struct Typed<T> {
    spec: ToolSpec,
    tool: T,
}

impl<T: Tool> Typed<T> {
    /// The schema has been checked by now; what is left are the few things a schema cannot say.
    fn parse(input: &Value) -> Result<T::Input, ToolError> {
        T::Input::deserialize(input)
            .map_err(|err| ToolError::new(ErrorCode::InvalidArgs, format!("`{}`: {err}", T::FACTS.name)))
    }

    fn erase(mut output: T::Output) -> Result<ToolOutput, ToolError> {
        let (images, audio, resources) = (output.images(), output.audio(), output.resources());
        let structured = Structured::of(&output)
            .map_err(|err| ToolError::new(ErrorCode::OutputInvalid, format!("`{}`: {err}", T::FACTS.name)))?;
        Ok(ToolOutput {
            content: output.text(),
            display_content: output.text_for_people(),
            structured,
            images,
            audio,
            resources,
            metadata: output.metadata(),
            handed_on: output.handed_on(),
        })
    }
}

impl<T: Tool> AnyTool for Typed<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_typed(&self) -> bool {
        true
    }

    fn shown(&self) -> Shown {
        self.tool.shown()
    }

    fn tenants(&self) -> &[&str] {
        T::FACTS.tenants
    }

    fn forward(&self, input: &Value) -> Option<Forward> {
        self.tool.forward(input)
    }

    fn follows(&self, input: &Value) -> Option<CallId> {
        self.tool.follows(&Self::parse(input).ok()?)
    }

    fn effect(&self, input: &Value) -> Effect {
        Self::parse(input).map_or(Effect::Destroy, |input| self.tool.effect(&input))
    }

    fn prepare<'a>(
        &'a self,
        ctx: &'a ToolCtx,
        input: &'a Value,
    ) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        Box::pin(async move {
            Ok(match self.tool.prepare(ctx, &Self::parse(input)?).await? {
                Prepared::Staged { output, changes, turn, isolation } => {
                    Prepared::Staged { output: Self::erase(output)?, changes, turn, isolation }
                }
                Prepared::Plain(described) => Prepared::Plain(described),
                Prepared::CutShort(cut) => Prepared::CutShort(cut),
            })
        })
    }

    fn stamp<'a>(&'a self, ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Option<Stamp>> {
        Box::pin(async move { self.tool.stamp(ctx, &Self::parse(input).ok()?).await })
    }

    fn run<'a>(&'a self, ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        Box::pin(async move {
            Ok(match self.tool.run(ctx, Self::parse(input)?).await? {
                Ran::Done { output, isolation, staged } => {
                    Ran::Done { output: Self::erase(output)?, isolation, staged }
                }
                Ran::CutShort(cut) => Ran::CutShort(cut),
                Ran::Waits(wait) => Ran::Waits(wait),
            })
        })
    }
}

/// `read_file` → `Read file`.
fn humanised(name: &str) -> String {
    let spaced = name.replace(['_', '-'], " ");
    let mut letters = spaced.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Everything a working tool may touch. Nothing here leads to the journal, the policy or the door.
#[derive(Clone)]
pub struct ToolCtx {
    /// The call it works for.
    pub call_id: CallId,
    /// Who asked.
    pub caller: Caller,
    /// Fires when the work must stop.
    pub cancel: CancellationToken,
    /// When the work is given up; what can end with a part of its result ends before that. The time that answers to
    /// forms take is not counted.
    pub deadline: Instant,
    pub(crate) words: mpsc::Sender<ToolMessage>,
}

/// What a model is shown at once: a little less than its results may have, so that none is cut in its middle.
const ROOM: usize = 28_000;

/// What a working tool says.
#[derive(Debug)]
pub(crate) enum ToolMessage {
    /// A process has been started.
    Begun,
    Output {
        stream: Stream,
        chunk: String,
    },
    Progress {
        progress: Option<u8>,
        part: Option<ProgressPart>,
        message: String,
    },
    Ask(Box<FormRequest>),
}

impl ToolCtx {
    /// A context that nobody listens to, for using a tool by hand.
    pub fn detached(call_id: CallId, caller: Caller) -> Self {
        let (words, _) = mpsc::channel(1);
        let deadline = Instant::now() + Duration::from_secs(600);
        Self { call_id, caller, cancel: CancellationToken::new(), deadline, words }
    }

    /// The tenant and the workspace that the call belongs to.
    pub fn scope(&self) -> &Scope {
        &self.caller.scope
    }

    /// Says that the work has begun, for work that begins before it is approved.
    pub async fn begun(&self) {
        let _ = self.words.send(ToolMessage::Begun).await;
    }

    /// How many characters of text the caller can be shown at once. People and scripts have pagers and pipes; models are
    /// given a result within the limits of the house.
    pub fn room(&self) -> usize {
        match self.caller.source {
            Source::Cli => usize::MAX,
            Source::Mcp | Source::Web | Source::Api | Source::Link | Source::Edit | Source::House => ROOM,
        }
    }

    /// Hands on a piece of output as it comes. Waits when the reader is slow.
    pub async fn output(&self, stream: Stream, chunk: impl Into<String>) {
        // The reader goes away only when the call is over; then nobody is left to tell.
        let _ = self.words.send(ToolMessage::Output { stream, chunk: chunk.into() }).await;
    }

    /// Puts a form to whoever is behind the call, and waits for the answer. Forms are put one after the other. An error
    /// says that nobody could be asked or nobody answered in time.
    pub async fn ask(&self, form: Form) -> Result<FormAnswer, ToolError> {
        let nobody = || ToolError::new(ErrorCode::Unavailable, "nobody can be asked here: the call is over");
        let (reply, answer) = oneshot::channel();
        let asking = ToolMessage::Ask(Box::new(FormRequest { form, reply }));
        self.words.send(asking).await.map_err(|_| nobody())?;
        answer.await.map_err(|_| nobody())?
    }

    /// Says how far the work is. Skipped when the reader is slow.
    pub fn progress(&self, progress: Option<u8>, message: impl Into<String>) {
        let _ = self.words.try_send(ToolMessage::Progress { progress, part: None, message: message.into() });
    }

    /// The same in units of its own.
    pub fn progress_of(&self, part: ProgressPart, message: impl Into<String>) {
        let (progress, part) = (Some(part.percent()), Some(part));
        let _ = self.words.try_send(ToolMessage::Progress { progress, part, message: message.into() });
    }
}

//! Tools with their schemas compiled, and those that a house is built with.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use jsonschema::{Draft, PatternOptions, ValidationOptions};
use serde_json::Value;

use crate::{
    AnyTool, CallId, Caller, ErrorCode, Layer, LayerSource, Shown, ToolError, ToolSpec, bounded_schema::BoundedSchema,
    schema, to_anthropic,
};

/// A tool with its schemas, each compiled once.
pub struct RegisteredTool {
    tool: Arc<dyn AnyTool>,
    /// What it is for some callers, where that is something else.
    described: Option<Box<ToolSpec>>,
    input: Arc<Compiled>,
    output: Arc<Compiled>,
    shown: Shown,
    tokens: OnceLock<usize>,
}

impl RegisteredTool {
    /// Compiles the schemas and refuses what no client could use.
    pub fn new(tool: Arc<dyn AnyTool>) -> Result<Self, RegistryError> {
        let tool = Self::uncompiled(tool)?;
        let unusable =
            |error: ToolError| RegistryError::Unusable { name: tool.spec().name.clone(), why: error.message };
        tool.input().map_err(unusable)?;
        tool.output().map_err(unusable)?;
        Ok(tool)
    }

    /// The same for schemas that are made from our own types. A broken one fails where tools are developed; where they
    /// are used, the first call compiles them, since most processes call but few tools.
    fn of_our_own(tool: Arc<dyn AnyTool>) -> Result<Self, RegistryError> {
        if cfg!(debug_assertions) { Self::new(tool) } else { Self::uncompiled(tool) }
    }

    fn uncompiled(tool: Arc<dyn AnyTool>) -> Result<Self, RegistryError> {
        let spec = tool.spec();
        let unusable = |why: String| RegistryError::Unusable { name: spec.name.clone(), why };
        if !is_name(&spec.name) {
            return Err(unusable("a name is a letter and up to 63 letters, digits, `_` or `-`".to_owned()));
        }
        if spec.description.is_empty() {
            return Err(unusable("it has no description".to_owned()));
        }
        if let Some(fault) = schema::faults_of_input(&spec.input_schema).into_iter().next() {
            return Err(unusable(fault));
        }
        if let Some(fault) = fault_of_aliases(spec) {
            return Err(unusable(fault));
        }
        let shown = tool.shown();
        let (input, output) = Default::default();
        Ok(Self { tool, described: None, input, output, shown, tokens: OnceLock::new() })
    }

    /// What the tool is.
    pub fn spec(&self) -> &ToolSpec {
        self.described.as_deref().unwrap_or_else(|| self.tool.spec())
    }

    /// The same tool with another title and description, for others, asked about otherwise, or with another limit. What it is
    /// called, what it takes and gives and what it does stay.
    #[must_use]
    pub fn described_by(&self, other: ToolSpec) -> Self {
        let ToolSpec { title, description, permission, asks, timeout, .. } = other;
        let described = ToolSpec { title, description, permission, asks, timeout, ..self.spec().clone() };
        Self { described: Some(Box::new(described)), tokens: OnceLock::new(), ..self.again() }
    }

    /// Whether there is such a tool for the tenant of this name. Nobody knows what a nameless one may have.
    pub fn is_for(&self, tenant: Option<&str>) -> bool {
        let only = self.tool.tenants();
        only.is_empty() || tenant.is_some_and(|tenant| only.contains(&tenant))
    }

    fn again(&self) -> Self {
        Self {
            tool: Arc::clone(&self.tool),
            described: self.described.clone(),
            input: Arc::clone(&self.input),
            output: Arc::clone(&self.output),
            shown: self.shown,
            tokens: self.tokens.clone(),
        }
    }

    /// Whether models are shown it.
    pub fn shown(&self) -> Shown {
        self.shown
    }

    /// The same as models are shown it by now; `None` while that is the same.
    pub(crate) fn shown_as_now(&self) -> Option<Self> {
        let shown = self.tool.shown();
        (shown != self.shown).then(|| Self { shown, ..self.again() })
    }

    /// What its definition costs a model: its name, its description and its input schema are what clients send, and four
    /// bytes are about one token.
    pub fn tokens(&self) -> usize {
        let sent = || to_anthropic(std::slice::from_ref(self.spec())).to_string().len();
        *self.tokens.get_or_init(|| sent() / 4)
    }

    /// Whether a value is one that it says it gives.
    pub fn may_give(&self, value: &Value) -> bool {
        self.output().is_ok_and(|schema| schema.is_valid(value))
    }

    /// The call that this input only waits for.
    pub fn follows(&self, input: &Value) -> Option<CallId> {
        self.tool().follows(input)
    }

    pub(crate) fn tool(&self) -> &dyn AnyTool {
        &*self.tool
    }

    pub(crate) fn input(&self) -> Result<&BoundedSchema, ToolError> {
        self.input.of(&self.spec().input_schema)
    }

    pub(crate) fn output(&self) -> Result<&BoundedSchema, ToolError> {
        self.output.of(&self.spec().output_schema)
    }
}

/// A schema that is compiled when it is first needed. One that is broken lets nothing pass.
#[derive(Default)]
struct Compiled(OnceLock<Result<BoundedSchema, String>>);

impl Compiled {
    fn of(&self, schema: &Value) -> Result<&BoundedSchema, ToolError> {
        let compiled = self.0.get_or_init(|| compile(schema)).as_ref();
        compiled.map_err(|broken| ToolError::new(ErrorCode::Internal, broken.clone()))
    }
}

/// Why a value does not fit that takes too long to compare.
pub(crate) const TOO_LONG: &str = "the schema is too large, or refers to itself too often, for this value";

/// A schema that values are compared with, compiled once.
pub struct Shape(BoundedSchema);

impl Shape {
    /// Compiles a schema; an error says what is broken.
    pub fn new(schema: &Value) -> Result<Self, String> {
        compile(schema).map(Self)
    }

    /// The first thing about a value that does not fit.
    pub fn fault(&self, value: &Value) -> Option<String> {
        match self.0.errors(value, 1) {
            Some(errors) => errors.first().map(ToString::to_string),
            None => Some(TOO_LONG.to_owned()),
        }
    }
}

/// Linear-time patterns only, and no `$ref` that leaves the schema: both could come from a stranger.
fn compile(schema: &Value) -> Result<BoundedSchema, String> {
    built(options(), schema)
}

/// The same for what people fill in: a date must be a date.
pub(crate) fn compile_form(schema: &Value) -> Result<BoundedSchema, String> {
    built(options().should_validate_formats(true), schema)
}

fn options() -> ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
}

fn built(options: ValidationOptions<'_>, schema: &Value) -> Result<BoundedSchema, String> {
    BoundedSchema::new(options, schema).map_err(|err| format!("its schema is broken: {err}"))
}

fn is_name(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    plain && name.len() <= 64 && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// An old parameter name must lead to a parameter, and must not be one itself: both could be given at once.
fn fault_of_aliases(spec: &ToolSpec) -> Option<String> {
    let is_own = |parameter: &String| spec.input_schema["properties"].get(parameter).is_some();
    for alias in &spec.deprecated_aliases {
        if !is_name(&alias.name) {
            return Some(format!("its old name `{}` is none that a client could use", alias.name));
        }
        for (old, now) in &alias.parameters {
            if is_own(old) || !is_own(now) {
                return Some(format!("`{old}` of `{}` cannot stand for `{now}`", alias.name));
            }
        }
    }
    None
}

/// Why a tool was not taken in.
#[derive(Debug, PartialEq, Eq)]
pub enum RegistryError {
    /// Another tool has this name or alias.
    Duplicate {
        /// The name.
        name: String,
    },
    /// No client could use it.
    Unusable {
        /// The tool.
        name: String,
        /// Why.
        why: String,
    },
}

impl std::fmt::Display for RegistryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Duplicate { name } => write!(f, "another tool or alias is called `{name}`"),
            Self::Unusable { name, why } => write!(f, "the tool `{name}` cannot be used: {why}"),
        }
    }
}

impl std::error::Error for RegistryError {}

/// The tools that are written in Rust, or brought by whoever builds a house: the layer that all others come after.
#[derive(Default)]
pub struct Registry(ArcSwap<Layer>);

impl Registry {
    /// A registry that holds these tools of our own.
    pub fn with(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>) -> Result<Self, RegistryError> {
        let mut layer = Layer::default();
        for tool in tools {
            layer.insert(Arc::new(RegisteredTool::of_our_own(tool)?))?;
        }
        Ok(Self(ArcSwap::from_pointee(layer)))
    }

    /// Adds a tool of our own; a name or alias that is taken is an error.
    pub fn register(&self, tool: Arc<dyn AnyTool>) -> Result<(), RegistryError> {
        let tool = Arc::new(RegisteredTool::of_our_own(tool)?);
        let mut failed = None;
        self.0.rcu(|old| {
            let mut next = Layer::clone(old);
            failed = next.insert(tool.clone()).err();
            // A failed change leaves the old one.
            if failed.is_some() { Arc::clone(old) } else { Arc::new(next) }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Takes a tool out; `false` when there was none.
    pub fn unregister(&self, name: &str) -> bool {
        let mut found = false;
        self.0.rcu(|old| {
            let mut next = Layer::clone(old);
            found = next.remove(name);
            next
        });
        found
    }

    /// Puts many tools in the place of others in one step. Those that cannot be taken in are left out and said.
    pub fn exchange(&self, gone: &[String], new: Vec<Arc<dyn AnyTool>>) -> Vec<RegistryError> {
        let (usable, mut faults) = usable(new);
        let mut taken = Vec::new();
        self.0.rcu(|old| {
            let mut next = Layer::clone(old);
            for name in gone {
                next.remove(name);
            }
            taken = usable.iter().filter_map(|tool| next.insert(Arc::clone(tool)).err()).collect();
            next
        });
        faults.extend(taken);
        faults
    }

    /// The tool that a name or an alias stands for.
    pub fn find(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        self.0.load().get(name).cloned()
    }

    /// All of them.
    pub fn all(&self) -> Arc<Layer> {
        self.0.load_full()
    }

    /// Every name that means one of these tools.
    pub fn names(&self) -> BTreeSet<String> {
        self.0.load().names()
    }
}

impl LayerSource for Registry {
    /// Whether a tool is shown may depend on the workspace, which changes. Only lists tell, so a call does not look.
    fn look<'a>(&'a self, _caller: &'a Caller, name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        if name.is_none() && self.0.load().shown_as_now().is_some() {
            self.0.rcu(|old| old.shown_as_now().map_or_else(|| Arc::clone(old), Arc::new));
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn layer(&self, _caller: &Caller) -> Arc<Layer> {
        self.0.load_full()
    }
}

/// The tools that clients can use, and why the others are none.
pub fn usable(tools: Vec<Arc<dyn AnyTool>>) -> (Vec<Arc<RegisteredTool>>, Vec<RegistryError>) {
    parted(tools, RegisteredTool::new)
}

/// The same for tools whose schemas were compiled when they were written down: most are not called while they are kept.
pub fn usable_as_saved(tools: Vec<Arc<dyn AnyTool>>) -> (Vec<Arc<RegisteredTool>>, Vec<RegistryError>) {
    parted(tools, RegisteredTool::uncompiled)
}

fn parted(
    tools: Vec<Arc<dyn AnyTool>>,
    registered: impl Fn(Arc<dyn AnyTool>) -> Result<RegisteredTool, RegistryError>,
) -> (Vec<Arc<RegisteredTool>>, Vec<RegistryError>) {
    let (mut usable, mut faults) = (Vec::new(), Vec::new());
    for tool in tools {
        match registered(tool) {
            Ok(tool) => usable.push(Arc::new(tool)),
            Err(fault) => faults.push(fault),
        }
    }
    (usable, faults)
}

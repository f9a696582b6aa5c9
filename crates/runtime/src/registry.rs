//! The tools of a house by name: a snapshot that calls read while others register.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::Value;

use crate::{
    AnyTool, Catalog, ErrorCode, Listing, Pins, Scope, Shown, ToolError, ToolSpec, issues::cut, nearest::nearest,
    schema, to_mcp,
};

/// Says by its name whether there shall be a tool.
pub type Only = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A tool with its schemas, each compiled once.
pub struct RegisteredTool {
    tool: Arc<dyn AnyTool>,
    input: Compiled,
    output: Compiled,
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
        Ok(Self { tool, input: Compiled::default(), output: Compiled::default(), shown, tokens: OnceLock::new() })
    }

    /// What the tool is.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// Whether models are shown it.
    pub fn shown(&self) -> Shown {
        self.shown
    }

    /// What its definition costs a model: four bytes are about one token.
    pub fn tokens(&self) -> usize {
        *self.tokens.get_or_init(|| to_mcp(std::slice::from_ref(self.spec())).to_string().len() / 4)
    }

    /// Whether a value is one that it says it gives.
    pub fn may_give(&self, value: &Value) -> bool {
        self.output().is_ok_and(|schema| schema.is_valid(value))
    }

    pub(crate) fn tool(&self) -> &dyn AnyTool {
        &*self.tool
    }

    pub(crate) fn input(&self) -> Result<&Validator, ToolError> {
        self.input.of(&self.spec().input_schema)
    }

    pub(crate) fn output(&self) -> Result<&Validator, ToolError> {
        self.output.of(&self.spec().output_schema)
    }
}

/// A schema that is compiled when it is first needed. One that is broken lets nothing pass.
#[derive(Default)]
struct Compiled(OnceLock<Result<Validator, String>>);

impl Compiled {
    fn of(&self, schema: &Value) -> Result<&Validator, ToolError> {
        let compiled = self.0.get_or_init(|| compile(schema)).as_ref();
        compiled.map_err(|broken| ToolError::new(ErrorCode::Internal, broken.clone()))
    }
}

/// A schema that values are compared with, compiled once.
pub struct Shape(Validator);

impl Shape {
    /// Compiles a schema; an error says what is broken.
    pub fn new(schema: &Value) -> Result<Self, String> {
        compile(schema).map(Self)
    }

    /// The first thing about a value that does not fit.
    pub fn fault(&self, value: &Value) -> Option<String> {
        self.0.iter_errors(value).next().map(|err| err.to_string())
    }
}

/// Linear-time patterns only, and no `$ref` that leaves the schema: both could come from a stranger.
fn compile(schema: &Value) -> Result<Validator, String> {
    built(&options(), schema)
}

/// The same for what people fill in: a date must be a date.
pub(crate) fn compile_form(schema: &Value) -> Result<Validator, String> {
    built(&options().should_validate_formats(true), schema)
}

fn options() -> ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
}

fn built(options: &ValidationOptions<'_>, schema: &Value) -> Result<Validator, String> {
    options.build(schema).map_err(|err| format!("its schema is broken: {err}"))
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

#[derive(Default)]
struct Snapshot {
    tools: BTreeMap<String, Arc<RegisteredTool>>,
    aliases: BTreeMap<String, String>,
    pins: Arc<Pins>,
    only: Option<Only>,
    /// The names that would mean a tool if it were wanted, and the tool's own.
    left_out: BTreeMap<String, String>,
    /// Made when somebody asks first.
    listing: OnceLock<Arc<Listing>>,
}

impl Snapshot {
    /// The same, to be changed.
    fn next(&self) -> Self {
        let (tools, aliases, pins) = (self.tools.clone(), self.aliases.clone(), self.pins.clone());
        let (only, left_out) = (self.only.clone(), self.left_out.clone());
        Self { tools, aliases, pins, only, left_out, listing: OnceLock::new() }
    }

    /// Whether there shall be such a tool. Those that lead to others always may: they lead only to what is there.
    fn wants(&self, tool: &RegisteredTool) -> bool {
        tool.shown() == Shown::ForOthers || self.only.as_ref().is_none_or(|only| only(&tool.spec().name))
    }

    fn insert(&mut self, tool: Arc<RegisteredTool>) -> Result<(), RegistryError> {
        if !self.wants(&tool) {
            self.leave_out(&tool);
            return Ok(());
        }
        let spec = tool.spec();
        let aliases: Vec<&String> = other_names(spec).collect();
        let mut own = BTreeSet::new();
        for name in std::iter::once(&spec.name).chain(aliases.iter().copied()) {
            if !own.insert(name) || self.tools.contains_key(name) || self.aliases.contains_key(name) {
                return Err(RegistryError::Duplicate { name: name.clone() });
            }
        }
        for alias in aliases {
            self.aliases.insert(alias.clone(), spec.name.clone());
        }
        self.tools.insert(spec.name.clone(), tool);
        Ok(())
    }

    /// Remembers the names of a tool that is not wanted, so that whoever uses one is told.
    fn leave_out(&mut self, tool: &RegisteredTool) {
        let spec = tool.spec();
        self.left_out.extend(names(spec).map(|name| (name.clone(), spec.name.clone())));
    }

    fn remove(&mut self, name: &str) -> bool {
        self.aliases.retain(|_, canonical| canonical != name);
        self.left_out.retain(|_, canonical| canonical != name);
        self.tools.remove(name).is_some()
    }
}

fn names(spec: &ToolSpec) -> impl Iterator<Item = &String> {
    std::iter::once(&spec.name).chain(other_names(spec))
}

fn other_names(spec: &ToolSpec) -> impl Iterator<Item = &String> {
    spec.aliases.iter().chain(spec.deprecated_aliases.iter().map(|alias| &alias.name))
}

/// The tools by name. Every reader sees one consistent state.
#[derive(Default)]
pub struct Registry(ArcSwap<Snapshot>);

impl Registry {
    /// A registry that holds these tools of our own.
    pub fn with(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>) -> Result<Self, RegistryError> {
        let mut snapshot = Snapshot::default();
        for tool in tools {
            snapshot.insert(Arc::new(RegisteredTool::of_our_own(tool)?))?;
        }
        Ok(Self(ArcSwap::from_pointee(snapshot)))
    }

    /// The same, where these are always shown to models.
    #[must_use]
    pub fn pinning(self, pins: Pins) -> Self {
        let pinned = Snapshot { pins: Arc::new(pins), ..self.0.load().next() };
        Self(ArcSwap::from_pointee(pinned))
    }

    /// The same with no other tools than these, now and later.
    #[must_use]
    pub fn only(self, only: Option<Only>) -> Self {
        let mut left = Snapshot { only, ..self.0.load().next() };
        let unwanted: Vec<_> = left.tools.values().filter(|tool| !left.wants(tool)).cloned().collect();
        for tool in unwanted {
            left.remove(&tool.spec().name);
            left.leave_out(&tool);
        }
        Self(ArcSwap::from_pointee(left))
    }

    /// Adds a tool of our own; a name or alias that is taken is an error.
    pub fn register(&self, tool: Arc<dyn AnyTool>) -> Result<(), RegistryError> {
        let tool = Arc::new(RegisteredTool::of_our_own(tool)?);
        self.change(|snapshot| snapshot.insert(tool.clone()))
    }

    /// Adds a tool in the place of the one that has its name.
    pub fn replace(&self, tool: Arc<dyn AnyTool>) -> Result<(), RegistryError> {
        let tool = Arc::new(RegisteredTool::new(tool)?);
        self.change(|snapshot| {
            snapshot.remove(&tool.spec().name);
            snapshot.insert(tool.clone())
        })
    }

    /// Takes a tool out; `false` when there was none.
    pub fn unregister(&self, name: &str) -> bool {
        let mut found = false;
        self.0.rcu(|old| {
            let mut next = old.next();
            found = next.remove(name);
            next
        });
        found
    }

    /// Puts many tools in the place of others in one step. Those that cannot be taken in are left out and said.
    pub fn exchange(&self, gone: &[String], new: Vec<Arc<dyn AnyTool>>) -> Vec<RegistryError> {
        let mut unusable = Vec::new();
        let mut usable = Vec::new();
        for tool in new {
            match RegisteredTool::new(tool) {
                Ok(tool) => usable.push(Arc::new(tool)),
                Err(error) => unusable.push(error),
            }
        }
        let mut taken = Vec::new();
        self.0.rcu(|old| {
            let mut next = old.next();
            for name in gone {
                next.remove(name);
            }
            taken = usable.iter().filter_map(|tool| next.insert(Arc::clone(tool)).err()).collect();
            next
        });
        unusable.extend(taken);
        unusable
    }

    /// The tool that a name or an alias stands for.
    pub fn get(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        let snapshot = self.0.load();
        let canonical = snapshot.aliases.get(name).map_or(name, String::as_str);
        snapshot.tools.get(canonical).cloned()
    }

    /// Every tool that is listed, what a model is shown of them, and how it finds the rest. The same until a change.
    pub fn listing(&self) -> Arc<Listing> {
        let snapshot = self.0.load();
        snapshot.listing.get_or_init(|| Arc::new(Listing::of(snapshot.tools.values(), &snapshot.pins))).clone()
    }

    /// The description of every tool that is listed, sorted by name.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.listing().tools().into_iter().map(|tool| tool.spec().clone()).collect()
    }

    /// Every name that means a tool, listed or not.
    pub fn names(&self) -> BTreeSet<String> {
        let snapshot = self.0.load();
        snapshot.tools.keys().chain(snapshot.aliases.keys()).cloned().collect()
    }

    /// Readers go on with the old state until the new one is complete; a failed change leaves the old one.
    fn change(&self, apply: impl Fn(&mut Snapshot) -> Result<(), RegistryError>) -> Result<(), RegistryError> {
        let mut failed = None;
        self.0.rcu(|old| {
            let mut next = old.next();
            failed = apply(&mut next).err();
            if failed.is_some() { Arc::clone(old) } else { Arc::new(next) }
        });
        failed.map_or(Ok(()), Err)
    }

    fn not_found(&self, name: &str) -> ToolError {
        let snapshot = self.0.load();
        if let Some(tool) = snapshot.left_out.get(name) {
            let message = format!("the tool `{tool}` is not offered here; it was left out when this haft was started");
            return ToolError::new(ErrorCode::ToolNotFound, message);
        }
        // Nobody is sent to what is not listed.
        let listing = self.listing();
        let listed = listing.tools().into_iter().flat_map(|tool| names(tool.spec()));
        let near = nearest(name, listed.map(String::as_str));
        let canonical = |name: &String| snapshot.aliases.get(name).unwrap_or(name).clone();
        let mut near: Vec<String> = near.iter().map(canonical).collect();
        near.dedup();
        let hint = match near.as_slice() {
            [] => "`haft tools` lists them all".to_owned(),
            [first, ..] => format!("did you mean `{first}`? `haft tools` lists them all"),
        };
        let name = cut(name);
        ToolError::new(ErrorCode::ToolNotFound, format!("there is no tool `{name}`; {hint}")).with("nearest", near)
    }
}

impl Catalog for Registry {
    fn find<'a>(&'a self, _scope: &'a Scope, name: &'a str) -> BoxFuture<'a, Result<Arc<RegisteredTool>, ToolError>> {
        Box::pin(std::future::ready(self.get(name).ok_or_else(|| self.not_found(name))))
    }

    fn list<'a>(&'a self, _scope: &'a Scope) -> BoxFuture<'a, Arc<Listing>> {
        Box::pin(std::future::ready(self.listing()))
    }
}

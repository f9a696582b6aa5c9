//! A catalogue made of layers: code, then a workspace's or a tenant's own tools, then those of other servers. A layer never
//! changes; whoever has other tools than before gives another one. What they come to together is kept until then.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use futures_util::future::BoxFuture;

use crate::{
    Caller, Catalog, ErrorCode, PinnedTools, RegisteredTool, RegistryError, Scope, Shown, ToolError, ToolListing,
    ToolSpec, issues::cut, nearest::nearest,
};

/// Says by its name whether there shall be a tool.
pub type Only = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// For how many scopes the merged tools are kept.
const MOST_SCOPES: usize = 1024;

/// The tools of one source at one moment.
#[derive(Clone, Default)]
pub struct Layer {
    tools: BTreeMap<String, Arc<RegisteredTool>>,
    aliases: BTreeMap<String, String>,
    /// Whether one of them is not for everybody.
    is_for_some_only: bool,
}

impl Layer {
    /// Of these tools. Those whose names are taken by an earlier one are left out and said.
    pub fn of(tools: impl IntoIterator<Item = Arc<RegisteredTool>>) -> (Self, Vec<RegistryError>) {
        let mut layer = Self::default();
        let faults = tools.into_iter().filter_map(|tool| layer.insert(tool).err()).collect();
        (layer, faults)
    }

    /// The tool that a name or an alias stands for.
    pub fn get(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        let canonical = self.aliases.get(name).map_or(name, String::as_str);
        self.tools.get(canonical)
    }

    /// Every tool, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<RegisteredTool>> {
        self.tools.values()
    }

    /// Its tools, by name, after the one of this name.
    pub fn after(&self, name: Option<&str>) -> impl Iterator<Item = &Arc<RegisteredTool>> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.tools.range::<str, _>((from, Bound::Unbounded)).map(|(_, tool)| tool)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Whether one of its tools is for some tenants only.
    pub fn is_for_some_only(&self) -> bool {
        self.is_for_some_only
    }

    /// The same layer with other tools in the place of some, and without those of which nothing is made.
    #[must_use]
    pub fn edited(&self, edit: impl Fn(&Arc<RegisteredTool>) -> Option<Arc<RegisteredTool>>) -> Self {
        let mut next = self.clone();
        for (name, tool) in &self.tools {
            match edit(tool) {
                Some(tool) => drop(next.tools.insert(name.clone(), tool)),
                None => drop(next.remove(name)),
            }
        }
        next
    }

    /// Every name that means a tool.
    pub fn names(&self) -> BTreeSet<String> {
        self.tools.keys().chain(self.aliases.keys()).cloned().collect()
    }

    pub(crate) fn insert(&mut self, tool: Arc<RegisteredTool>) -> Result<(), RegistryError> {
        let spec = tool.spec();
        let mut own = BTreeSet::new();
        for name in names(spec) {
            if !own.insert(name) || self.get(name).is_some() {
                return Err(RegistryError::Duplicate { name: name.clone() });
            }
        }
        for alias in other_names(spec) {
            self.aliases.insert(alias.clone(), spec.name.clone());
        }
        self.is_for_some_only |= !tool.is_for(None);
        self.tools.insert(spec.name.clone(), tool);
        Ok(())
    }

    /// The same with what models are shown by now; `None` while that is the same.
    pub(crate) fn shown_as_now(&self) -> Option<Self> {
        let mut next = None;
        for (name, tool) in &self.tools {
            if let Some(other) = tool.shown_as_now() {
                next.get_or_insert_with(|| self.clone()).tools.insert(name.clone(), Arc::new(other));
            }
        }
        next
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.aliases.retain(|_, canonical| canonical != name);
        self.tools.remove(name).is_some()
    }
}

/// Where a layer comes from.
pub trait LayerSource: Send + Sync {
    /// Looks whether the tools have changed. `name` is the tool that somebody wants, if it is one.
    fn look<'a>(&'a self, _caller: &'a Caller, _name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The caller's tools as of the last look: the same `Arc` as long as they are the same.
    fn layer(&self, caller: &Caller) -> Arc<Layer>;

    /// Why there is no tool of this name although it seems to be one of these.
    fn missing(&self, _caller: &Caller, _name: &str) -> Option<ToolError> {
        None
    }
}

/// The tools that somebody has, from all layers.
#[derive(Default)]
pub struct Tools {
    all: Layer,
    pins: Arc<PinnedTools>,
    /// The names that would mean a tool if it were wanted, and the tool's own.
    left_out: BTreeMap<String, String>,
    faults: Vec<RegistryError>,
    /// Made when somebody asks first.
    listing: OnceLock<Arc<ToolListing>>,
}

impl Tools {
    /// A later layer never takes the place of what an earlier one has.
    fn merge(layers: &[Arc<Layer>], pins: &Arc<PinnedTools>, only: Option<&Only>) -> Self {
        let mut tools = Self { pins: Arc::clone(pins), ..Self::default() };
        for tool in layers.iter().flat_map(|layer| layer.tools.values()) {
            // Those that lead to others always may be there: they lead only to what is there.
            let wanted = tool.shown() == Shown::ForOthers || only.is_none_or(|only| only(&tool.spec().name));
            if !wanted {
                let spec = tool.spec();
                tools.left_out.extend(names(spec).map(|name| (name.clone(), spec.name.clone())));
            } else if let Err(fault) = tools.all.insert(Arc::clone(tool)) {
                tools.faults.push(fault);
            }
        }
        tools
    }

    /// The tool that a name or an alias stands for.
    pub fn get(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        self.all.get(name).cloned()
    }

    /// Every tool that is listed, what a model is shown of them, and how it finds the rest.
    pub fn listing(&self) -> Arc<ToolListing> {
        self.listing.get_or_init(|| Arc::new(ToolListing::of(self.all.tools.values(), &self.pins))).clone()
    }

    /// The description of every tool that is listed, sorted by name.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.listing().tools().iter().map(|tool| tool.spec().clone()).collect()
    }

    /// Every name that means a tool, listed or not.
    pub fn names(&self) -> BTreeSet<String> {
        self.all.names()
    }

    /// The tools whose names are taken by an earlier layer.
    pub fn faults(&self) -> &[RegistryError] {
        &self.faults
    }

    fn not_found(&self, name: &str) -> ToolError {
        if let Some(tool) = self.left_out.get(name) {
            let message = format!("the tool `{tool}` is not offered here; it was left out when this haft was started");
            return ToolError::new(ErrorCode::ToolNotFound, message);
        }
        // Nobody is sent to what is not listed.
        let listing = self.listing();
        let listed = listing.tools().iter().flat_map(|tool| names(tool.spec()));
        let near = nearest(name, listed.map(String::as_str));
        let canonical = |name: &String| self.all.aliases.get(name).unwrap_or(name).clone();
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

/// The catalogue. A look-up costs the same however many tools there are.
pub struct Layers {
    /// The first has its names before all others.
    sources: Vec<Arc<dyn LayerSource>>,
    pins: Arc<PinnedTools>,
    only: Option<Only>,
    merged: Mutex<HashMap<Scope, Merged>>,
}

/// What some layers come to.
struct Merged {
    of: Vec<Arc<Layer>>,
    tools: Arc<Tools>,
}

impl Layers {
    /// Of these sources, the most important first.
    pub fn new(sources: Vec<Arc<dyn LayerSource>>) -> Self {
        Self { sources, pins: Arc::default(), only: None, merged: Mutex::default() }
    }

    /// The same, where these are always shown to models.
    #[must_use]
    pub fn pinning(self, pins: PinnedTools) -> Self {
        Self { pins: Arc::new(pins), ..self }
    }

    /// The same with no other tools than these.
    #[must_use]
    pub fn only(self, only: Option<Only>) -> Self {
        Self { only, ..self }
    }

    /// The caller's tools as of the last look.
    pub fn tools(&self, caller: &Caller) -> Arc<Tools> {
        let layers: Vec<Arc<Layer>> = self.sources.iter().map(|source| source.layer(caller)).collect();
        let mut merged = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = merged.get(&caller.scope)
            && known.of.len() == layers.len()
            && known.of.iter().zip(&layers).all(|(before, now)| Arc::ptr_eq(before, now))
        {
            return Arc::clone(&known.tools);
        }
        let tools = Arc::new(Tools::merge(&layers, &self.pins, self.only.as_ref()));
        if merged.len() >= MOST_SCOPES {
            merged.clear();
        }
        merged.insert(caller.scope.clone(), Merged { of: layers, tools: Arc::clone(&tools) });
        tools
    }
}

impl Catalog for Layers {
    fn find<'a>(&'a self, caller: &'a Caller, name: &'a str) -> BoxFuture<'a, Result<Arc<RegisteredTool>, ToolError>> {
        Box::pin(async move {
            for source in &self.sources {
                source.look(caller, Some(name)).await?;
            }
            let tools = self.tools(caller);
            tools.get(name).ok_or_else(|| {
                let said = self.sources.iter().find_map(|source| source.missing(caller, name));
                said.unwrap_or_else(|| tools.not_found(name))
            })
        })
    }

    fn list<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Arc<ToolListing>, ToolError>> {
        Box::pin(async move {
            for source in &self.sources {
                source.look(caller, None).await?;
            }
            Ok(self.tools(caller).listing())
        })
    }
}

fn names(spec: &ToolSpec) -> impl Iterator<Item = &String> {
    std::iter::once(&spec.name).chain(other_names(spec))
}

fn other_names(spec: &ToolSpec) -> impl Iterator<Item = &String> {
    spec.aliases.iter().chain(spec.deprecated_aliases.iter().map(|alias| &alias.name))
}

#[cfg(test)]
mod tests;

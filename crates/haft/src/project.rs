//! The project tools of a workspace: those that were trusted, taken in beside the built-in ones.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use haft_runtime::{Caller, ErrorCode, Layer, LayerSource, RegisteredTool, Registry, ToolError};
use haft_tools::{FindSecret, Manifest, Workspace, Workspaces, project_tool};

use crate::{
    settings::Settings,
    trust::{self, Brought, ManifestFile, RecordStamp},
};

/// A manifest that no tool can be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) path: String,
    /// What the tool would be called.
    name: String,
    pub(crate) why: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` gives no tool: {}", self.path, self.why)
    }
}

/// The layer of a workspace. What is trusted by another process counts from the next look on.
pub(crate) struct ProjectTools {
    registry: Arc<Registry>,
    workspaces: Arc<dyn Workspaces>,
    workspace: Arc<Workspace>,
    data: PathBuf,
    secrets: FindSecret,
    /// Where the trust record lies.
    record: PathBuf,
    taken: Mutex<TrustedLayer>,
}

/// What the last trust record gave.
#[derive(Default)]
struct TrustedLayer {
    stamp: Option<RecordStamp>,
    layer: Arc<Layer>,
    faults: Vec<Fault>,
}

impl ProjectTools {
    /// Beside haft's own tools, none of which they can ever take the place of.
    pub(crate) fn beside(
        registry: &Arc<Registry>,
        (workspaces, workspace): (&Arc<dyn Workspaces>, &Arc<Workspace>),
        settings: &Settings,
    ) -> Self {
        let data = &settings.data;
        let tools = Self {
            registry: Arc::clone(registry),
            workspaces: Arc::clone(workspaces),
            workspace: Arc::clone(workspace),
            data: data.clone(),
            secrets: settings.secrets(),
            record: trust::place(data, workspace.path()),
            taken: Mutex::default(),
        };
        tools.refresh();
        tools
    }

    /// The tools that something brought would give, and the faults in the rest.
    pub(crate) fn sort(&self, brought: &Brought) -> (BTreeMap<String, Manifest>, Vec<Fault>) {
        let mut tools: BTreeMap<String, Manifest> = BTreeMap::new();
        let mut faults = Vec::new();
        for file in brought.manifests() {
            match self.one(&file, &tools) {
                Ok(manifest) => drop(tools.insert(manifest.name().to_owned(), manifest)),
                Err(fault) => faults.push(fault),
            }
        }
        (tools, faults)
    }

    fn one(&self, file: &ManifestFile<'_>, before: &BTreeMap<String, Manifest>) -> Result<Manifest, Fault> {
        let fault = |name: &str, why| Fault { path: file.path.to_owned(), name: name.to_owned(), why };
        let manifest = file.read().map_err(|why| fault(file.stem, why))?;
        let name = manifest.name();
        if self.is_built_in(name) {
            return Err(fault(name, format!("`{name}` is haft's, and no workspace can take its place; rename it")));
        }
        if before.contains_key(name) {
            return Err(fault(name, format!("another manifest is called `{name}`; rename one of them")));
        }
        Ok(manifest)
    }

    /// Whether haft itself has a tool or an alias of this name, or keeps it for the tools of servers.
    pub(crate) fn is_built_in(&self, name: &str) -> bool {
        self.registry.names().contains(name) || name.starts_with(haft_mcp::PREFIX)
    }

    /// What is wrong with the manifests that were trusted.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).faults.clone()
    }

    /// Takes in what was trusted since the last look. Only what was trusted counts, so that a look at the record is
    /// enough; whoever lists or looks up meanwhile waits, and sees all of it.
    fn refresh(&self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = trust::stamp(&self.record);
        if taken.stamp.as_ref() == Some(&stamp) {
            return;
        }
        let folder = self.workspace.path();
        let record = trust::recorded(&self.data, folder).ok().flatten();
        let brought = record.map(|record| record.brought).unwrap_or_default();
        let (tools, mut faults) = self.sort(&brought);
        let mut usable = Vec::new();
        for (name, manifest) in tools {
            let scripts = brought.scripts_of(&manifest, folder);
            match RegisteredTool::new(project_tool(
                &self.workspaces,
                &self.workspace,
                manifest,
                (scripts, Arc::clone(&self.secrets)),
            )) {
                Ok(tool) => usable.push(Arc::new(tool)),
                Err(err) => faults.push(Fault { path: trust::TOOLS.to_owned(), name, why: err.to_string() }),
            }
        }
        // Each has a name of its own by now.
        let layer = Arc::new(Layer::of(usable).0);
        *taken = TrustedLayer { stamp: Some(stamp), layer, faults };
    }

    /// Why there is no tool of this name although the workspace seems to bring one.
    fn why_missing(&self, name: &str) -> Option<ToolError> {
        if let Some(fault) = self.faults().into_iter().find(|fault| fault.name == name) {
            return Some(ToolError::new(ErrorCode::ToolNotFound, format!("there is no tool `{name}`: {fault}")));
        }
        let looked = trust::look(&self.data, self.workspace.path()).ok()?;
        let brings = |file: &ManifestFile<'_>| file.read().is_ok_and(|manifest| manifest.name() == name);
        let file = looked.brought.manifests().find(brings)?;
        let message = format!("`{name}` of `{}` is not trusted; look at it with `haft trust`", file.path);
        Some(ToolError::new(ErrorCode::NotTrusted, message).with("path", file.path))
    }
}

impl LayerSource for ProjectTools {
    fn look<'a>(&'a self, _caller: &'a Caller, _name: Option<&'a str>) -> BoxFuture<'a, Result<(), ToolError>> {
        self.refresh();
        Box::pin(std::future::ready(Ok(())))
    }

    fn layer(&self, _caller: &Caller) -> Arc<Layer> {
        Arc::clone(&self.taken.lock().unwrap_or_else(PoisonError::into_inner).layer)
    }

    fn missing(&self, _caller: &Caller, name: &str) -> Option<ToolError> {
        self.why_missing(name)
    }
}

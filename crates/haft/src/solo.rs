//! The house of one owner in one folder: embedded SQLite, approvals in the terminal, in the editor or through the client.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use futures_util::future::BoxFuture;
use haft_mcp::{Callers, ClientPeer};
use haft_runtime::{
    AutoApprove, Caller, CallerKind, CallerRecord, Catalog, Delivery, Doors, ErrorCode, Guard, HouseWide, OnePolicy,
    Permissions, Pipeline, Question, Redactor, Scope, Source, ToolError, ToolSpec, Within, Workbench, WorkspaceId,
};
use haft_store::Store;
use haft_tools::{OpenWorkspaces, SandboxWorkbench, Workspace, Workspaces};

use crate::{
    house::ServingOptions,
    notify::Notifier,
    project::ProjectTools,
    rooms::{self, House},
    settings::Settings,
    upstreams,
};

/// Where the calls of a folder belong.
pub(crate) fn scope_of(folder: &Path) -> Scope {
    Scope::local(folder.to_string_lossy())
}

/// The right to work across everything that the store holds, for somebody in a folder.
pub(crate) fn wide(folder: &Path) -> HouseWide {
    HouseWide::of_house(Within::Only(WorkspaceId::new(folder.to_string_lossy())))
}

/// The house of a folder.
pub(crate) async fn build(
    settings: Settings,
    store: Store,
    workspace: Workspace,
    folder: &Path,
    served: ServingOptions,
) -> Result<House> {
    let (scope, workspace) = (scope_of(folder), Arc::new(workspace));
    let open = OpenWorkspaces::new(&settings.data).with(scope.clone(), workspace.clone());
    let workspaces: Arc<dyn Workspaces> = Arc::new(open);
    let workbench: Arc<dyn Workbench> = Arc::new(SandboxWorkbench::new(workspaces.clone()));
    let registry = rooms::code(&store, (&workspaces, workspace.web_search_shown()), &workbench)?;
    let project = Arc::new(ProjectTools::beside(&registry, (&workspaces, &workspace), &settings));
    let upstreams = upstreams::of(&settings, &workspace);
    let layers: Vec<Arc<dyn haft_runtime::LayerSource>> = vec![registry.clone(), project.clone(), upstreams.clone()];
    let catalog = rooms::catalogue(layers, &settings, served.only);
    let listed: Arc<dyn Catalog> = catalog.clone();
    rooms::know_the_catalogue(&registry, &listed)?;
    let here = Within::Only(WorkspaceId::new(folder.to_string_lossy()));
    let caller = Caller::owner(settings.user.clone(), scope.clone(), Source::Cli);
    let notifier = Arc::new(Notifier::new(&settings));
    let pipeline = Pipeline::new(Doors {
        catalog: catalog.clone(),
        guard: Arc::new(OwnerGuard::new(scope.clone())),
        workbench: workbench.clone(),
        questions: Arc::new(store.clone()),
        journal: Arc::new(store.clone()),
        deliveries: std::iter::once(notifier.clone() as Arc<dyn Delivery>).chain(served.others).collect(),
        house: wide(folder),
        policies: Arc::new(OnePolicy::new(rooms::policy(&settings, &catalog.tools(&caller)))),
        limits: rooms::limits(&settings),
        spans: None,
    });
    let redactor = Redactor::default();
    let house = House {
        workspace,
        pipeline,
        catalog,
        registry,
        store,
        workbench,
        settings,
        scope,
        here,
        caller,
        redactor,
        project,
        upstreams,
        notifier,
    };
    house.pipeline.recover().await?;
    house.pipeline.expire().await?;
    Ok(house)
}

/// The owner may do everything in the owner's own workspace, and nobody else anything.
pub struct OwnerGuard {
    scope: Scope,
}

impl OwnerGuard {
    /// For the owner's workspace.
    pub fn new(scope: Scope) -> Self {
        Self { scope }
    }
}

impl Guard for OwnerGuard {
    fn permit<'a>(&'a self, caller: &'a Caller, tool: &'a ToolSpec) -> BoxFuture<'a, Result<(), ToolError>> {
        let at_home = caller.id.kind == CallerKind::Owner && caller.scope == self.scope;
        let may = at_home && caller.permissions.allow(&tool.permission);
        let refusal = || {
            let message = format!("`{}` may not be used here by {}: another workspace", tool.name, caller.name);
            ToolError::new(ErrorCode::Forbidden, message)
        };
        Box::pin(std::future::ready(if may { Ok(()) } else { Err(refusal()) }))
    }

    fn may_answer<'a>(&'a self, caller: &'a Caller, question: &'a Question) -> BoxFuture<'a, Result<(), ToolError>> {
        let is_owner = caller.id.kind == CallerKind::Owner && caller.scope.tenant() == self.scope.tenant();
        let refusal = || {
            let message = format!("{} may not be answered by {}; its owner can", question.call, caller.name);
            ToolError::new(ErrorCode::Forbidden, message)
        };
        Box::pin(std::future::ready(if is_owner { Ok(()) } else { Err(refusal()) }))
    }

    fn most_unasked(&self, caller: &Caller) -> AutoApprove {
        if caller.id.kind == CallerKind::Owner { AutoApprove::Everything } else { AutoApprove::Nothing }
    }

    fn permissions_of<'a>(
        &'a self,
        _scope: &'a Scope,
        recorded: &'a CallerRecord,
    ) -> BoxFuture<'a, Result<Permissions, ToolError>> {
        let is_owner = recorded.who.id.kind == CallerKind::Owner;
        let permissions = if is_owner { Permissions::everything() } else { Permissions::none() };
        Box::pin(std::future::ready(Ok(permissions)))
    }
}

/// Every client that gets this far is the owner's: over standard input and output because the owner has started it, over HTTP
/// because it has the owner's token.
pub struct OwnerCallers {
    owner: Caller,
}

impl OwnerCallers {
    /// Of this owner.
    pub fn new(owner: &Caller) -> Self {
        Self { owner: Caller { source: Source::Mcp, ..owner.clone() } }
    }

    fn named(&self, client: &ClientPeer<'_>, name: String) -> Caller {
        Caller { name, ..client.admitted.unwrap_or(&self.owner).clone() }
    }
}

impl Callers for OwnerCallers {
    fn caller<'a>(&'a self, client: ClientPeer<'a>) -> BoxFuture<'a, Result<Caller, ToolError>> {
        Box::pin(std::future::ready(Ok(self.named(&client, client.name.clone()))))
    }

    fn answerer<'a>(&'a self, client: ClientPeer<'a>) -> BoxFuture<'a, Result<Caller, ToolError>> {
        let name = format!("{} through {}", self.owner.name, client.name);
        Box::pin(std::future::ready(Ok(self.named(&client, name))))
    }
}

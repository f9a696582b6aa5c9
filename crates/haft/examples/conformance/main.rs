//! What the official MCP conformance suite expects a server to have: its tools as ordinary tools behind our own server,
//! and beside them its resources and prompts. Prints the address it serves at, and serves until its input ends.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a program for tests says where it is, or fails")]

mod beside;
mod tools;

use std::{path::Path, sync::Arc};

use axum::Router;
use beside::Beside;
use haft::house::{OwnerCallers, OwnerGuard};
use haft_mcp::{MayApprove, QuestionListeners, Server, ServerDeps};
use haft_runtime::{
    AutoApprove, CallId, Caller, Delivery, Doors, HouseWide, Isolation, Layers, Limits, OnePolicy, Pipeline, Policy,
    Registry, Scope, Source, Within,
};
use haft_store::{Durability, Store};
use haft_tools::{OpenWorkspaces, SandboxWorkbench};
use tokio::{io::AsyncReadExt, net::TcpListener};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(&folder.path().join("data"), Durability::Normal).await.expect("a store");
    let server = server(&store, folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let stop = CancellationToken::new();
    let service = haft_mcp::over_http(Beside(server.clone()), address, stop.clone());
    println!("http://{address}/mcp");
    let app = haft_server::shaped(Router::new().nest_service("/mcp", service));
    let serving = axum::serve(listener, app).into_future();
    let mut rest = Vec::new();
    tokio::select! {
        served = serving => served.expect("to serve"),
        _end = async { tokio::io::stdin().read_to_end(&mut rest).await } => stop.cancel(),
    }
    server.finish().await;
    store.close().await.expect("everything written");
}

/// Our own server, with the tools of the suite.
fn server(store: &Store, folder: &Path) -> Server {
    let registry = Arc::new(Registry::with(tools::all()).expect("tools"));
    tools::let_change(&registry);
    let catalog = Arc::new(Layers::new(vec![registry]));
    let (asked, scope) = (Arc::new(QuestionListeners::default()), Scope::local("conformance"));
    let (questions, journal) = (Arc::new(store.clone()), Arc::new(store.clone()));
    let pipeline = Pipeline::new(Doors {
        catalog: catalog.clone(),
        guard: Arc::new(OwnerGuard::new(scope.clone())),
        workbench: Arc::new(SandboxWorkbench::new(Arc::new(OpenWorkspaces::new(folder)))),
        questions: questions.clone(),
        journal: journal.clone(),
        deliveries: vec![asked.clone() as Arc<dyn Delivery>],
        house: HouseWide::of_house(Within::Everything),
        policies: Arc::new(OnePolicy::new(Policy::without_rules(Isolation::None))),
        limits: Limits::default(),
        spans: None,
    });
    let store = store.clone();
    Server::new(ServerDeps {
        pipeline,
        catalog,
        questions,
        journal,
        asked,
        callers: Arc::new(OwnerCallers::new(&Caller::owner("conformance", scope, Source::Mcp))),
        auto_approve: AutoApprove::Reads,
        may_approve: MayApprove::default(),
        card: Box::new(|question| question.reason.clone()),
        stop: Box::new(move |scope: &Scope, call: CallId| {
            let (store, scope) = (store.clone(), scope.clone());
            Box::pin(async move { drop(store.want_stop(&scope, &call).await) })
        }),
        key: [7; 32],
    })
}

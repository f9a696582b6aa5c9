//! What the official MCP conformance suite runs as a client: our own upstream client, and somebody who logs in wherever it
//! leads. It lists the tools of the server that its last argument names, and calls each.
#![allow(
    clippy::print_stderr,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a program for tests says what went wrong, or fails, and is told what to do by its environment"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use haft_mcp::{
    Endpoint, EndpointLogin, EntryPlace, LaunchedServer, LoginAnswer, LoginStore, LoginTokens, LoginWish, PinStore,
    ServerLogins, ServerPins, Transport, UpstreamLogin, UpstreamPlan, UpstreamSpec, Upstreams, tools_of,
};
use haft_runtime::{CallId, Caller, ErrorCode, Redactor, Scope, Source, ToolCtx, ToolError};
use haft_sandbox::web::{
    AllowRemedy, Bytes, FetchLimits, HeaderMap, Method, Request, Url, WebClient, WebRules, header,
};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The address of a document that the suite expects, and never fetches.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
const BACK: &str = "http://127.0.0.1:9/back";
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> ExitCode {
    let url = env::args().next_back().expect("the address of a server");
    let session = ClientSession::new(&url);
    // A login for each right that the server asks for; the client itself says when there is no sense in another.
    for _ in 0..10 {
        match session.calls().await {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) if error.code == ErrorCode::NeedsLogin => {
                if let Err(why) = session.log_in().await {
                    eprintln!("{why}");
                    return ExitCode::FAILURE;
                }
            }
            Err(error) => {
                eprintln!("{}", error.message);
                return ExitCode::FAILURE;
            }
        }
    }
    eprintln!("it asked for a login again and again");
    ExitCode::FAILURE
}

/// One user of one server.
struct ClientSession {
    url: String,
    client: Arc<WebClient>,
    kept: Arc<MemoryLogin>,
    upstreams: Arc<Upstreams>,
    caller: Caller,
}

impl ClientSession {
    fn new(url: &str) -> Self {
        let allowed = ["localhost", "127.0.0.1"].map(|host| host.parse().expect("a host"));
        let ports = (1..=u16::MAX).collect();
        let rules = WebRules { ports, allowed: allowed.to_vec(), remedy: AllowRemedy::Settings };
        let limits = FetchLimits { connect: PATIENCE, silence: PATIENCE };
        let (client, kept) = (Arc::new(WebClient::new(rules, limits)), Arc::new(MemoryLogin::default()));
        let login = UpstreamLogin::new(client.clone(), url, kept.clone());
        let endpoint = Endpoint {
            name: "suite".to_owned(),
            client: client.clone(),
            url: url.to_owned(),
            headers: Vec::new(),
            patience: PATIENCE,
            entry: EntryPlace::Settings,
            login: EndpointLogin::Of(login),
        };
        let upstreams = Upstreams::new(vec![UpstreamPlan {
            spec: spec(endpoint),
            pins: Arc::new(MemoryPins::default()),
            can_be_met: true,
        }]);
        let caller = Caller::owner("suite", Scope::local("suite"), Source::Cli);
        Self { url: url.to_owned(), client, kept, upstreams, caller }
    }

    /// Calls every tool of the server.
    async fn calls(&self) -> Result<(), ToolError> {
        let server = self.upstreams.server("suite").expect("the server");
        server.upstream.meet(PATIENCE).await?;
        for tool in tools_of(&server.upstream, &server.pins.read()) {
            let ctx = ToolCtx::detached(CallId::new(), self.caller.clone());
            tool.run(&ctx, &json!({})).await?;
        }
        Ok(())
    }

    /// Goes where the client leads, says yes there, and brings the answer back.
    async fn log_in(&self) -> Result<(), String> {
        let before = self.kept.tokens();
        let discovered = UpstreamLogin::discover(&self.client, &self.url).await?;
        let begun = discovered.begin(&self.client, &self.url, &wish(), before.as_ref()).await?;
        let answer = self.browsed(&begun.url).await?;
        if answer.state.as_ref() != Some(&begun.state) {
            return Err("another state came back".to_owned());
        }
        let tokens = begun.attempt.finish(&self.client, &answer).await?;
        self.kept.keep(tokens);
        Ok(())
    }

    async fn browsed(&self, address: &str) -> Result<LoginAnswer, String> {
        let target = self.client.target(address).map_err(|err| err.to_string())?;
        let (method, headers, body) = (Method::GET, HeaderMap::new(), Bytes::new());
        let request = Request { target, method, headers, body, until: Instant::now() + PATIENCE, silence: None };
        let response = self.client.send(&request).await.map_err(|err| err.to_string())?;
        let back = response.headers.get(header::LOCATION).and_then(|to| to.to_str().ok()).ok_or("it leads nowhere")?;
        let back = Url::parse(back).map_err(|err| err.to_string())?;
        let field =
            |name: &str| back.query_pairs().find(|(field, _)| field == name).map(|(_, value)| value.into_owned());
        Ok(LoginAnswer { code: field("code"), state: field("state"), iss: field("iss"), error: field("error") })
    }
}

/// How it wants to log in: as the suite says, where it says something.
fn wish() -> LoginWish {
    let context: Value = env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|context| serde_json::from_str(&context).ok())
        .unwrap_or_default();
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    LoginWish {
        client: text("client_id").map(|id| (id, text("client_secret"))),
        scopes: Vec::new(),
        redirect_uri: BACK.to_owned(),
        document: Some(DOCUMENT.to_owned()),
    }
}

fn spec(endpoint: Endpoint) -> UpstreamSpec {
    UpstreamSpec {
        name: "suite".to_owned(),
        command: endpoint.url.clone(),
        host: Some("localhost".to_owned()),
        launch: Arc::new(move |_person| {
            let transport = Transport::Http(endpoint.clone());
            let launched = LaunchedServer { transport, redactor: Redactor::default(), named: Redactor::default() };
            Box::pin(std::future::ready(Ok(launched)))
        }),
        timeout: PATIENCE,
        allowed_tools: None,
        denied_tools: BTreeSet::new(),
        effects: BTreeMap::new(),
        trusted: false,
        network: false,
        writes: false,
        entry: EntryPlace::Settings,
        logins: Some(Arc::new(OneUser)),
    }
}

struct OneUser;

impl ServerLogins for OneUser {
    fn person<'a>(&'a self, _caller: &'a Caller) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

#[derive(Default)]
struct MemoryLogin(Mutex<Option<(i64, LoginTokens)>>);

impl MemoryLogin {
    fn tokens(&self) -> Option<LoginTokens> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(_, tokens)| tokens.clone())
    }

    fn keep(&self, tokens: LoginTokens) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = kept.as_ref().map_or(1, |(revision, _)| revision + 1);
        *kept = Some((revision, tokens));
    }
}

impl LoginStore for MemoryLogin {
    fn read(&self) -> BoxFuture<'_, Result<Option<(i64, LoginTokens)>, ToolError>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(std::future::ready(Ok(kept)))
    }

    fn take_turn(&self, _revision: i64, _length: Duration) -> BoxFuture<'_, Result<bool, ToolError>> {
        Box::pin(std::future::ready(Ok(true)))
    }

    fn save<'a>(&'a self, _revision: i64, tokens: &'a LoginTokens) -> BoxFuture<'a, Result<bool, ToolError>> {
        self.keep(tokens.clone());
        Box::pin(std::future::ready(Ok(true)))
    }
}

#[derive(Default)]
struct MemoryPins(Mutex<(u64, ServerPins)>);

impl PinStore for MemoryPins {
    fn read(&self) -> ServerPins {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn change<'a>(
        &'a self,
        change: &'a mut (dyn FnMut(&mut ServerPins) + Send),
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        let mut pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut pins.1);
        pins.0 += 1;
        Box::pin(std::future::ready(Ok(())))
    }

    fn version(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.to_string()
    }
}

//! The shape of a tool that asks a language server about a file.

use std::{
    future::Future,
    marker::PhantomData,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use haft_runtime::{Effect, ErrorCode, Isolation, Ran, Tool, ToolCtx, ToolError};
use haft_sandbox::WorkspacePath;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    client::LanguageClient,
    error::LanguageServerError,
    running::{LanguageServerStart, RunningServers, cannot_be_had},
    server_state::Needs,
    servers::LanguageServer,
    session::LanguageSession,
};
use crate::{refusal::Trying, workspace::Workspace, workspaces::Workspaces};

/// A tool that asks a language server about a file.
pub(crate) trait LanguageTool: Send + Sync + 'static {
    /// What goes in; its doc comment is the tool's description.
    type Input: DeserializeOwned + JsonSchema + Send + Sync;
    /// What comes out, beside whether the server was ready.
    type Output: LanguageOutput;

    /// The name it is called by.
    const NAME: &'static str;
    /// What its answer rests on.
    const NEEDS: Needs;

    /// The file.
    fn path(input: &Self::Input) -> &str;

    /// Asks, in a talk about that file.
    fn ask(
        talk: &mut LanguageSession<'_>,
        input: &Self::Input,
    ) -> impl Future<Output = Result<Self::Output, LanguageServerError>> + Send;
}

/// What a tool answers.
pub(crate) trait LanguageOutput: Serialize + JsonSchema + Send {
    /// The answer for the model.
    fn text(&self) -> String;

    /// Whether something is missing that no waiting brings; the text then says what.
    fn lacks(&self) -> bool {
        false
    }
}

/// Such a tool, at work in the workspace of each call.
pub(crate) struct LanguageServerTool<A> {
    workspaces: Arc<dyn Workspaces>,
    asks: PhantomData<A>,
}

/// An answer, and whether it is whole.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LanguageAnswer<O> {
    #[serde(flatten)]
    value: O,
    /// Whether the server had read, and where that matters checked, the project; if not, the answer may lack something.
    ready: bool,
    #[serde(skip)]
    server: Value,
}

impl<A: LanguageTool> LanguageServerTool<A> {
    pub(crate) fn new(workspaces: Arc<dyn Workspaces>) -> Self {
        Self { workspaces, asks: PhantomData }
    }

    async fn answer(&self, ctx: &ToolCtx, input: &A::Input) -> Result<LanguageAnswer<A::Output>, ToolError> {
        let workspace = &*self.workspaces.of(ctx.scope())?;
        let running = workspace.language_servers()?;
        let path = A::path(input).to_owned();
        let looking = workspace.files.look(ctx, move |root, _| {
            let place = root.place(&path).trying("ask about")?;
            root.open_file(&place).map(|open| open.place).trying("ask about")
        });
        let place = looking.await?;
        let server = running.servers.for_file(place.as_path(), workspace.toolchains()?)?;
        loop {
            let context = workspace.command_context(&ctx.call_id)?;
            let (client, was) = running.client(ctx, context, server.clone()).await?;
            match Self::once((ctx, workspace), running, (&client, was), (&place, input)).await {
                Ok(answer) => {
                    running.worked(&server.language);
                    return Ok(answer);
                }
                Err(LanguageServerError::Broken) => broke(running, &client).await?,
                Err(LanguageServerError::Late(limit)) => {
                    client.kill();
                    return Err(late(&server, limit));
                }
                Err(LanguageServerError::Refused { code, message }) => return Err(refused(&server, code, &message)),
                Err(LanguageServerError::Told(error)) => return Err(error),
            }
        }
    }

    async fn once(
        (ctx, workspace): (&ToolCtx, &Workspace),
        running: &RunningServers,
        (client, was): (&Arc<LanguageClient>, LanguageServerStart),
        (place, input): (&WorkspacePath, &A::Input),
    ) -> Result<LanguageAnswer<A::Output>, LanguageServerError> {
        let _using = client.used();
        let mut talk =
            LanguageSession::begin((ctx, workspace), Arc::clone(client), &running.servers, (place, A::NEEDS)).await?;
        let began = client.started.elapsed();
        let value = A::ask(&mut talk, input).await?;
        let mut server = json!({
            "language": client.server.language,
            "name": talk.offered.name,
            "version": talk.offered.version,
            "kept": workspace.commands.outlive_calls(),
        });
        if was == LanguageServerStart::Started {
            server["startedMs"] = json!(u64::try_from(began.as_millis()).unwrap_or(u64::MAX));
        }
        if let Some(complaint) = client.heard.borrow().complaint() {
            server["says"] = json!(complaint);
        }
        if !client.sees_all.load(Ordering::Relaxed) {
            server["comparedFiles"] = json!("open documents only: the workspace has too many files of this kind");
        }
        Ok(LanguageAnswer { ready: talk.ready && !value.lacks(), value, server })
    }
}

/// What a server that broke leaves; refused when it never began. One that was just about to end did not break.
async fn broke(running: &RunningServers, client: &LanguageClient) -> Result<(), ToolError> {
    if client.heard.borrow().leaves {
        return Ok(());
    }
    let words = client.last_words().await;
    client.kill();
    running.broke(&client.server.language, words.clone());
    match client.heard.borrow().offered.is_some() {
        true => Ok(()),
        false => Err(cannot_be_had(&client.server, &running.servers.settings_file, ("could not be started", &words))),
    }
}

fn late(server: &LanguageServer, limit: Duration) -> ToolError {
    let message = format!(
        "`{}` did not answer within {} s and was ended; the next call starts it again, and `lsp.timeout` in the settings \
         says how long it may take",
        server.command.join(" "),
        limit.as_secs_f32()
    );
    ToolError::new(ErrorCode::Timeout, message)
}

fn refused(server: &LanguageServer, code: i64, message: &str) -> ToolError {
    let short: String = message.chars().take(2000).collect();
    let message = format!("`{}` refused to answer: {short} ({code})", server.command.join(" "));
    ToolError::new(ErrorCode::ExecutionError, message).with("serverCode", code)
}

impl<A: LanguageTool> Tool for LanguageServerTool<A> {
    type Input = A::Input;
    type Output = LanguageAnswer<A::Output>;

    const NAME: &'static str = A::NAME;
    const CATEGORY: &'static str = "lsp";
    const WORST: Effect = Effect::Read;
    /// A large project takes minutes to be read; the settings say how long a call waits for that.
    const TIMEOUT: Duration = Duration::from_secs(300);

    async fn run(&self, ctx: &ToolCtx, input: A::Input) -> Result<Ran<LanguageAnswer<A::Output>>, ToolError> {
        let output = self.answer(ctx, &input).await?;
        Ok(Ran::Done { output, isolation: Some(Isolation::Namespaces), staged: None })
    }
}

impl<O: LanguageOutput> haft_runtime::Output for LanguageAnswer<O> {
    fn text(&self) -> String {
        let text = self.value.text();
        match self.ready || self.value.lacks() {
            true => text,
            false => format!("{text}\n(the language server was still loading; ask again for more)"),
        }
    }

    fn metadata(&self) -> Map<String, Value> {
        Map::from_iter([("server".to_owned(), self.server.clone())])
    }
}

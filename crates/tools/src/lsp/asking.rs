//! The shape of a tool that asks a language server about a file.

use std::{
    future::Future,
    marker::PhantomData,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use haft_runtime::{Effect, Isolation, Ran, Shown, Tool, ToolCtx, ToolError, ToolFacts};
use haft_sandbox::WorkspacePath;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    client::LanguageClient,
    documents::read,
    error::{LanguageServerError, ServerLife, Unanswered, UnusableServer, late, refused, slow, still_loading},
    running::{LanguageServerStart, RunningServers, none_usable},
    server_state::{Needs, cut},
    servers::LanguageServer,
    session::LanguageSession,
    text::{Text, TextPosition, Units},
};
use crate::{refusal::Trying, workspace::Workspace, workspaces::Workspaces};

/// How many letters of the last words of a server that was passed over are told.
const LAST_WORDS: usize = 300;

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

    /// The position in it, where the tool asks about one.
    fn position(_input: &Self::Input) -> Option<TextPosition> {
        None
    }

    /// Asks, in a talk about that file.
    fn ask(
        talk: &mut LanguageSession<'_>,
        input: &Self::Input,
    ) -> impl Future<Output = Result<Self::Output, LanguageServerError>> + Send;
}

/// What a tool answers.
pub(crate) trait LanguageOutput: Serialize + JsonSchema + Send {
    /// The answer for the model.
    fn text(&self, at: AnswerTime) -> String;

    /// Whether it says that there is nothing, which only a server that is ready can know.
    fn found_nothing(&self) -> bool {
        false
    }

    /// Whether something is missing that no waiting brings; the text then says what.
    fn lacks(&self) -> bool {
        false
    }
}

/// When a server has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerTime {
    /// Once it was ready.
    Ready,
    /// Before that, so that something may be missing.
    Early,
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
    /// False while the server is still loading: the answer may be incomplete.
    ready: bool,
    /// What the server is still doing, or which other server was tried first and why it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip)]
    time: AnswerTime,
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
        let (path, position) = (A::path(input).to_owned(), A::position(input));
        let looking = workspace.files.look(ctx, move |root, _| {
            let place = root.place(&path).trying("ask about")?;
            let place = root.open_file(&place).map(|open| open.place).trying("ask about")?;
            // What no server could answer is refused before one is started.
            let (place, text, _) = read(root, &place)?;
            if let Some(position) = position {
                Text::new(text).position(position, Units::Utf32, &place.to_string())?;
            }
            Ok(place)
        });
        let place = looking.await?;
        let mut unusable = Vec::new();
        for server in running.servers.for_file(place.as_path(), workspace.toolchains()?)? {
            match Self::ask_server((ctx, workspace), running, &server, (&place, input)).await {
                Ok(answer) => return Ok(answer.passing_over(&unusable)),
                Err(Unanswered::Unusable(one)) => unusable.push(one),
                Err(Unanswered::Told(error)) => return Err(error),
            }
        }
        Err(none_usable(&unusable, &running.servers.settings_file))
    }

    /// Asks one server, which is started again where it breaks.
    async fn ask_server(
        (ctx, workspace): (&ToolCtx, &Workspace),
        running: &RunningServers,
        server: &LanguageServer,
        question: (&WorkspacePath, &A::Input),
    ) -> Result<LanguageAnswer<A::Output>, Unanswered> {
        loop {
            let context = workspace.command_context(&ctx.call_id)?;
            let (client, was) = running.client(ctx, context, server.clone()).await?;
            let told = match Self::once((ctx, workspace), running, (&client, was), question).await {
                Ok(answer) => {
                    running.worked(server);
                    return Ok(answer);
                }
                Err(LanguageServerError::Broken) => {
                    broke(running, &client).await?;
                    continue;
                }
                Err(LanguageServerError::Loading) => still_loading(&client, ServerLife::of(workspace)),
                Err(LanguageServerError::Late(limit)) if client.is_at_work(A::NEEDS).await => slow(server, limit),
                Err(LanguageServerError::Late(limit)) => {
                    client.kill();
                    late(server, limit)
                }
                Err(LanguageServerError::Refused { code, message }) => refused(server, code, &message),
                Err(LanguageServerError::Told(error)) => error,
            };
            return Err(Unanswered::Told(told));
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
        let value = talk.answer::<A>(input).await?;
        let mut server = json!({
            "language": client.server.language,
            "name": talk.offered.name,
            "version": talk.offered.version,
            "kept": workspace.commands.outlive_calls(),
        });
        if was == LanguageServerStart::Started {
            server["startedMs"] = json!(u64::try_from(client.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        }
        let heard = client.heard.borrow();
        if let Some(complaint) = heard.complaint() {
            server["says"] = json!(complaint);
        }
        if !client.sees_all.load(Ordering::Relaxed) {
            server["comparedFiles"] = json!("open documents only: the workspace has too many files of this kind");
        }
        let time = if talk.ready { AnswerTime::Ready } else { AnswerTime::Early };
        let is_early = time == AnswerTime::Early && !value.lacks();
        let note = is_early.then(|| format!("{} is {}, ask again", talk.offered.name, heard.progress()));
        Ok(LanguageAnswer { ready: talk.ready && !value.lacks(), value, note, time, server })
    }
}

impl<O> LanguageAnswer<O> {
    /// Says which servers were tried before the one that answered, and why they did not.
    fn passing_over(mut self, unusable: &[UnusableServer]) -> Self {
        let words = |one: &UnusableServer| {
            let words = one.words.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("`{}` {}: {}", one.server.command.join(" "), one.what, cut(&words, LAST_WORDS))
        };
        let passed_over: Vec<String> = unusable.iter().map(words).collect();
        if !passed_over.is_empty() {
            let all = self.note.take().into_iter().chain(passed_over.iter().cloned());
            self.note = Some(all.collect::<Vec<_>>().join("; "));
            self.server["passedOver"] = json!(passed_over);
        }
        self
    }
}

/// What a server that broke leaves; unusable when it never began. One that was just about to end did not break.
async fn broke(running: &RunningServers, client: &LanguageClient) -> Result<(), UnusableServer> {
    if client.heard.borrow().leaves {
        return Ok(());
    }
    let words = client.last_words().await;
    client.kill();
    running.broke(&client.server, words.clone());
    if client.heard.borrow().offered.is_some() {
        return Ok(());
    }
    let (server, what) = (Box::new(client.server.clone()), "could not be started".to_owned());
    Err(UnusableServer { server, what, words })
}

impl<A: LanguageTool> Tool for LanguageServerTool<A> {
    type Input = A::Input;
    type Output = LanguageAnswer<A::Output>;

    /// A large project takes minutes to be read; the settings say how long a call waits for that.
    const FACTS: ToolFacts =
        ToolFacts { timeout: Duration::from_secs(300), ..ToolFacts::new(A::NAME, "lsp", Effect::Read) };

    fn shown(&self) -> Shown {
        self.workspaces.language_servers_shown()
    }

    async fn run(&self, ctx: &ToolCtx, input: A::Input) -> Result<Ran<LanguageAnswer<A::Output>>, ToolError> {
        let output = self.answer(ctx, &input).await?;
        Ok(Ran::Done { output, isolation: Some(Isolation::Namespaces), staged: None })
    }
}

impl<O: LanguageOutput> haft_runtime::Output for LanguageAnswer<O> {
    fn text(&self) -> String {
        let text = self.value.text(self.time);
        match &self.note {
            None => text,
            Some(note) => format!("{text}\n({note})"),
        }
    }

    fn metadata(&self) -> Map<String, Value> {
        Map::from_iter([("server".to_owned(), self.server.clone())])
    }
}

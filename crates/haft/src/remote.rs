//! A gateway as the commands use it: what they do in the house of a folder, done over REST.
//!
//! Everything comes back as the types that a house gives, so that a command does not know where its calls are.

mod answers;
mod client;
mod events;
mod follow;
pub(crate) mod login;
mod running;
mod views;

use std::{path::Path, time::Duration};

use anyhow::Result;
use haft_runtime::{
    CallId, CallRecord, Caller, ChangeList, End, ErrorCode, Outcome, Question, QuestionAndAnswer, Redactor, Source,
    ToolError, ToolSpec, Within, WorkspaceId,
};
use haft_store::CallFilter;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    backend::{ListedCall, ListedTool},
    settings::Settings,
    show::timeline::Story,
};
pub(crate) use client::{Client, KEY};
use client::{RequestError, query};
pub(crate) use follow::RemoteFollower;
use views::{RemoteCall, RemoteCard, RemoteStory, scope_of};

/// The most that a server gives on one page.
const PAGE: u32 = 200;
/// Calls with all that belongs to them are long.
const DETAILED_PAGE: u32 = 50;
/// How long one request for an outcome is held.
const ONE_LOOK: Duration = Duration::from_secs(20);

/// A gateway, and who asks there.
pub(crate) struct Remote {
    client: Client,
    /// What the user's own settings say.
    pub(crate) settings: Settings,
    /// Whoever asks, in the workspace that was named.
    pub(crate) caller: Caller,
    /// The workspace that lists are about; everything where none was named.
    pub(crate) here: Within,
    /// The server has taken out the secrets that it knows; this marks what looks like one.
    pub(crate) redactor: Redactor,
}

impl Remote {
    /// The gateway at an address, and there a workspace by its name.
    pub(crate) async fn open(url: &str, workspace: Option<&Path>) -> Result<Self> {
        let settings = Settings::of_user().and_then(Settings::with_environment);
        let settings = settings.map_err(|err| crate::commands::mistake(format!("{err:#}")))?;
        let client = Client::open(url, &settings)?;
        let here = match workspace {
            Some(name) => Within::Only(workspace_id(&client, &name.to_string_lossy()).await?),
            None => Within::Everything,
        };
        // Who asks, the gateway knows by the key; this only says where.
        let caller = Caller::owner(settings.user.clone(), scope_of(here.only().cloned()), Source::Cli);
        Ok(Self { client, settings, caller, here, redactor: Redactor::default() })
    }

    /// Its address.
    pub(crate) fn url(&self) -> &str {
        self.client.url()
    }

    /// The call that was named, if this caller may see it.
    pub(crate) async fn record(&self, call: &CallId) -> Result<Option<CallRecord>> {
        match self.client.get(&format!("/api/calls/{call}/story?brief=true")).await {
            Ok(story) => Ok(Some(read::<RemoteStory>(story)?.call.into_record())),
            Err(RequestError { error, .. }) if error.code == ErrorCode::NotFound => Ok(None),
            Err(err) => Err(err.into()),
        }
    }

    /// Everything that is known of a call.
    pub(crate) async fn story(&self, call: &CallId) -> Result<Story> {
        Ok(read::<RemoteStory>(self.client.get(&format!("/api/calls/{call}/story")).await?)?.into_story())
    }

    /// What the yes to a call was about, as the gateway signs it.
    pub(crate) async fn receipt(&self, call: &CallId) -> Result<Value> {
        Ok(self.client.get(&format!("/api/calls/{call}/receipt")).await?)
    }

    /// The calls that a filter lets through, newest first.
    pub(crate) async fn calls(&self, filter: &CallFilter) -> Result<Vec<ListedCall>> {
        let mut found = Vec::new();
        let mut after = filter.before.clone().map(|before| before.to_string());
        loop {
            let left = filter.limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            let fields = [
                ("details", Some("true".to_owned())),
                ("limit", Some(left.min(DETAILED_PAGE).to_string())),
                ("after", after.take()),
                ("tool", filter.tool.clone()),
                ("status", filter.status.clone()),
                ("since", filter.since.map(|since| since.to_string())),
                ("workspace", self.here.only().map(ToString::to_string)),
            ];
            let page: RemotePage<RemoteCall> = read(self.client.get(&query("/api/calls", &fields)).await?)?;
            found.extend(page.items.into_iter().map(RemoteCall::into_listed));
            match page.next {
                Some(next) if found.len() < filter.limit as usize => after = Some(next),
                Some(_) | None => return Ok(found),
            }
        }
    }

    /// The last call that did or undid what this one had staged.
    pub(crate) async fn last_turn_of(&self, of: &CallId) -> Result<Option<CallRecord>> {
        let story: RemoteStory = read(self.client.get(&format!("/api/calls/{of}/story?brief=true")).await?)?;
        for relative in story.children.iter().rev() {
            let Some(record) = self.record(&relative.call_id).await? else { continue };
            let ended_well = matches!(record.outcome.as_ref().map(|outcome| &outcome.end), Some(End::Success { .. }));
            if ended_well && record.turn.as_ref().is_some_and(|turn| turn.of == *of) {
                return Ok(Some(record));
            }
        }
        Ok(Some(story.call.into_record()).filter(|record| record.turn.is_some()))
    }

    /// The calls that come from a call or took a turn with its changes, oldest first.
    pub(crate) async fn children(&self, call: &CallId) -> Result<Vec<CallId>> {
        let story: RemoteStory = read(self.client.get(&format!("/api/calls/{call}/story?brief=true")).await?)?;
        Ok(story.children.into_iter().map(|child| child.call_id).collect())
    }

    /// What a call changed, as it stands now.
    pub(crate) async fn changes(&self, call: &CallId) -> Result<ChangeList> {
        let mut shown = self.client.get(&format!("/api/calls/{call}/changes")).await?;
        read(shown["changes"].take())
    }

    /// How a call ended, if it did within a time; of one that goes on as another, how that one did.
    pub(crate) async fn ended(&self, call: &CallId, limit: Duration) -> Result<Option<Outcome>> {
        let seconds = limit.min(ONE_LOOK).as_secs().max(u64::from(!limit.is_zero()));
        Ok(self.outcome_within(call, seconds).await?.filter(|outcome| outcome.finished_at.is_some()))
    }

    /// How a call stands once it has ended or waits for somebody.
    async fn settled(&self, call: &CallId) -> Result<Outcome> {
        loop {
            if let Some(outcome) = self.outcome_within(call, ONE_LOOK.as_secs()).await? {
                return Ok(outcome);
            }
        }
    }

    /// How a call stands now; waits while it has only just begun to wait.
    async fn standing(&self, call: &CallId) -> Result<Outcome> {
        loop {
            if let Some(outcome) = self.outcome_within(call, 0).await? {
                return Ok(outcome);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn outcome_within(&self, call: &CallId, seconds: u64) -> Result<Option<Outcome>> {
        match self.client.get(&format!("/api/calls/{call}/outcome?whole=true&wait={seconds}")).await {
            Ok(outcome) => read(outcome).map(Some),
            Err(RequestError { error, .. }) if error.code == ErrorCode::Busy => Ok(None),
            Err(err) => Err(err.into()),
        }
    }

    /// An outcome with the whole of its result.
    pub(crate) async fn whole(&self, outcome: Outcome) -> Outcome {
        let is_shortened = matches!(&outcome.end, End::Success { result } if result.is_shortened());
        if !is_shortened {
            return outcome;
        }
        // What is there says that it is not all, and where the rest is.
        self.outcome_within(&outcome.tool_call_id, 0).await.ok().flatten().unwrap_or(outcome)
    }

    /// Stops a call, and says how it ended.
    pub(crate) async fn cancel(&self, call: &CallId) -> Result<Outcome> {
        read(self.client.post(&format!("/api/calls/{call}/cancel"), &Value::Null).await?)
    }

    /// The question of a call, and its answer once there is one.
    pub(crate) async fn question(&self, call: &CallId) -> Result<Option<QuestionAndAnswer>> {
        match self.client.get(&format!("/api/approvals/{call}")).await {
            Ok(card) => Ok(Some(read::<RemoteCard>(card)?.into_question()?)),
            Err(RequestError { error, .. }) if error.code == ErrorCode::NotFound => Ok(None),
            Err(err) => Err(err.into()),
        }
    }

    /// The open questions, oldest first.
    pub(crate) async fn open_questions(&self, within: &Within) -> Result<Vec<Question>> {
        let (mut open, mut after) = (Vec::new(), None);
        loop {
            let fields =
                [("state", Some("open".to_owned())), ("limit", Some(PAGE.to_string())), ("after", after.take())];
            let page: RemotePage<RemoteCard> = read(self.client.get(&query("/api/approvals", &fields)).await?)?;
            for card in page.items {
                let (question, _) = card.into_question()?;
                if within.covers(question.workspace.as_ref()) {
                    open.push(question);
                }
            }
            after = page.next;
            if after.is_none() {
                open.reverse();
                return Ok(open);
            }
        }
    }

    /// A tool by its name or another one.
    pub(crate) async fn tool(&self, name: &str) -> Result<Option<ListedTool>> {
        let fields = [("workspace", self.here.only().map(ToString::to_string))];
        match self.client.get(&query(&format!("/api/tools/{}", client::encoded(name)), &fields)).await {
            Ok(tool) => tool_of(tool).map(Some),
            Err(RequestError { error, .. }) if matches!(error.code, ErrorCode::NotFound | ErrorCode::ToolNotFound) => {
                Ok(None)
            }
            Err(err) => Err(err.into()),
        }
    }

    /// Every tool that there is for this caller.
    pub(crate) async fn tools(&self) -> Result<Vec<ListedTool>> {
        let (mut tools, mut after) = (Vec::new(), None);
        loop {
            let fields = [
                ("limit", Some(PAGE.to_string())),
                ("after", after.take()),
                ("enabled", Some("true".to_owned())),
                ("workspace", self.here.only().map(ToString::to_string)),
            ];
            let page: RemotePage<Value> = read(self.client.get(&query("/api/tools", &fields)).await?)?;
            for tool in page.items {
                tools.push(tool_of(tool)?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(tools);
            }
        }
    }

    /// The ids that come before one, to find those that begin alike.
    pub(crate) async fn ids_before(&self, last: &CallId, limit: u32) -> Result<Vec<(CallId, String)>> {
        let fields = [("after", Some(last.to_string())), ("limit", Some(limit.to_string()))];
        let page: RemotePage<RemoteCall> = read(self.client.get(&query("/api/calls", &fields)).await?)?;
        Ok(page.items.into_iter().map(|call| (call.call_id, call.tool)).collect())
    }
}

/// The workspace that a name means at a server.
async fn workspace_id(client: &Client, name: &str) -> Result<WorkspaceId> {
    #[derive(serde::Deserialize)]
    struct Summary {
        id: String,
        name: String,
    }
    let page: RemotePage<Summary> = read(client.get("/api/workspaces").await?)?;
    let found = page.items.iter().find(|workspace| workspace.name == name || workspace.id == name);
    let Some(found) = found else {
        let names: Vec<&str> = page.items.iter().map(|workspace| workspace.name.as_str()).collect();
        let there =
            if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) };
        let message =
            format!("`{}` has no workspace `{name}`: {there}; with --server, --workspace is a name", client.url());
        return Err(ToolError::new(ErrorCode::NotFound, message).into());
    };
    Ok(WorkspaceId::new(found.id.clone()))
}

/// One page of a list.
#[derive(serde::Deserialize)]
struct RemotePage<T> {
    items: Vec<T>,
    next: Option<String>,
}

/// What a server sent, as what it is. One that sends something else is older or newer than this program.
fn read<T: DeserializeOwned>(sent: Value) -> Result<T> {
    serde_json::from_value(sent).map_err(|err| {
        let message =
            format!("the server answered in a way that this haft cannot read ({err}); update the older of both");
        ToolError::new(ErrorCode::UpstreamError, message).into()
    })
}

fn tool_of(sent: Value) -> Result<ListedTool> {
    #[derive(serde::Deserialize)]
    struct Cost {
        tokens: usize,
        shown: String,
    }
    let Cost { tokens, shown } = read(sent.clone())?;
    Ok(ListedTool { spec: read::<ToolSpec>(sent)?, tokens, shown })
}

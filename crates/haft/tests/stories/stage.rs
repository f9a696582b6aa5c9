//! Where the stories play: a folder, a store, and as many houses in it as there would be processes.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use haft::{
    house::{self, House},
    settings::Settings,
};
use haft_runtime::{Answer, CallEvent, CallId, CallRequest, Caller, End, Outcome, Reply, ToolOutput};
use haft_store::Store;
use serde_json::Value;

use crate::database;

/// A workspace and a data folder. Every house opened on it stands for one process.
pub(crate) struct Stage {
    folder: PathBuf,
    pub(crate) settings: Settings,
    _removed_at_the_end: Option<tempfile::TempDir>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let mut stage = Self::on_sqlite();
        stage.settings.store_url = database::create(&stage.folder);
        stage
    }

    /// For stories whose clock stands still: that of a server does not.
    pub(crate) fn on_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let mut stage = Self::at(folder.path());
        stage.settings.store_url = None;
        Self { _removed_at_the_end: Some(folder), ..stage }
    }

    /// The stage of another process.
    pub(crate) fn at(folder: &Path) -> Self {
        let mut settings = Settings::defaults(folder.join("data"));
        settings.store_url = database::address(folder);
        Self { folder: folder.canonicalize().unwrap(), settings, _removed_at_the_end: None }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join("work").join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// A house as another process would have it: its own connections, its own owner.
    pub(crate) async fn house(&self) -> House {
        self.house_with(haft_store::Options { lease: Duration::from_secs(1), ..self.settings.store() }).await
    }

    /// A house that nobody takes for dead, however busy it is.
    pub(crate) async fn living_house(&self) -> House {
        self.house_with(self.settings.store()).await
    }

    async fn house_with(&self, options: haft_store::Options) -> House {
        let store = Store::open(&self.settings.data, options).await.unwrap();
        house::open(self.settings.clone(), store, &self.path("")).await.unwrap()
    }
}

impl Stage {
    /// The house of the next process after one that dies with this call under way. A lock goes with its process, a lease
    /// runs out soon after.
    pub(crate) async fn heir(&self, dying: House, call: &CallId) -> House {
        let scope = dying.scope.clone();
        drop(dying);
        let options = self.settings.store();
        let store = Store::open(&self.settings.data, options).await.unwrap();
        let patience = std::time::Instant::now() + Duration::from_secs(30);
        while store.owner_is_alive(&scope, call).await.unwrap() {
            assert!(std::time::Instant::now() < patience, "the owner of {call} still counts as alive");
            tokio::task::yield_now().await;
        }
        store.close().await.unwrap();
        self.house().await
    }
}

/// A call in mode `safe` that waits for no answer.
pub(crate) fn request(house: &House, tool: &str, input: Value) -> CallRequest {
    CallRequest::new(house.caller.clone(), tool, input)
}

pub(crate) async fn call(house: &House, tool: &str, input: Value) -> Outcome {
    house.pipeline.call(request(house, tool, input)).await
}

/// What somebody called Ann answers to the last question of a call.
pub(crate) async fn answer(house: &House, call: &CallId, answer: Answer) -> Reply {
    let Some((question, _)) = house.question(call).await.unwrap() else { return Reply::NoQuestion };
    house.pipeline.answer(&ann(house), &question.id(), answer).await.unwrap()
}

pub(crate) fn ann(house: &House) -> Caller {
    Caller { name: "ann".into(), ..house.caller.clone() }
}

pub(crate) async fn yes(house: &House, call: &CallId) -> Outcome {
    counted(answer(house, call, Answer::Approve { paths: None }).await)
}

pub(crate) fn counted(reply: Reply) -> Outcome {
    match reply {
        Reply::Counted(outcome) => *outcome,
        other => panic!("the answer did not count: {other:?}"),
    }
}

pub(crate) fn success(outcome: &Outcome) -> &ToolOutput {
    match &outcome.end {
        End::Success { result } => result,
        other => panic!("not a success: {other:?}"),
    }
}

pub(crate) fn code(outcome: &Outcome) -> String {
    outcome.end.error().unwrap_or_else(|| panic!("no error: {outcome:?}")).code.to_string()
}

/// The kinds of a call's events, in order.
pub(crate) async fn kinds(house: &House, call: &CallId) -> Vec<String> {
    let events = house.store.events(&house.scope, call).await.unwrap();
    let kind = |event: &CallEvent| serde_json::to_value(event).unwrap()["event"].as_str().unwrap().to_owned();
    events.iter().map(|(_, _, event)| kind(event)).collect()
}

/// Starts a call that waits, and gives its future once its question is open.
pub(crate) async fn start_waiting(
    house: &House,
    mut request: CallRequest,
) -> (CallId, tokio::task::JoinHandle<Outcome>) {
    let (asked, mut questions) = tokio::sync::mpsc::unbounded_channel();
    request.wait = Duration::from_secs(60);
    request.listener = Some(Arc::new(move |event| {
        if matches!(event, CallEvent::NeedsApproval { .. }) {
            let _ = asked.send(());
        }
    }));
    let id = request.id.clone();
    let calling = tokio::spawn(house.pipeline.call(request).map(|outcome| outcome));
    questions.recv().await.unwrap();
    while house.question(&id).await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    (id, calling)
}

//! The line: resolve, authorize, validate, prepare, approve, execute, record, deliver. Once each, never back.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::{
    ApprovedBy, CallEvent, CallId, CallRequest, CallsInHand, Catalog, Delivery, Guard, HouseWide, InputEdit, Journal,
    Limits, Outcome, Pending, Policies, Policy, Questions, Scope, Source, SpanSink, ToolError, Workbench,
    cache::Cache,
    finish_in_background::FinishInBackground,
    log::CallLog,
    stage::{
        approve::{Declined, approve},
        authorize::authorize,
        deliver::deliver,
        execute::{Executed, execute},
        prepare::prepare,
        record::{Ending, record},
        resolve::resolve,
        validate::validate,
    },
    trace::{stage, tell, traced},
};

/// The doors, and what the line decides by.
pub struct Doors {
    /// Which tools.
    pub catalog: Arc<dyn Catalog>,
    /// Who may.
    pub guard: Arc<dyn Guard>,
    /// What is staged.
    pub workbench: Arc<dyn Workbench>,
    /// What is asked.
    pub questions: Arc<dyn Questions>,
    /// What is recorded.
    pub journal: Arc<dyn Journal>,
    /// Who hears of it.
    pub deliveries: Vec<Arc<dyn Delivery>>,
    /// The right to end what others left behind.
    pub house: HouseWide,
    /// What is decided by.
    pub policies: Arc<dyn Policies>,
    /// How long things may take.
    pub limits: Limits,
    /// Who watches how long each part takes, if anybody does.
    pub spans: Option<Arc<dyn SpanSink>>,
}

/// The line of one house. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    pub(crate) doors: Arc<Doors>,
    /// What this process has read.
    pub(crate) cache: Arc<Cache>,
    /// What this process carries at this moment.
    pub(crate) in_hand: CallsInHand,
    /// Calls that go on although their caller went away, or never was here.
    orphans: TaskTracker,
}

impl Pipeline {
    /// A line through these doors.
    pub fn new(doors: Doors) -> Self {
        Self {
            doors: Arc::new(doors),
            cache: Arc::default(),
            in_hand: CallsInHand::default(),
            orphans: TaskTracker::new(),
        }
    }

    /// Takes one call down the line. When the caller goes away the call is cancelled, and still recorded.
    pub fn call(&self, request: CallRequest) -> impl Future<Output = Outcome> + Send + use<> {
        let cancel = request.cancel.clone();
        FinishInBackground::new(self.clone().line(request), cancel, self.orphans.clone())
    }

    /// The calls that this process carries at this moment.
    pub fn in_hand(&self) -> &CallsInHand {
        &self.in_hand
    }

    /// What is decided by here.
    pub async fn policy(&self, scope: &Scope) -> Result<Arc<Policy>, ToolError> {
        self.doors.policies.of(scope).await
    }

    /// Waits for the calls that nobody here waits for.
    pub async fn finish(&self) {
        self.orphans.close();
        self.orphans.wait().await;
    }

    /// How much goes on that nobody waits for.
    pub(crate) fn in_background(&self) -> usize {
        self.orphans.len()
    }

    /// Goes on with something that nobody waits for but `finish`.
    pub(crate) fn carry_in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.orphans.spawn(work);
    }

    fn line(self, request: CallRequest) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            tracing::info!(call = %request.id, tool = request.tool, "call started");
            let _in_hand = self.in_hand.hold(&request.id);
            let mut log = CallLog::new(&request);
            let (parent, input) = (request.trace, self.doors.spans.is_some().then(|| request.input.clone()));
            let walk = async {
                let walked = self.walk(request.clone(), &mut log).await;
                self.close(walked, request, &mut log).await
            };
            let (outcome, span) = traced(self.doors.spans.as_ref(), parent, walk).await;
            tell(span, &outcome, log.effect, input.as_ref());
            outcome
        })
    }

    async fn walk(&self, request: CallRequest, log: &mut CallLog) -> Result<Executed, Declined> {
        let doors = &*self.doors;
        let call = resolve(doors, request, log).await?;
        let call = authorize(doors, call, log).await?;
        let call = validate(doors, call).await?;
        let spans = doors.spans.as_ref();
        let call = stage(spans, "prepare", prepare(doors, call, log)).await?;
        let call = stage(spans, "approve", approve(doors, call, log)).await?;
        stage(spans, "execute", execute((doors, &self.cache), call, log)).await
    }

    /// Ends the call as it went, or carries it on as another one.
    pub(crate) async fn close(
        &self,
        walked: Result<Executed, Declined>,
        request: CallRequest,
        log: &mut CallLog,
    ) -> Outcome {
        match walked {
            Ok(executed) => self.end(log, Ending::Executed(executed)).await,
            Err(Declined::Edited { input, edit }) => self.go_on_with(input, edit, request, log).await,
            Err(Declined::Stopped(stopped)) => self.end(log, Ending::Stopped(stopped)).await,
        }
    }

    pub(crate) async fn end(&self, log: &mut CallLog, ending: Ending) -> Outcome {
        let outcome = record(&self.doors, log, ending).await;
        tracing::info!(
            call = %outcome.tool_call_id,
            tool = outcome.tool,
            status = outcome.end.status(),
            ms = outcome.execution_time_ms,
            "call ended"
        );
        deliver(&self.doors.deliveries, &log.scope, &outcome).await;
        outcome
    }

    /// An edited input is a new call with its own decision and record. The parent ends by pointing to it; the parent's
    /// caller gets its outcome.
    async fn go_on_with(&self, input: Value, edit: InputEdit, parent: CallRequest, log: &mut CallLog) -> Outcome {
        let by = edit.by.name.clone();
        let mut child = CallRequest {
            id: CallId::new(),
            // What was edited is the tool's own input, whatever name it was asked for by.
            tool: log.tool.clone(),
            input,
            parent: Some(parent.id.clone()),
            edited: Some(edit),
            ..parent
        };
        child.caller.source = Source::Edit;
        let continued_as = Some(child.id.clone());
        log.note(CallEvent::Approved { approved_by: ApprovedBy::User, by: Some(by), continued_as, under: None });
        let expires_at = Timestamp::now().checked_add(self.doors.limits.answer_within).unwrap_or(Timestamp::MAX);
        let pending = Pending { pending_tool_call_id: child.id.clone(), expires_at };
        self.end(log, Ending::Continued(pending)).await;
        self.clone().line(child).await
    }
}

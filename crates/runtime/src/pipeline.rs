//! The line: resolve, authorize, validate, prepare, approve, execute, record, deliver. Once each, never back.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::task::TaskTracker;

use crate::{
    CallEvent, CallId, CallRequest, Catalog, Delivery, Guard, Journal, Limits, Outcome, Policy, Questions, Source,
    Workbench,
    log::CallLog,
    stage::{
        approve::{Desk, Stopped, approve},
        authorize::authorize,
        deliver::deliver,
        execute::{Bench, Executed, execute},
        prepare::prepare,
        record::{Ending, record},
        resolve::resolve,
        validate::validate,
    },
    unfinished::Unfinished,
};

/// The six doors, and what the line decides by.
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
    /// What is decided by.
    pub policy: Policy,
    /// How long things may take.
    pub limits: Limits,
}

/// The line of one house. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    pub(crate) doors: Arc<Doors>,
    /// Calls whose caller went away while they were under way.
    orphans: TaskTracker,
}

impl Pipeline {
    /// A line through these doors.
    pub fn new(doors: Doors) -> Self {
        Self { doors: Arc::new(doors), orphans: TaskTracker::new() }
    }

    /// Takes one call down the line. When the caller goes away the call is cancelled, and still recorded.
    pub fn call(&self, request: CallRequest) -> impl Future<Output = Outcome> + Send + use<> {
        let cancel = request.cancel.clone();
        Unfinished::new(self.clone().line(request), cancel, self.orphans.clone())
    }

    /// Waits for the calls whose caller went away.
    pub async fn finish(&self) {
        self.orphans.close();
        self.orphans.wait().await;
    }

    fn line(self, request: CallRequest) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let mut log = CallLog::new(&request);
            let ending = match self.walk(request.clone(), &mut log).await {
                Ok(executed) => Ending::Executed(executed),
                Err(stopped) => self.stopped(stopped, request, &mut log).await,
            };
            self.end(&mut log, ending).await
        })
    }

    async fn walk(&self, request: CallRequest, log: &mut CallLog) -> Result<Executed, Stopped> {
        let doors = &*self.doors;
        let call = resolve(&*doors.catalog, request, log).await?;
        let call = authorize(&*doors.guard, call).await?;
        let call = validate(call)?;
        let call = prepare(&doors.limits, &*doors.journal, call, log).await?;
        let call = approve(&self.desk(), call, log).await?;
        Ok(execute(&self.bench(), call, log).await)
    }

    pub(crate) async fn end(&self, log: &mut CallLog, ending: Ending) -> Outcome {
        let outcome = record(&self.doors.limits, &*self.doors.journal, log, ending).await;
        deliver(&self.doors.deliveries, &log.scope, &outcome).await;
        outcome
    }

    /// An edited input is a new call with its own approval and record; its outcome is the caller's.
    pub(crate) async fn stopped(&self, stopped: Stopped, parent: CallRequest, log: &mut CallLog) -> Ending {
        let Stopped::Edited { input, by } = stopped else { return Ending::Stopped(stopped) };
        let mut child = CallRequest {
            id: CallId::new(),
            input,
            parent: Some(parent.id.clone()),
            edited_by: Some(by.clone()),
            ..parent
        };
        child.caller.source = Source::Call;
        log.note(CallEvent::Approved {
            approved_by: crate::ApprovedBy::User,
            by: Some(by),
            continued_as: Some(child.id.clone()),
        });
        let mut outcome = self.clone().line(child).await;
        if let crate::End::Success { result } = &mut outcome.end {
            result.metadata.insert("args_modified".to_owned(), true.into());
        }
        Ending::Continued(Box::new(outcome))
    }

    pub(crate) fn desk(&self) -> Desk<'_> {
        let doors = &*self.doors;
        Desk {
            policy: &doors.policy,
            limits: &doors.limits,
            questions: &*doors.questions,
            workbench: &*doors.workbench,
        }
    }

    pub(crate) fn bench(&self) -> Bench<'_> {
        let doors = &*self.doors;
        Bench { limits: &doors.limits, journal: &*doors.journal, workbench: &*doors.workbench }
    }
}

//! What goes on by itself, in one loop: questions expire, people are told of them, calls of dead processes are ended or carried on, and jobs are done
//! when they are due. Waiting costs nothing: however many questions are open, one look asks an index for the next of them.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use haft_runtime::{HouseWide, Pipeline, ToolError};
use haft_store::{ClaimedJob, JobFilter, JobOwner, JobPlace, NewJob, Store};
use jiff::Timestamp;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    Platform,
    notices::{MailJob, Notices, WebhookJob},
};

/// The longest time between two looks: another process may have added something, or died.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The shortest, however much is added.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// How long a node that is silent keeps a job.
const LEASE: Duration = Duration::from_secs(60);
/// How many jobs this node does at once.
const AT_ONCE: usize = 4;
/// The longest time before a job that failed is tried again.
const LONGEST_BACKOFF: Duration = Duration::from_secs(3600);
/// How often what is over is removed.
const CLEAN_EVERY: Duration = Duration::from_secs(3600);
/// What each tenant has one of, once a day.
const OF_EACH_TENANT: &str = "retention";

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// It is done for good.
    Done,
    /// It is done for now, and is to be done again after this time.
    Again(Duration),
}

/// Somebody who does the jobs of one kind. A job may be begun more than once: after a failure, or when its node has died.
pub trait JobRunner: Send + Sync {
    /// Which kind.
    fn kind(&self) -> &'static str;

    /// Whether there is one such job for each node, which the loop then adds.
    fn is_for_each_node(&self) -> bool {
        false
    }

    /// Does a job. When the process ends it is dropped half-way.
    fn run<'a>(&'a self, job: &'a ClaimedJob) -> BoxFuture<'a, Result<JobEnd, ToolError>>;
}

/// The loop of one node.
pub struct JobLoop {
    store: Store,
    house: HouseWide,
    pipeline: Pipeline,
    node: String,
    kinds: Vec<&'static str>,
    runners: Vec<Arc<dyn JobRunner>>,
    notices: Arc<Notices>,
}

impl JobLoop {
    /// For the node of this name. Others bring the kinds of jobs that they know.
    pub fn new(
        platform: &Platform,
        pipeline: Pipeline,
        node: &str,
        mut runners: Vec<Arc<dyn JobRunner>>,
        notices: Arc<Notices>,
    ) -> Self {
        let (store, house) = (platform.store.clone(), platform.house.clone());
        runners.push(Arc::new(CleanupJob { store: store.clone(), house: house.clone() }));
        // A node without a mail server leaves mail to those that have one.
        if notices.has_mail() {
            runners.push(Arc::new(MailJob(Arc::clone(&notices))));
        }
        runners.push(Arc::new(WebhookJob(Arc::clone(&notices))));
        let kinds = runners.iter().map(|runner| runner.kind()).collect();
        Self { store, house, pipeline, node: node.to_owned(), kinds, runners, notices }
    }

    /// Looks after everything until it is told to stop.
    pub async fn run(&self, stop: &CancellationToken) {
        let mut running = JoinSet::new();
        if let Err(error) = self.add_jobs().await {
            tracing::warn!(error = error.message, "the jobs of this node could not be added");
        }
        while !stop.is_cancelled() {
            let looked = Instant::now();
            let next = self.look(&mut running).await;
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep_until(looked + next) => {}
                () = self.store.work_added(&self.house) => tokio::time::sleep_until(looked + SHORTEST_PAUSE).await,
            }
        }
        // What is not done by now is begun again, here or on another node.
        running.shutdown().await;
    }

    /// The jobs that are always there. They are done at every start, too: much may have become old meanwhile.
    async fn add_jobs(&self) -> Result<(), ToolError> {
        let job = |kind: &'static str, name: &str, place: JobPlace| NewJob {
            kind,
            name: name.to_owned(),
            payload: "{}".to_owned(),
            due: self.store.now(),
            place,
        };
        let clean = job(CleanupJob::KIND, "", JobPlace::AnyNode);
        self.store.add_job(&self.house, &JobOwner::AllTenants, &clean).await?;
        for runner in self.runners.iter().filter(|runner| runner.is_for_each_node()) {
            let own = job(runner.kind(), &self.node, JobPlace::Node(self.node.clone()));
            self.store.add_job(&self.house, &JobOwner::AllTenants, &own).await?;
        }
        self.store.add_job_to_each_tenant(&self.house, OF_EACH_TENANT, self.store.now()).await?;
        let on_this_node = self.runners.iter().filter(|runner| runner.is_for_each_node()).map(|runner| runner.kind());
        let kinds: Vec<&'static str> = on_this_node.chain([CleanupJob::KIND, OF_EACH_TENANT]).collect();
        Ok(self.store.hasten_jobs(&self.house, JobFilter { node: &self.node, kinds: &kinds }).await?)
    }

    /// Does what is due, and says how long there is nothing more to do.
    async fn look(&self, running: &mut JoinSet<()>) -> Duration {
        while running.try_join_next().is_some() {}
        let looks = [
            self.pipeline.expire().await,
            self.pipeline.recover_in_background().await,
            self.notices.look().await,
            self.begin(running).await,
        ];
        let failed = looks.into_iter().filter_map(Result::err).next();
        let next = match failed {
            Some(error) => Err(error),
            None => self.next(running.len()).await,
        };
        next.unwrap_or_else(|error| {
            // What cannot be done now is done at a later look.
            tracing::warn!(error = error.message, "what is due could not be looked after");
            LONGEST_PAUSE
        })
    }

    /// Begins jobs that are due, as many as there is room for.
    async fn begin(&self, running: &mut JoinSet<()>) -> Result<(), ToolError> {
        let room = u32::try_from(AT_ONCE.saturating_sub(running.len())).unwrap_or(0);
        if room == 0 {
            return Ok(());
        }
        for job in self.store.claim_jobs(&self.house, self.filter(), room, LEASE).await? {
            let Some(runner) = self.runners.iter().find(|runner| runner.kind() == job.kind) else { continue };
            running.spawn(see_to(self.store.clone(), self.house.clone(), Arc::clone(runner), job));
        }
        Ok(())
    }

    /// How long until the next job is due, the next question expires, or somebody is to be told of one.
    async fn next(&self, running: usize) -> Result<Duration, ToolError> {
        let expiry = self.store.next_expiry(&self.house).await?;
        let job = if running < AT_ONCE { self.store.next_job(&self.house, self.filter()).await? } else { None };
        let notice = self.notices.next().await?;
        let Some(next) = expiry.into_iter().chain(job).chain(notice).min() else { return Ok(LONGEST_PAUSE) };
        let wait = Duration::try_from(next.duration_since(self.store.now())).unwrap_or(Duration::ZERO);
        Ok(wait.clamp(SHORTEST_PAUSE, LONGEST_PAUSE))
    }

    fn filter(&self) -> JobFilter<'_> {
        JobFilter { node: &self.node, kinds: &self.kinds }
    }
}

/// Does one job, and keeps its lease meanwhile. Whoever has lost the lease stops: another node has begun.
async fn see_to(store: Store, house: HouseWide, runner: Arc<dyn JobRunner>, mut job: ClaimedJob) {
    let given = job.clone();
    let mut work = runner.run(&given);
    let end = loop {
        tokio::select! {
            end = &mut work => break end,
            () = tokio::time::sleep(LEASE / 3) => match store.renew_job(&house, &job, LEASE).await {
                Ok(Some(renewed)) => job = renewed,
                Ok(None) => return,
                Err(error) => tracing::warn!(kind = job.kind, %error, "the lease of a job could not be renewed"),
            },
        }
    };
    let now = store.now();
    let after = |time: Duration| now.checked_add(time).unwrap_or(Timestamp::MAX);
    let noted = match end {
        Ok(JobEnd::Done) => match store.finish_job(&house, &job).await {
            // Something was added meanwhile, or it is another node's.
            Ok(false) => store.put_off_job(&house, &job, now, 0).await,
            finished => finished,
        },
        Ok(JobEnd::Again(time)) => store.put_off_job(&house, &job, after(time), 0).await,
        Err(error) => {
            tracing::warn!(kind = job.kind, attempts = job.attempts, error = error.message, "a job failed");
            store.put_off_job(&house, &job, after(backoff(job.attempts)), job.attempts).await
        }
    };
    if let Err(error) = noted {
        // Its lease runs out, and it is begun again.
        tracing::warn!(kind = job.kind, %error, "the end of a job could not be noted");
    }
}

fn backoff(attempts: u32) -> Duration {
    Duration::from_secs(1_u64.checked_shl(attempts).unwrap_or(u64::MAX)).min(LONGEST_BACKOFF)
}

/// Removes what is over: sign-ins, links, logins that nobody ended and idempotency keys. Gives each tenant its job of the day.
struct CleanupJob {
    store: Store,
    house: HouseWide,
}

impl CleanupJob {
    const KIND: &str = "cleanup";
}

impl JobRunner for CleanupJob {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn run<'a>(&'a self, _job: &'a ClaimedJob) -> BoxFuture<'a, Result<JobEnd, ToolError>> {
        Box::pin(async move {
            self.store.forget_expired_sign_ins(&self.house).await?;
            self.store.forget_expired_oauth(&self.house).await?;
            self.store.forget_login_attempts(&self.house).await?;
            self.store.forget_expired_devices(&self.house).await?;
            self.store.forget_expired_oidc_requests(&self.house).await?;
            self.store.forget_old_idempotency_keys(&self.house).await?;
            self.store.forget_expired_choices(&self.house).await?;
            self.store.add_job_to_each_tenant(&self.house, OF_EACH_TENANT, self.store.now()).await?;
            Ok(JobEnd::Again(CLEAN_EVERY))
        })
    }
}

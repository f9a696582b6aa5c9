//! What is asked in a tenant, and what an answer to it is bound to.

use haft_runtime::{Answered, CallId, CallRecord, Caller, Question, QuestionId, Scope, ToolError};
pub use haft_store::{AgreementRecord, QuestionFilter};

use crate::{Platform, random};

/// How many questions of others are passed over for one page of the own ones.
const MOST_PASSED_OVER: usize = 2000;

/// A page of questions with their answers, and the last one that was looked at where there are more.
pub type QuestionPage = (Vec<(Question, Option<Answered>)>, Option<QuestionId>);

impl Platform {
    /// Questions of the caller's tenant, newest calls first; only those of the caller's own calls where `mine`.
    pub async fn questions(
        &self,
        caller: &Caller,
        mine: bool,
        filter: &QuestionFilter,
    ) -> Result<QuestionPage, ToolError> {
        let wanted = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let (mut found, mut looked, mut filter) = (Vec::new(), 0, filter.clone());
        loop {
            let page = self.store.question_page(&caller.scope, &filter).await?;
            let is_last = page.len() < wanted;
            looked += page.len();
            for (question, answer) in page {
                filter.before = Some(question.id());
                if !mine || question.asked_by.id == caller.id {
                    found.push((question, answer));
                }
                if found.len() == wanted {
                    return Ok((found, filter.before));
                }
            }
            if is_last {
                return Ok((found, None));
            }
            if looked >= MOST_PASSED_OVER {
                return Ok((found, filter.before));
            }
        }
    }

    /// Asks a call that is under way to stop, wherever it runs.
    pub async fn want_stop(&self, scope: &Scope, call: &CallId) -> Result<bool, ToolError> {
        Ok(self.store.want_stop(scope, call).await?)
    }

    /// The last call that did or undid what this one had staged.
    pub async fn last_turn_of(&self, scope: &Scope, call: &CallId) -> Result<Option<CallRecord>, ToolError> {
        Ok(self.store.last_turn_of(scope, call).await?)
    }
}

/// What a yes is bound to: everything that the question shows, but for how long it can be given.
pub fn digest_of(question: &Question) -> String {
    let whenever = Question { expires_at: question.asked_at, escalated_at: None, ..question.clone() };
    random::hash(&serde_json::to_string(&whenever).unwrap_or_default())
}

/// What questions have in common that one answer fits as well as another; `None` where one is like no other.
pub fn alike_of(question: &Question) -> Option<String> {
    question.signature().map(|signature| random::hash(&format!("{signature:?}")))
}

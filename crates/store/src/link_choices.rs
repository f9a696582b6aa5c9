//! What somebody has chosen on a page that they were sent a link to, until they confirm it.

use haft_runtime::{HouseWide, QuestionId, Scope};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    journal::of_call,
    sql::Statement,
};

const KEEP: &str = "insert into link_choices (tenant, call, number, person, nonce, body, expires_at) \
                    values ($1, $2, $3, $4, $5, $6, $7) on conflict (tenant, call, number, person) do update set \
                    nonce = excluded.nonce, body = excluded.body, expires_at = excluded.expires_at returning 1 as kept";
const FIND: &str = "select body from link_choices where tenant = $1 and call = $2 and number = $3 and person = $4 \
                    and nonce = $5 and expires_at > $6";
const TAKE: &str = "delete from link_choices where tenant = $1 and call = $2 and number = $3 and person = $4 \
                    and nonce = $5 and expires_at > $6 returning 1 as taken";
const FORGET: &str = "delete from link_choices where expires_at < $1 returning 1 as forgotten";

/// What somebody has chosen.
#[derive(Clone, Copy, Debug)]
pub struct LinkChoice<'a> {
    /// The hash of what only the page holds on which it is confirmed.
    pub nonce: &'a str,
    /// What they have chosen.
    pub body: &'a str,
    /// Until when it can be confirmed.
    pub expires_at: Timestamp,
}

impl Store {
    /// Keeps a choice, in the place of what the same person chose before.
    pub async fn keep_choice(
        &self,
        scope: &Scope,
        (question, person): (&QuestionId, &str),
        choice: LinkChoice<'_>,
    ) -> Result<(), StoreError> {
        let keep = of_call(KEEP, scope, &question.call)
            .bind(question.number)
            .bind(person)
            .bind(choice.nonce)
            .bind(choice.body)
            .bind(choice.expires_at.as_microsecond());
        self.change(ConditionalWrite::of_database(keep)).await.map(drop)
    }

    /// Uses a choice up; `None` where there is none by this hash. It works once.
    pub async fn take_choice(
        &self,
        scope: &Scope,
        (question, person): (&QuestionId, &str),
        nonce: &str,
    ) -> Result<Option<String>, StoreError> {
        let about = |sql| {
            let now = self.now().as_microsecond();
            of_call(sql, scope, &question.call).bind(question.number).bind(person).bind(nonce).bind(now)
        };
        let Some(row) = self.read_one(about(FIND)).await? else { return Ok(None) };
        let body = Columns { of: tenant(scope), row: &row }.text("body")?;
        Ok(self.change(ConditionalWrite::of_database(about(TAKE))).await?.then_some(body))
    }

    /// Forgets what nobody confirmed in time.
    pub async fn forget_expired_choices(&self, _house: &HouseWide) -> Result<(), StoreError> {
        let forget = Statement::new(FORGET).bind(self.now().as_microsecond());
        self.change(ConditionalWrite::of_database(forget)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_statement_reads_all_choices() {
        crate::schema::tests::assert_quick(&[super::FIND, super::TAKE, super::FORGET]);
    }
}

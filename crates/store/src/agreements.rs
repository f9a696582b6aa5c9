//! Who has agreed to what is asked, where more than one has to, or not everybody may.

use haft_runtime::{Answer, CallerRef, QuestionId, Scope, Source};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant, word},
    sql::{Row, Statement},
};

/// A yes of one person to one question.
#[derive(Clone, Debug, PartialEq)]
pub struct AgreementRecord {
    /// The person, whatever key or program they said it by; the key itself where nobody is behind it.
    pub person: String,
    /// By what they said it.
    pub given_by: CallerRef,
    /// Through which door.
    pub source: Source,
    /// To what exactly.
    pub answer: Answer,
    /// The digest of what was asked.
    pub digest: String,
    /// The version of the approval rules that it was given under.
    pub rules_version: i64,
    /// When.
    pub at: Timestamp,
}

const ADD: &str = "insert into agreements (tenant, call, number, person, given_by, source, answer, digest, \
                   rules_version, at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
                   on conflict (tenant, call, number, person) do update set given_by = excluded.given_by, \
                   source = excluded.source, answer = excluded.answer, digest = excluded.digest, \
                   rules_version = excluded.rules_version, at = excluded.at returning 1 as added";
const ALL: &str = "select person, given_by, source, answer, digest, rules_version, at from agreements \
                   where tenant = $1 and call = $2 and number = $3 order by person";

impl Store {
    /// Notes a yes. Whoever says it again has said it once, as they said it last.
    pub async fn add_agreement(
        &self,
        scope: &Scope,
        question: &QuestionId,
        agreement: &AgreementRecord,
    ) -> Result<(), StoreError> {
        let add = Statement::new(ADD)
            .bind(tenant(scope))
            .bind(question.call.as_str())
            .bind(i64::from(question.number))
            .bind(agreement.person.as_str())
            .bind(serde_json::to_string(&agreement.given_by)?)
            .bind(word(&agreement.source)?)
            .bind(serde_json::to_string(&agreement.answer)?)
            .bind(agreement.digest.as_str())
            .bind(agreement.rules_version)
            .bind(agreement.at.as_microsecond());
        self.change(ConditionalWrite::new(tenant(scope), add)).await.map(drop)
    }

    /// Who has agreed.
    pub async fn agreements(&self, scope: &Scope, question: &QuestionId) -> Result<Vec<AgreementRecord>, StoreError> {
        let number = i64::from(question.number);
        let all = Statement::new(ALL).bind(tenant(scope)).bind(question.call.as_str()).bind(number);
        self.read(all).await?.iter().map(record).collect()
    }
}

fn record(row: &Row) -> Result<AgreementRecord, StoreError> {
    let columns = Columns { of: "agreements", row };
    Ok(AgreementRecord {
        person: columns.text("person")?,
        given_by: columns.json("given_by")?,
        source: columns.word("source")?,
        answer: columns.json("answer")?,
        digest: columns.text("digest")?,
        rules_version: columns.number("rules_version")?,
        at: columns.time("at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_agreements_to_one_question_are_found_by_it() {
        crate::schema::tests::assert_quick(&[super::ALL]);
    }
}

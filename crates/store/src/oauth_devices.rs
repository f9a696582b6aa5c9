//! Programs on devices without a browser, each while it waits for somebody to let it in.

use haft_runtime::{HouseWide, Scope};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    NewConsent, NewOAuthToken, Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, word},
    oauth::{consent_writes, let_in},
    sql::{Row, Statement},
};

/// What became of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// Nobody has answered.
    Asked,
    /// Somebody said yes.
    Allowed,
    /// Somebody said no.
    Denied,
}

/// A program that waits to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRecord {
    /// The hash of what the program holds.
    pub id: String,
    /// The hash of what a person types.
    pub user_code: String,
    /// The program.
    pub client: String,
    /// What it wants to do, as words with commas between.
    pub scopes: String,
    /// The address that its tokens are for.
    pub resource: String,
    /// The address that it asked from, where that says anything.
    pub asked_from: Option<String>,
    /// What became of it.
    pub state: DeviceState,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
    /// When it last asked whether somebody said yes.
    pub polled_at: Option<Timestamp>,
}

const ADD: &str = "insert into oauth_devices (id, user_code, client, scopes, resource, asked_from, state, created_at, \
                   expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing returning 1 as added";
macro_rules! devices {
    ($rest:literal) => {
        concat!(
            "select id, user_code, client, scopes, resource, asked_from, state, created_at, expires_at, polled_at ",
            "from oauth_devices where ",
            $rest
        )
    };
}
const FIND: &str = devices!("id = $1");
const BY_USER_CODE: &str = devices!("user_code = $1 and state = 'asked' and expires_at > $2");
const POLLED: &str = "update oauth_devices set polled_at = $2 where id = $1 returning 1 as noted";
const ANSWER: &str = "update oauth_devices set state = $2 where id = $1 and state = 'asked' and expires_at > $3 \
                      returning 1 as answered";
const FORGET: &str = "delete from oauth_devices where expires_at < $1";
/// For so long a program hears that its time was over.
const REMEMBERED: i64 = 600 * 1_000_000;

impl Store {
    /// Keeps a program's wish; `false` when somebody else has the same code to type.
    pub async fn add_device(&self, _house: &HouseWide, device: &DeviceRecord) -> Result<bool, StoreError> {
        let add = Statement::new(ADD)
            .bind(device.id.as_str())
            .bind(device.user_code.as_str())
            .bind(device.client.as_str())
            .bind(device.scopes.as_str())
            .bind(device.resource.as_str())
            .bind(device.asked_from.as_deref())
            .bind(word(&device.state)?)
            .bind(device.created_at.as_microsecond())
            .bind(device.expires_at.as_microsecond());
        self.change(ConditionalWrite::of_database(add)).await
    }

    /// The program that holds the code with this hash.
    pub async fn device(&self, _house: &HouseWide, id: &str) -> Result<Option<DeviceRecord>, StoreError> {
        self.read_one(Statement::new(FIND).bind(id)).await?.as_ref().map(record).transpose()
    }

    /// The program that waits with this hash of a code to type.
    pub async fn device_asking(&self, _house: &HouseWide, user_code: &str) -> Result<Option<DeviceRecord>, StoreError> {
        let find = Statement::new(BY_USER_CODE).bind(user_code).bind(Timestamp::now().as_microsecond());
        self.read_one(find).await?.as_ref().map(record).transpose()
    }

    /// Notes that a program has just asked.
    pub async fn note_device_poll(&self, _house: &HouseWide, id: &str) -> Result<(), StoreError> {
        let noted = Statement::new(POLLED).bind(id).bind(Timestamp::now().as_microsecond());
        self.change(ConditionalWrite::of_database(noted)).await.map(drop)
    }

    /// Somebody lets the program in: their yes, and its code as one that becomes tokens. `false` when it was answered before.
    pub async fn allow_device(
        &self,
        scope: &Scope,
        id: &str,
        consent: &NewConsent,
        code: &NewOAuthToken,
    ) -> Result<bool, StoreError> {
        let write = ConditionalWrite::of_database(answer(id, DeviceState::Allowed)?);
        let write = consent_writes(scope, consent, code)?.into_iter().fold(write, ConditionalWrite::and_then);
        self.change(write.audited(let_in(scope, consent))).await
    }

    /// Somebody refuses the program; `false` when it was answered before.
    pub async fn deny_device(&self, _house: &HouseWide, id: &str) -> Result<bool, StoreError> {
        self.change(ConditionalWrite::of_database(answer(id, DeviceState::Denied)?)).await
    }

    /// Forgets wishes whose time has been over for a while.
    pub async fn forget_expired_devices(&self, _house: &HouseWide) -> Result<(), StoreError> {
        let before = Timestamp::now().as_microsecond() - REMEMBERED;
        self.change(ConditionalWrite::of_database(Statement::new(FORGET).bind(before))).await.map(drop)
    }
}

fn answer(id: &str, state: DeviceState) -> Result<Statement, StoreError> {
    Ok(Statement::new(ANSWER).bind(id).bind(word(&state)?).bind(Timestamp::now().as_microsecond()))
}

fn record(row: &Row) -> Result<DeviceRecord, StoreError> {
    let columns = Columns { of: "oauth_devices", row };
    Ok(DeviceRecord {
        id: columns.text("id")?,
        user_code: columns.text("user_code")?,
        client: columns.text("client")?,
        scopes: columns.text("scopes")?,
        resource: columns.text("resource")?,
        asked_from: columns.text_or_none("asked_from")?,
        state: columns.word("state")?,
        created_at: columns.time("created_at")?,
        expires_at: columns.time("expires_at")?,
        polled_at: columns.time_or_none("polled_at")?,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_device_is_found_without_reading_the_others() {
        use super::{ANSWER, BY_USER_CODE, FIND, FORGET, POLLED};
        crate::schema::tests::assert_quick(&[FIND, BY_USER_CODE, POLLED, ANSWER, FORGET]);
    }
}

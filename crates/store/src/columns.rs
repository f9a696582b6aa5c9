//! How values lie in columns: enums as words, the rest as JSON text, times as microseconds since the epoch.

use std::{str::FromStr, sync::Arc};

use haft_runtime::{CallId, GrantId, Scope, TenantId, WorkspaceId};
use jiff::Timestamp;
use serde::{
    Serialize,
    de::{DeserializeOwned, IntoDeserializer, value::Error as WordError},
};
use sqlx::{Row, sqlite::SqliteRow};

use crate::StoreError;

/// The word that an enum has on the wire.
pub(crate) fn word<T: Serialize>(value: &T) -> Result<String, StoreError> {
    Ok(serde_json::to_string(value)?.trim_matches('"').to_owned())
}

/// One row and whose it is, so that every failure names it.
pub(crate) struct Columns<'a> {
    /// The call or grant.
    pub(crate) of: &'a str,
    /// Its row.
    pub(crate) row: &'a SqliteRow,
}

impl Columns<'_> {
    /// A value of a plain type.
    pub(crate) fn plain<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        self.row.try_get(column).map_err(|err| self.damaged(column, err))
    }

    /// An enum from its word.
    pub(crate) fn word<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, StoreError> {
        let text: String = self.plain(column)?;
        let word: serde::de::value::StrDeserializer<'_, WordError> = text.as_str().into_deserializer();
        T::deserialize(word).map_err(|err| self.damaged(column, err))
    }

    /// A word, where there is one.
    pub(crate) fn word_or_none<T: DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>, StoreError> {
        self.plain::<Option<String>>(column)?.map(|_| self.word(column)).transpose()
    }

    /// A value from its JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, StoreError> {
        let text: String = self.plain(column)?;
        serde_json::from_str(&text).map_err(|err| self.damaged(column, err))
    }

    /// A value from its JSON, where there is one.
    pub(crate) fn json_or_none<T: DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>, StoreError> {
        let Some(text) = self.plain::<Option<String>>(column)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|err| self.damaged(column, err))
    }

    /// The id of a call.
    pub(crate) fn call_id(&self, column: &'static str) -> Result<CallId, StoreError> {
        let text: String = self.plain(column)?;
        CallId::parse(&text).ok_or_else(|| self.damaged(column, NotAnId(text)))
    }

    /// The id of a call, where there is one.
    pub(crate) fn call_id_or_none(&self, column: &'static str) -> Result<Option<CallId>, StoreError> {
        self.plain::<Option<String>>(column)?.map(|_| self.call_id(column)).transpose()
    }

    /// The id of a grant.
    pub(crate) fn grant_id(&self, column: &'static str) -> Result<GrantId, StoreError> {
        let text: String = self.plain(column)?;
        GrantId::parse(&text).ok_or_else(|| self.damaged(column, NotAnId(text)))
    }

    /// Where the row belongs.
    pub(crate) fn scope(&self) -> Result<Scope, StoreError> {
        let text: String = self.plain("tenant")?;
        let tenant = TenantId::parse(&text).ok_or_else(|| self.damaged("tenant", NotAnId(text)))?;
        Ok(Scope::of_record(tenant, self.workspace()?))
    }

    /// The workspace, where there is one.
    pub(crate) fn workspace(&self) -> Result<Option<WorkspaceId>, StoreError> {
        Ok(self.plain::<Option<String>>("workspace")?.map(WorkspaceId::new))
    }

    /// What a text stands for, where there is one.
    pub(crate) fn parsed_or_none<T: FromStr>(&self, column: &'static str) -> Result<Option<T>, StoreError> {
        let Some(text) = self.plain::<Option<String>>(column)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.damaged(column, NotAnId(text)))
    }

    /// A time.
    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(self.plain(column)?).map_err(|err| self.damaged(column, err))
    }

    /// A time, where there is one.
    pub(crate) fn time_or_none(&self, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
        let Some(micros) = self.plain::<Option<i64>>(column)? else { return Ok(None) };
        Timestamp::from_microsecond(micros).map(Some).map_err(|err| self.damaged(column, err))
    }

    /// The error of a column that cannot be read.
    pub(crate) fn damaged(
        &self,
        column: &'static str,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> StoreError {
        StoreError::Row { of: self.of.to_owned(), column, source: Arc::new(source) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no id")]
struct NotAnId(String);

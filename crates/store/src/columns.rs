//! How values lie in columns: enums as words, the rest as JSON text, times as microseconds since the epoch.

use std::{str::FromStr, sync::Arc};

use haft_runtime::{CallId, GrantId, Scope, TenantId, Within, WorkspaceId};
use jiff::Timestamp;
use serde::{
    Serialize,
    de::{DeserializeOwned, IntoDeserializer, value::Error as WordError},
};

use crate::{
    StoreError,
    sql::{Row, Value},
};

/// The tenant of a scope, as columns have it.
pub(crate) fn tenant(scope: &Scope) -> &str {
    scope.tenant().as_str()
}

/// The workspace of a scope, as columns have it.
pub(crate) fn workspace(scope: &Scope) -> Option<&str> {
    scope.workspace().map(WorkspaceId::as_str)
}

/// The one workspace that a list covers, as columns have it.
pub(crate) fn only(within: &Within) -> Option<&str> {
    within.only().map(WorkspaceId::as_str)
}

/// The word that an enum has on the wire.
pub(crate) fn word<T: Serialize>(value: &T) -> Result<String, StoreError> {
    Ok(serde_json::to_string(value)?.trim_matches('"').to_owned())
}

/// One row and whose it is, so that every failure names it.
pub(crate) struct Columns<'a> {
    /// The call or grant.
    pub(crate) of: &'a str,
    /// Its row.
    pub(crate) row: &'a Row,
}

impl Columns<'_> {
    /// A text, where there is one.
    pub(crate) fn text_or_none(&self, column: &'static str) -> Result<Option<String>, StoreError> {
        match self.value(column)? {
            Value::Text(text) => Ok(text.clone()),
            Value::Int(None) | Value::Bytes(None) => Ok(None),
            Value::Int(Some(_)) | Value::Bytes(Some(_)) => Err(self.damaged(column, NotRead("a text"))),
        }
    }

    /// A text.
    pub(crate) fn text(&self, column: &'static str) -> Result<String, StoreError> {
        self.text_or_none(column)?.ok_or_else(|| self.damaged(column, NotRead("a text")))
    }

    /// A number, where there is one.
    pub(crate) fn number_or_none(&self, column: &'static str) -> Result<Option<i64>, StoreError> {
        match self.value(column)? {
            Value::Int(number) => Ok(*number),
            Value::Text(None) | Value::Bytes(None) => Ok(None),
            Value::Text(Some(_)) | Value::Bytes(Some(_)) => Err(self.damaged(column, NotRead("a number"))),
        }
    }

    /// A number.
    pub(crate) fn number(&self, column: &'static str) -> Result<i64, StoreError> {
        self.number_or_none(column)?.ok_or_else(|| self.damaged(column, NotRead("a number")))
    }

    /// A small number, where there is one.
    pub(crate) fn count_or_none(&self, column: &'static str) -> Result<Option<u32>, StoreError> {
        let small = |number: i64| u32::try_from(number).map_err(|err| self.damaged(column, err));
        self.number_or_none(column)?.map(small).transpose()
    }

    /// A small number.
    pub(crate) fn count(&self, column: &'static str) -> Result<u32, StoreError> {
        self.count_or_none(column)?.ok_or_else(|| self.damaged(column, NotRead("a number")))
    }

    /// A yes or a no.
    pub(crate) fn flag(&self, column: &'static str) -> Result<bool, StoreError> {
        Ok(self.number(column)? != 0)
    }

    /// Bytes.
    pub(crate) fn bytes(&self, column: &'static str) -> Result<&[u8], StoreError> {
        match self.value(column)? {
            Value::Bytes(Some(bytes)) => Ok(bytes),
            Value::Bytes(None) | Value::Text(_) | Value::Int(_) => Err(self.damaged(column, NotRead("bytes"))),
        }
    }

    /// An enum from its word.
    pub(crate) fn word<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, StoreError> {
        self.word_or_none(column)?.ok_or_else(|| self.damaged(column, NotRead("a word")))
    }

    /// A word, where there is one.
    pub(crate) fn word_or_none<T: DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>, StoreError> {
        let Some(text) = self.text_or_none(column)? else { return Ok(None) };
        let word: serde::de::value::StrDeserializer<'_, WordError> = text.as_str().into_deserializer();
        T::deserialize(word).map(Some).map_err(|err| self.damaged(column, err))
    }

    /// A value from its JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, StoreError> {
        self.json_or_none(column)?.ok_or_else(|| self.damaged(column, NotRead("JSON")))
    }

    /// A value from its JSON, where there is one.
    pub(crate) fn json_or_none<T: DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>, StoreError> {
        let Some(text) = self.text_or_none(column)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|err| self.damaged(column, err))
    }

    /// The id of a call.
    pub(crate) fn call_id(&self, column: &'static str) -> Result<CallId, StoreError> {
        let text = self.text(column)?;
        CallId::parse(&text).ok_or_else(|| self.damaged(column, NotRead("an id")))
    }

    /// The id of a call, where there is one.
    pub(crate) fn call_id_or_none(&self, column: &'static str) -> Result<Option<CallId>, StoreError> {
        self.text_or_none(column)?.map(|_| self.call_id(column)).transpose()
    }

    /// The id of a grant.
    pub(crate) fn grant_id(&self, column: &'static str) -> Result<GrantId, StoreError> {
        let text = self.text(column)?;
        GrantId::parse(&text).ok_or_else(|| self.damaged(column, NotRead("an id")))
    }

    /// Where the row belongs.
    pub(crate) fn scope(&self) -> Result<Scope, StoreError> {
        Ok(Scope::of_record(self.tenant()?, self.workspace()?))
    }

    fn tenant(&self) -> Result<TenantId, StoreError> {
        TenantId::parse(&self.text("tenant")?).ok_or_else(|| self.damaged("tenant", NotRead("a tenant")))
    }

    /// The tenant alone, also where the row knows a workspace.
    pub(crate) fn scope_of_tenant(&self) -> Result<Scope, StoreError> {
        Ok(Scope::of_record(self.tenant()?, None))
    }

    /// The workspace, where there is one.
    pub(crate) fn workspace(&self) -> Result<Option<WorkspaceId>, StoreError> {
        Ok(self.text_or_none("workspace")?.map(WorkspaceId::new))
    }

    /// What a text stands for, where there is one.
    pub(crate) fn parsed_or_none<T: FromStr>(&self, column: &'static str) -> Result<Option<T>, StoreError> {
        let Some(text) = self.text_or_none(column)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.damaged(column, NotRead("an id")))
    }

    /// A time.
    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(self.number(column)?).map_err(|err| self.damaged(column, err))
    }

    /// A time, where there is one.
    pub(crate) fn time_or_none(&self, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
        let Some(micros) = self.number_or_none(column)? else { return Ok(None) };
        Timestamp::from_microsecond(micros).map(Some).map_err(|err| self.damaged(column, err))
    }

    fn value(&self, column: &'static str) -> Result<&Value, StoreError> {
        self.row.get(column).ok_or_else(|| self.damaged(column, NotRead("a column")))
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
#[error("it is not {0}")]
struct NotRead(&'static str);

//! How things look in a terminal, and as JSON.

pub(crate) mod card;
pub(crate) mod changes;
pub(crate) mod diff;
mod folding;
pub(crate) mod grant;
mod out;
pub(crate) mod outcome;
pub(crate) mod pager;
pub(crate) mod plain;
pub(crate) mod ran;
pub(crate) mod report;
pub(crate) mod safe;
pub(crate) mod stream;
pub(crate) mod style;
pub(crate) mod subject;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod timeline;
pub(crate) mod trust;

pub(crate) use out::{Out, as_tool_error, fitting};

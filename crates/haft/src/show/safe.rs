//! Text from models and files on its way to a terminal, where nobody counts what was marked in it.

use crate::show::plain::plain;

/// The text with everything written out that could move the cursor, hide or change what stands beside it.
pub(crate) fn safe(text: &str) -> String {
    plain(text).text
}

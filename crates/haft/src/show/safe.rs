//! Text from models and files on its way to a terminal, where nobody counts what was marked in it.

use std::borrow::Cow;

use crate::show::plain::{is_plain, plain};

/// The text with everything written out that could move the cursor, hide or change what stands beside it.
pub(crate) fn safe(text: &str) -> String {
    plain(text).text
}

/// The same for much text, of which most needs nothing written out.
pub(crate) fn safe_piece(text: &str) -> Cow<'_, str> {
    if is_plain(text) { Cow::Borrowed(text) } else { Cow::Owned(safe(text)) }
}

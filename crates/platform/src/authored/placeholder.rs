//! `{{secret:NAME}}` in a text: which secrets it names, and the text with their values.

use haft_runtime::ToolError;

use crate::{platform::mistake, secrets::is_secret_name};

const BEGIN: &str = "{{secret:";
const END: &str = "}}";

/// The names of the secrets in a text.
pub(crate) fn names(text: &str) -> Result<Vec<&str>, ToolError> {
    let mut names = Vec::new();
    for rest in text.split(BEGIN).skip(1) {
        let name = rest.split_once(END).map(|(name, _)| name).filter(|name| is_secret_name(name));
        names.push(name.ok_or_else(|| mistake(format!("`{BEGIN}` must go on with a name and `{END}`")))?);
    }
    Ok(names)
}

/// The name of the secret that a text is, if it is nothing else.
pub(crate) fn only(text: &str) -> Option<&str> {
    text.strip_prefix(BEGIN)?.strip_suffix(END).filter(|name| is_secret_name(name))
}

/// The text with something in the place of each name.
pub(crate) fn filled(text: &str, value: impl Fn(&str) -> String) -> String {
    let mut parts = text.split(BEGIN);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(END).unwrap_or((part, ""));
        filled.push_str(&value(name));
        filled.push_str(rest);
    }
    filled
}

//! What every tool that runs something is given, checked.

use std::collections::BTreeMap;

use haft_runtime::{ErrorCode, ToolError};
use haft_sandbox::fence::refused_variable;

/// The most variables that a caller may add.
const MOST_VARIABLES: usize = 256;

/// Variables that a caller adds; those that make a program load or run something else are refused.
pub(super) fn environment(wanted: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ToolError> {
    let refused = |why: String| ToolError::new(ErrorCode::InvalidArgs, why);
    if wanted.len() > MOST_VARIABLES {
        return Err(refused(format!("`env` has {} variables; at most {MOST_VARIABLES}", wanted.len())));
    }
    for (name, value) in &wanted {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(refused(format!("`env` has a name or value that no program could be given: {name:?}")));
        }
        if refused_variable(name) {
            return Err(refused(format!(
                "`env` may not set `{name}`: it makes programs load or run something else; set it in the command itself"
            )));
        }
    }
    Ok(wanted)
}

/// The workspace folder itself, for a `cwd` that nobody names.
pub(super) fn here() -> String {
    ".".to_owned()
}

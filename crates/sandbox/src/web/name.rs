//! Which names of hosts may be looked up.

/// Endings that only mean something inside somebody's own network.
const LOCAL_ENDINGS: &[&str] =
    &["localhost", "local", "localdomain", "internal", "intranet", "svc", "lan", "home", "home.arpa", "corp"];

/// What is wrong with a name, when it is not one of the public internet. It comes in ASCII and lower case.
pub(super) fn not_public(name: &str) -> Option<String> {
    let labels = || name.split('.');
    if name.len() > 253 || labels().any(|label| label.is_empty() || label.len() > 63) {
        return Some("is no name that a host can have".to_owned());
    }
    let ends_with =
        |ending: &&&str| name.strip_suffix(**ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if let Some(ending) = LOCAL_ENDINGS.iter().find(ends_with) {
        return Some(format!("ends in `{ending}`, which only means something inside a network of its own"));
    }
    let single = labels().nth(1).is_none();
    single.then(|| "has no dot, so that it means something only inside a network of its own".to_owned())
}

/// A name without the dot that may end it.
pub(super) fn without_last_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

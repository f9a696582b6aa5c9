//! "Did you mean": the names most like the one that was typed.

/// Nobody means a name by a longer one; comparing takes as long as both are.
const LONGEST: usize = 256;

/// At most three names that are close enough to be meant, the closest first.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    if typed.len() > LONGEST {
        return Vec::new();
    }
    let typed = typed.to_lowercase();
    let closeness = |name: &str| strsim::jaro_winkler(&typed, &name.to_lowercase());
    let mut close: Vec<(f64, &str)> = known
        .into_iter()
        .filter(|name| is_near(&typed, &name.to_lowercase()))
        .map(|name| (closeness(name), name))
        .collect();
    close.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
    close.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// Whether one was meant by the other: a few letters are wrong, or one is a whole part of the other.
fn is_near(typed: &str, name: &str) -> bool {
    let shorter = typed.chars().count().min(name.chars().count());
    let wrong = strsim::damerau_levenshtein(typed, name);
    wrong <= (shorter / 4).max(1) || (shorter >= 3 && (name.contains(typed) || typed.contains(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_meant_by_a_book() {
        assert_eq!(nearest("read_fle", ["read_file", "grep"]), ["read_file"]);
        assert_eq!(nearest("read", ["read_file", "grep"]), ["read_file"]);
        assert!(nearest("project", ["reject"]).is_empty() && nearest("HAFT_PAGER", ["HAFT_LSP_READY"]).is_empty());
        assert!(nearest(&"read_file".repeat(100_000), ["read_file"]).is_empty());
    }
}

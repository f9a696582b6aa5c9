//! The branches of a repository, read from what git lists.

use schemars::JsonSchema;
use serde::Serialize;

/// The arguments that make git list them, each with its commit, its upstream and whether it is checked out.
pub(super) const LIST: &[&str] =
    &["for-each-ref", "--format=%(refname)%00%(objectname)%00%(upstream:short)%00%(HEAD)", "refs/heads"];
/// How much of a hash is shown.
const SHORT: usize = 7;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Branch {
    pub(super) name: String,
    /// The commit that it points to.
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// Whether it is checked out.
    pub(super) current: bool,
}

impl Branch {
    /// Reads the whole list.
    pub(super) fn read_all(said: &[u8]) -> Vec<Branch> {
        String::from_utf8_lossy(said).lines().filter_map(Branch::read).collect()
    }

    fn read(line: &str) -> Option<Branch> {
        let mut fields = line.split('\0').map(str::to_owned);
        let name = fields.next()?.strip_prefix("refs/heads/")?.to_owned();
        let hash = fields.next()?;
        let upstream = fields.next().filter(|upstream| !upstream.is_empty());
        Some(Branch { name, hash, upstream, current: fields.next()? == "*" })
    }

    /// The line by which git lists it.
    pub(super) fn line(&self) -> String {
        let sign = if self.current { '*' } else { ' ' };
        let upstream = self.upstream.as_ref().map_or_else(String::new, |upstream| format!(" [{upstream}]"));
        format!("{sign} {} {}{upstream}", self.name, self.hash.get(..SHORT).unwrap_or(&self.hash))
    }
}

//! `web_search`

use std::{sync::Arc, time::Duration};

use haft_runtime::{
    Described, Effect, ErrorCode, Prepared, Ran, Reach, Shown, Stamp, Tool, ToolCtx, ToolError, ToolFacts,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    access::Web,
    search::{Freshness, SearchClient, SearchQuery, SearchResult},
};
use crate::workspaces::Workspaces;

/// How long the answer to a search holds.
const LASTING: Duration = Duration::from_secs(60);
/// What to put into the settings so that there is somebody to ask.
const LINES: &str = "[web.search]\n\
                     provider = \"exa\"        # or \"brave\", or \"searxng\" with url = \"http://127.0.0.1:8888\"\n\
                     key = \"secret:EXA_KEY\"  # a variable, or a file of that name in the folder `secrets` of haft's data";

pub(crate) struct WebSearch {
    pub(crate) workspaces: Arc<dyn Workspaces>,
    /// Whether models are shown it: it is of no use where nobody has chosen a provider.
    pub(crate) shown: Shown,
}

/// Search the web for pages: titles, URLs and snippets. Read one with `web_fetch` and `format` `markdown`. To search
/// the workspace use `grep`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "query": "rust tls libraries" }))]
pub(crate) struct Input {
    /// What to search for.
    #[schemars(length(min = 1, max = 400))]
    query: String,
    /// Results at most.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    num_results: usize,
    /// Only this site, such as `docs.rs`.
    #[schemars(length(min = 1, max = 253))]
    site: Option<String>,
    /// Only pages this new.
    freshness: Option<Freshness>,
}

fn five() -> usize {
    5
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    results: Vec<SearchResult>,
    /// Who was asked.
    provider: &'static str,
}

impl Tool for WebSearch {
    type Input = Input;
    type Output = Output;

    const FACTS: ToolFacts =
        ToolFacts { open_world: true, aliases: &["webSearch"], ..ToolFacts::new("web_search", "web", Effect::Read) };

    fn shown(&self) -> Shown {
        self.shown
    }

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Output>, ToolError> {
        let workspace = self.workspaces.of(ctx.scope())?;
        let search = search(&workspace.web)?;
        if let Some(site) = input
            .site
            .as_ref()
            .filter(|site| !site.chars().all(|letter| letter.is_alphanumeric() || "-._/".contains(letter)))
        {
            let message = format!("`{site}` is no site; write it like `docs.rs`");
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
        // Whoever chose the provider has said yes to it.
        let reach = Reach { host: search.host().to_owned(), listed: true, sends: false };
        let preview = format!("asks {} for: {}", search.provider().word(), input.query);
        Ok(Prepared::Plain(Described { reach: Some(reach), ..Described::showing(preview) }))
    }

    async fn stamp(&self, ctx: &ToolCtx, input: &Input) -> Option<Stamp> {
        Some(self.workspaces.of(ctx.scope()).ok()?.web.fresh.stamp(&input.as_question()))
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Output>, ToolError> {
        let workspace = self.workspaces.of(ctx.scope())?;
        let search = search(&workspace.web)?;
        let wanted = SearchQuery {
            query: &input.query,
            number: input.num_results,
            site: input.site.as_deref(),
            freshness: input.freshness,
        };
        let results = tokio::select! {
            biased;
            () = ctx.cancel.cancelled() => Err(ToolError::new(ErrorCode::Cancelled, "the search was stopped")),
            found = search.find(&wanted) => found,
        }?;
        workspace.web.fresh.answered(&input.as_question(), LASTING);
        Ok(Ran::plain(Output { results, provider: search.provider().word() }))
    }
}

impl Input {
    fn as_question(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Who is asked.
fn search(web: &Web) -> Result<&SearchClient, ToolError> {
    let why = match &web.search {
        Some(Ok(search)) => return Ok(search),
        Some(Err(why)) => why.clone(),
        None => format!("no search provider is configured; add to {}:\n{LINES}", web.settings_file),
    };
    // It comes by no waiting, only by a person.
    let error = ToolError::new(ErrorCode::Unavailable, format!("cannot search the web: {why}"));
    Err(ToolError { recoverable: false, ..error })
}

impl haft_runtime::Output for Output {
    fn text(&self) -> String {
        if self.results.is_empty() {
            return format!("{} found nothing.", self.provider);
        }
        let mut text = String::new();
        for (number, found) in self.results.iter().enumerate() {
            let when = found.published_at.as_deref().map_or_else(String::new, |when| format!(" ({when})"));
            text.push_str(&format!("{}. {}{when}\n   {}\n", number + 1, found.title, found.url));
            if !found.snippet.is_empty() {
                text.push_str(&format!("   {}\n", found.snippet.replace('\n', " ")));
            }
        }
        text
    }
}

//! `find_tools`

use std::sync::Weak;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Asks, Catalog, Effect, ErrorCode, Output, Ran, Shown, Tool, ToolCtx, ToolError, ToolFacts, ToolMatch};

/// The catalogue holds this tool, so this tool must not hold the catalogue.
pub(super) struct FindTools(pub(super) Weak<dyn Catalog>);

/// Find tools that are not listed to you, by name or by what you need, with their input schemas. Look here before you
/// decide that something cannot be done. Use `call_tool` to call them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "query": "create an issue" }))]
pub(super) struct Input {
    /// A tool's name, or words such as `create issue`.
    #[schemars(length(min = 1, max = 1000))]
    query: String,
    /// How many at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
pub(super) struct FindToolsOutput {
    /// What fits, best first.
    tools: Vec<Fitting>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Fitting {
    /// The name to call it by.
    name: String,
    /// When to use it.
    description: String,
    /// What `input` must look like.
    input_schema: Map<String, Value>,
    /// How well it fits: 1 for its very name, less for words.
    score: f64,
}

impl Fitting {
    fn of(found: &ToolMatch) -> Self {
        let spec = found.tool.spec();
        Self {
            name: spec.name.clone(),
            description: spec.description.clone(),
            input_schema: spec.input_schema.as_object().cloned().unwrap_or_default(),
            score: (f64::from(found.score) * 1000.0).round() / 1000.0,
        }
    }
}

impl Output for FindToolsOutput {
    fn text(&self) -> String {
        if self.tools.is_empty() {
            return "No tool fits. Try other words, or fewer.".to_owned();
        }
        let shown = |tool: &Fitting| {
            let schema = serde_json::to_string(&tool.input_schema).unwrap_or_default();
            format!("{}: {}\ninput: {schema}", tool.name, tool.description)
        };
        self.tools.iter().map(shown).collect::<Vec<_>>().join("\n\n")
    }
}

impl Tool for FindTools {
    type Input = Input;
    type Output = FindToolsOutput;
    const FACTS: ToolFacts = ToolFacts {
        permission: "tools.tenant.read",
        asks: Asks::NeverForReads,
        ..ToolFacts::new("find_tools", "tools", Effect::Read)
    };

    fn shown(&self) -> Shown {
        Shown::ForOthers
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<FindToolsOutput>, ToolError> {
        let Some(catalog) = self.0.upgrade() else {
            return Err(ToolError::new(ErrorCode::Unavailable, "there is no catalogue to search: haft is ending"));
        };
        let listing = catalog.list(&ctx.caller).await?;
        let tools = listing.find(&input.query, input.limit).iter().map(Fitting::of).collect();
        Ok(Ran::plain(FindToolsOutput { tools }))
    }
}

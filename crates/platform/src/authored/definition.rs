//! What a tool is that somebody writes: its JSON, and why some JSON is none.

use std::{collections::BTreeMap, time::Duration};

use haft_runtime::{Asks, Effect, Shape, ToolError, ToolSpec, faults_of_input};
use haft_sandbox::web::{Method, Url, header::HeaderName, is_forbidden};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::placeholder;
use crate::{Permission, platform::mistake, secrets::host_of};

/// Words that mean something else in the place of a tool's name in an address.
const RESERVED: [&str; 6] = ["new", "image-models", "sessions", "runs", "test", "versions"];
/// The longest that all of a tool may be, as JSON: every caller of a tenant carries its tools.
const LONGEST: usize = 256 << 10;
/// How long one call may work where a tool says nothing else.
pub(super) const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionType {
    /// haft, by a request to an address.
    #[serde(rename = "gateway")]
    Http,
    /// A program outside, which gives the result.
    External,
    /// A person, in the place where the tool is shown.
    Space,
    /// Nobody: the arguments come back.
    Internal,
}

impl ExecutionType {
    /// The type as it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Http => "gateway",
            Self::External => "external",
            Self::Space => "space",
            Self::Internal => "internal",
        }
    }
}

/// The request of a `gateway` tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// Where to.
    pub url: String,
    /// GET, POST, PUT, PATCH or DELETE.
    #[serde(default = "usual_method")]
    pub method: String,
    /// What to say beside it; `{{secret:NAME}}` stands for a secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

fn usual_method() -> String {
    "POST".to_owned()
}

/// When a person is asked before it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionPolicy {
    /// Only if it destroys something.
    #[default]
    Auto,
    /// Always.
    AlwaysAsk,
}

/// A tool as somebody wrote it, checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuthoredTool {
    /// What it is called by.
    #[serde(default)]
    pub slug: String,
    /// The name that people read; without a slug it is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When to use it.
    pub description: String,
    /// What goes in.
    pub input_schema: Value,
    /// What comes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Who does the work.
    pub execution_type: ExecutionType,
    /// The request of a `gateway` tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// Whether calls are shown in the space where they happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible: Option<bool>,
    /// Whether the caller goes on before the result is there.
    #[serde(default)]
    pub is_async: bool,
    /// How long a call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// How long a result from outside is waited for at all, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<i64>,
    /// How far it reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// When a person is asked.
    #[serde(default)]
    pub permission_policy: PermissionPolicy,
    /// What a caller needs to use it, beside using tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_permission: Option<String>,
    /// What it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// How a result is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_sections: Option<Value>,
    /// Whether there shall be such a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

impl AuthoredTool {
    /// Reads and checks what somebody wrote.
    pub fn read(written: Value) -> Result<Self, ToolError> {
        if !written.is_object() {
            return Err(mistake("a tool is an object"));
        }
        let unreadable = |err: serde_json::Error| mistake(format!("this is no tool: {err}"));
        let mut tool: Self = serde_json::from_value(without_nulls(written)).map_err(unreadable)?;
        if tool.slug.is_empty() {
            tool.slug = tool.name.take().unwrap_or_default();
        }
        // Clients want the fields listed, also where there are none.
        if let Value::Object(schema) = &mut tool.input_schema {
            schema.entry("properties").or_insert_with(|| json!({}));
        }
        tool.check()?;
        Ok(tool)
    }

    /// The same tool with some fields changed; `null` takes one away. It keeps its slug.
    pub fn changed(&self, fields: &Map<String, Value>) -> Result<Self, ToolError> {
        if fields.get("slug").is_some_and(|slug| *slug != json!(self.slug)) {
            return Err(mistake("`slug` cannot be changed; make a new tool"));
        }
        let mut whole = json!(self);
        for (name, value) in fields {
            whole[name] = value.clone();
        }
        Self::read(whole)
    }

    fn check(&self) -> Result<(), ToolError> {
        if json!(self).to_string().len() > LONGEST {
            return Err(mistake(format!("a tool has at most {} KiB; keep long texts elsewhere", LONGEST >> 10)));
        }
        if !is_slug(&self.slug) {
            let message = "`slug` must be a letter, then up to 63 letters, digits, `_` or `-`";
            return Err(mistake(message));
        }
        if RESERVED.contains(&self.slug.as_str()) || self.slug.starts_with("mcp__") {
            return Err(mistake(format!("`{}` is reserved; choose another slug", self.slug)));
        }
        if self.description.trim().is_empty() {
            return Err(mistake("`description` is missing: it says when to use the tool"));
        }
        if self.input_schema["type"] != "object" {
            return Err(mistake("`inputSchema` must be a JSON Schema of an object: `\"type\": \"object\"`"));
        }
        if let Some(fault) = faults_of_input(&self.input_schema).into_iter().next() {
            return Err(mistake(format!("`inputSchema`: {fault}")));
        }
        for (name, schema) in [("inputSchema", Some(&self.input_schema)), ("outputSchema", self.output_schema.as_ref())]
        {
            if let Some(why) = schema.and_then(|schema| Shape::new(schema).err()) {
                return Err(mistake(format!("`{name}`: {why}")));
            }
        }
        check_time("timeout", self.timeout)?;
        check_time("expiresAfter", self.expires_after)?;
        check_permission(self.required_permission.as_deref())?;
        check_sections(self.output_sections.as_ref())?;
        match (self.execution_type, &self.execution) {
            (ExecutionType::Http, Some(execution)) => execution.check(),
            (ExecutionType::Http, None) => Err(mistake("a `gateway` tool needs `execution.url`")),
            (ExecutionType::External | ExecutionType::Space | ExecutionType::Internal, None) => Ok(()),
            (_, Some(_)) => Err(mistake("`execution` belongs to tools of the type `gateway` only")),
        }
    }

    /// Whether its calls are shown in the space where they happen.
    pub fn is_visible(&self) -> bool {
        self.visible.unwrap_or(self.execution_type != ExecutionType::Internal)
    }

    /// How far it reaches: as it says, or as its kind usually does.
    pub fn effect(&self) -> Effect {
        let reads = match (self.execution_type, &self.execution) {
            (ExecutionType::Internal | ExecutionType::Space, _) => true,
            (ExecutionType::Http, Some(execution)) => execution.method == "GET",
            (ExecutionType::Http | ExecutionType::External, _) => false,
        };
        self.effect.unwrap_or(if reads { Effect::Read } else { Effect::Write })
    }

    /// The tool for lists, forms and models.
    pub(super) fn spec(&self) -> ToolSpec {
        let is_http = self.execution_type == ExecutionType::Http;
        ToolSpec {
            name: self.slug.clone(),
            title: self.name.clone().unwrap_or_else(|| self.slug.clone()),
            description: self.description.clone(),
            category: self.category.clone().unwrap_or_else(|| "custom".to_owned()),
            input_schema: self.input_schema.clone(),
            output_schema: self.output_schema.clone().unwrap_or_else(|| json!({})),
            example: None,
            effect: self.effect(),
            permission: self.required_permission.clone().unwrap_or_else(|| Permission::ToolsExecute.word().to_owned()),
            aliases: Vec::new(),
            deprecated_aliases: Vec::new(),
            parameter_aliases: Vec::new(),
            timeout: if is_http { millis(self.timeout).unwrap_or(USUAL_TIMEOUT) } else { USUAL_TIMEOUT },
            asks: match self.permission_policy {
                PermissionPolicy::Auto => Asks::OnlyToDestroy,
                PermissionPolicy::AlwaysAsk => Asks::Always,
            },
            idempotent: false,
            open_world: is_http,
        }
    }
}

impl Execution {
    /// The host that it reaches, and the names of the secrets that it sends there.
    pub(super) fn sends(&self) -> Result<(String, Vec<String>), ToolError> {
        let mut names = placeholder::names(&self.url)?;
        for value in self.headers.values() {
            names.extend(placeholder::names(value)?);
        }
        Ok((self.host()?, names.into_iter().map(str::to_owned).collect()))
    }

    pub(super) fn host(&self) -> Result<String, ToolError> {
        let url = Url::parse(&self.url).map_err(|err| mistake(format!("`execution.url` is no URL: {err}")))?;
        Ok(host_of(&url))
    }

    fn check(&self) -> Result<(), ToolError> {
        let authority = self.url.split('/').nth(2).unwrap_or_default();
        if authority.split(['?', '#']).next().unwrap_or_default().contains("{{") {
            return Err(mistake("`execution.url`: a secret may stand in the path or the query, not in the host"));
        }
        let is_web = self.url.starts_with("http://") || self.url.starts_with("https://");
        if !is_web || self.host()?.is_empty() {
            return Err(mistake("`execution.url` must begin with http:// or https:// and name a host"));
        }
        if !["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&self.method.as_str()) {
            return Err(mistake("`execution.method` is GET, POST, PUT, PATCH or DELETE"));
        }
        for name in self.headers.keys() {
            let known = name.parse::<HeaderName>().ok().filter(|name| !is_forbidden(name));
            known.ok_or_else(|| mistake(format!("`execution.headers`: `{name}` cannot be set")))?;
        }
        self.sends().map(drop)
    }

    pub(super) fn method(&self) -> Method {
        self.method.parse().unwrap_or(Method::POST)
    }
}

/// A time is longer than nothing.
pub(super) fn check_time(name: &str, time: Option<i64>) -> Result<(), ToolError> {
    match time {
        Some(..=0) => Err(mistake(format!("`{name}` must be more than 0 milliseconds"))),
        Some(1..) | None => Ok(()),
    }
}

/// A permission is one of those that there are.
pub(super) fn check_permission(needed: Option<&str>) -> Result<(), ToolError> {
    match needed.filter(|word| Permission::parse(word).is_none()) {
        Some(word) => Err(mistake(format!("`requiredPermission`: there is no permission `{word}`"))),
        None => Ok(()),
    }
}

/// The sections of a result are a list of objects.
pub(super) fn check_sections(sections: Option<&Value>) -> Result<(), ToolError> {
    let fit = |sections: &Value| sections.as_array().is_some_and(|list| list.iter().all(Value::is_object));
    match sections.filter(|sections| !fit(sections)) {
        Some(_) => Err(mistake("`outputSections` is a list of sections, each an object")),
        None => Ok(()),
    }
}

/// A time that was checked to be one.
pub(super) fn millis(time: Option<i64>) -> Option<Duration> {
    time.and_then(|time| u64::try_from(time).ok()).map(Duration::from_millis)
}

fn is_slug(slug: &str) -> bool {
    let plain = slug.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    plain && slug.len() <= 64 && slug.starts_with(|first: char| first.is_ascii_alphabetic())
}

fn without_nulls(mut written: Value) -> Value {
    if let Value::Object(fields) = &mut written {
        fields.retain(|_, value| !value.is_null());
    }
    written
}

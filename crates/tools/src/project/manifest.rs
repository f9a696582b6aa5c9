//! The manifest of a project tool, checked whole before anything of it is used.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use haft_runtime::{Asks, Effect, Shape, ToolSpec};
use serde_json::{Map, Value};

use super::{
    argument::{Argument, filled, shown},
    output,
    parameter::{Parameter, input_schema},
    script::scripts,
    table::ManifestTable,
    variables::ManifestVariables,
};

/// What a manifest may say.
const KEYS: &[&str] = &[
    "name",
    "description",
    "category",
    "parameters",
    "command",
    "env",
    "network",
    "requires_approval",
    "timeout",
    "cwd",
    "writes",
    "output_schema",
];
/// Where tools are sorted whose manifest says nothing of it.
const CATEGORY: &str = "custom";
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 4096;
const LONGEST_CATEGORY: usize = 32;
const MOST_PARAMETERS: usize = 64;
const MOST_WORDS: usize = 256;
const MOST_FOLDERS: usize = 16;
/// Names of upstream tools begin like this.
const OF_SERVERS: &str = "mcp__";

/// The manifest of a project tool, in which everything fits together.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    name: String,
    description: String,
    category: String,
    parameters: Vec<Parameter>,
    command: Vec<Argument>,
    pub(super) variables: ManifestVariables,
    pub(super) network: bool,
    requires_approval: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) folder: String,
    pub(super) writes: Vec<PathBuf>,
    /// What its JSON answer is like.
    pub(super) output_schema: Option<Value>,
}

impl Manifest {
    /// Reads a manifest; `file` is the name of its file without the ending, which is the tool's where it gives none.
    /// Whatever is wrong is one sentence.
    pub fn read(value: &Value, file: &str) -> Result<Self, String> {
        let table = ManifestTable::of(value, "the manifest", KEYS)?;
        let parameters = parameters(table.get("parameters"))?;
        Ok(Self {
            name: Self::checked_name(table.text("name")?.unwrap_or(file))?,
            description: description(table.text("description")?)?,
            category: category(table.text("category")?.unwrap_or(CATEGORY))?,
            command: command(table.texts("command")?, &parameters)?,
            parameters,
            variables: ManifestVariables::read(table.get("env"))?,
            network: table.switch("network")?,
            requires_approval: table.switch("requires_approval")?,
            timeout: table.text("timeout")?.map(timeout).transpose()?,
            folder: table.text("cwd")?.unwrap_or(".").to_owned(),
            writes: writes(table.texts("writes")?.unwrap_or_default())?,
            output_schema: output_schema(table.get("output_schema"))?,
        })
    }

    /// A name that a tool may have, or one sentence about what is wrong with it.
    pub fn checked_name(name: &str) -> Result<String, String> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        let begins_well = name.starts_with(|first: char| first.is_ascii_lowercase());
        if !name.bytes().all(is_plain) || !begins_well || name.len() > LONGEST_NAME || name.starts_with(OF_SERVERS) {
            return Err(format!(
                "{name:?} is no name for a tool: at most {LONGEST_NAME} of a-z, 0-9, _ and -, a letter first, like `run_tests`"
            ));
        }
        Ok(name.to_owned())
    }

    /// The name that the tool is called by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program and its arguments as the manifest has them, the names of parameters in the place of values.
    pub fn command(&self) -> String {
        shown(&self.command.iter().map(Argument::written).collect::<Vec<_>>())
    }

    /// What it wants beyond the workspace, a phrase each: secrets by their names, the network, folders outside.
    pub fn wants(&self) -> Vec<String> {
        let network = self.network.then(|| "the network".to_owned());
        let folders = self.writes.iter().map(|folder| format!("to write into {}", folder.display()));
        self.variables.secrets().chain(network).chain(folders).collect()
    }

    /// The files of the workspace that its command names; a tool may run them only as they were trusted.
    pub fn scripts(&self, workspace: &Path) -> Vec<String> {
        let fixed: Vec<&str> = self.command.iter().filter_map(Argument::fixed).collect();
        scripts(&fixed, &self.folder, workspace)
    }

    /// The input with what is left out of it and has a default.
    pub(super) fn with_defaults(&self, input: &Value) -> Map<String, Value> {
        let given = input.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let mut values: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        for parameter in &self.parameters {
            if let Some(default) = &parameter.default {
                values.entry(&parameter.name).or_insert_with(|| default.clone());
            }
        }
        values
    }

    /// The program and its arguments for some values.
    pub(super) fn words(&self, values: &Map<String, Value>) -> Result<Vec<String>, String> {
        filled(&self.command, values)
    }

    /// The tool, as lists, forms and models see it. `usual` is how long it may run when the manifest does not say.
    pub(super) fn spec(&self, usual: Duration) -> ToolSpec {
        let spaced = self.name.replace(['_', '-'], " ");
        let mut letters = spaced.chars();
        let title = letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect());
        ToolSpec {
            name: self.name.clone(),
            title,
            description: self.description.clone(),
            category: self.category.clone(),
            input_schema: input_schema(&self.parameters),
            output_schema: output::schema(self.output_schema.as_ref()),
            example: None,
            effect: Effect::Execute,
            aliases: Vec::new(),
            permission: Effect::Execute.workspace_permission().to_owned(),
            deprecated_aliases: Vec::new(),
            parameter_aliases: Vec::new(),
            timeout: self.timeout.unwrap_or(usual),
            asks: if self.requires_approval { Asks::Always } else { Asks::ByEffect },
            idempotent: false,
            open_world: self.network,
        }
    }
}

fn category(word: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    if word.is_empty() || word.len() > LONGEST_CATEGORY || !word.bytes().all(is_plain) {
        return Err(format!(
            "its `category` is {word:?}; one word of a-z, 0-9, _ and -, at most {LONGEST_CATEGORY} long"
        ));
    }
    Ok(word.to_owned())
}

fn output_schema(value: Option<&Value>) -> Result<Option<Value>, String> {
    let Some(schema) = value else { return Ok(None) };
    if !schema.is_object() {
        return Err("`output_schema` must be a table: the JSON Schema of what it prints".to_owned());
    }
    Shape::new(schema).map_err(|why| format!("`output_schema`: {why}"))?;
    Ok(Some(schema.clone()))
}

fn description(text: Option<&str>) -> Result<String, String> {
    match text.map(str::trim) {
        None | Some("") => {
            Err("it has no `description`: say what the tool does, when to use it and when not".to_owned())
        }
        Some(text) if text.len() > LONGEST_DESCRIPTION => Err(format!(
            "its `description` is longer than {LONGEST_DESCRIPTION} bytes, which every model would pay for"
        )),
        Some(text) => Ok(text.to_owned()),
    }
}

fn parameters(value: Option<&Value>) -> Result<Vec<Parameter>, String> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::Object(all)) if all.len() > MOST_PARAMETERS => {
            Err(format!("it has {} parameters; at most {MOST_PARAMETERS}", all.len()))
        }
        Some(Value::Object(all)) => {
            let mut flags = BTreeMap::new();
            for name in all.keys() {
                // On the command line they would be one and the same flag.
                let flag = name.replace(['_', '-'], "").to_lowercase();
                if let Some(other) = flags.insert(flag, name) {
                    return Err(format!("the parameters `{other}` and `{name}` are too alike; rename one of them"));
                }
            }
            all.iter().map(|(name, value)| Parameter::read(name, value)).collect()
        }
        Some(_) => Err("`parameters` must have one table for each parameter, such as `[parameters.name]`".to_owned()),
    }
}

fn command(words: Option<Vec<String>>, parameters: &[Parameter]) -> Result<Vec<Argument>, String> {
    let words = words.ok_or("it has no `command`: the program and its arguments, such as [\"./deploy.sh\"]")?;
    if words.len() > MOST_WORDS {
        return Err(format!("its `command` has {} words; at most {MOST_WORDS}", words.len()));
    }
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        return Err("its `command` is empty: name the program first, such as [\"./deploy.sh\"]".to_owned());
    }
    let command: Vec<Argument> = words.iter().map(|word| Argument::read(word, parameters)).collect::<Result<_, _>>()?;
    if command.first().is_some_and(|program| program.fixed().is_none()) {
        return Err("the program in its `command` depends on a parameter; only its arguments may".to_owned());
    }
    Ok(command)
}

/// `90s`, `2m`, `1h`.
fn timeout(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = digits.parse::<f64>().unwrap_or(f64::NAN) * unit;
    if !(0.001..=86400.0).contains(&seconds) {
        return Err(format!("its `timeout` is {text:?}; write it like \"90s\", \"2m\" or \"1h\", at most a day"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn writes(folders: Vec<String>) -> Result<Vec<PathBuf>, String> {
    if folders.len() > MOST_FOLDERS {
        return Err(format!("its `writes` has {} folders; at most {MOST_FOLDERS}", folders.len()));
    }
    folders
        .into_iter()
        .map(|folder| {
            let path: PathBuf = Path::new(&folder).components().collect();
            let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
            if !path.is_absolute() || !plain || path.parent().is_none() || folder.contains('\0') {
                return Err(format!("{folder:?} in its `writes` is no full path of a folder outside the workspace"));
            }
            Ok(path)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(mut change: impl FnMut(&mut Map<String, Value>)) -> String {
        let mut manifest = json!({"name": "deploy", "description": "Deploys.", "command": ["./deploy.sh", "{{env}}"],
            "parameters": {"env": {"type": "string"}}});
        assert!(Manifest::read(&manifest, "x").is_ok());
        change(manifest.as_object_mut().unwrap());
        Manifest::read(&manifest, "x").unwrap_err()
    }

    #[test]
    fn every_fault_is_one_clear_sentence() {
        let cases: &[(&str, Value, &str)] = &[
            ("name", json!("Deploy"), "no name for a tool"),
            ("name", json!("mcp__x"), "no name for a tool"),
            ("name", json!(3), "`name` of the manifest must be text"),
            ("descripton", json!("x"), "did you mean `description`?"),
            ("description", json!(" "), "has no `description`"),
            ("description", json!("x".repeat(5000)), "longer than"),
            ("command", json!([]), "`command` is empty"),
            ("command", json!([" "]), "`command` is empty"),
            ("command", json!("./deploy.sh {{env}}"), "must be an array of text"),
            ("command", json!(["./deploy.sh", 1]), "must be an array of text"),
            ("command", json!(["./deploy.sh", "{{enw}}"]), "did you mean `env`?"),
            ("command", json!(["./deploy.sh", "{{env"]), "has no `}}`"),
            ("command", json!(["{{env}}"]), "depends on a parameter"),
            ("command", json!(["x", "a\0b"]), "NUL"),
            ("command", json!(vec!["x"; 300]), "at most 256"),
            ("timeout", json!("soon"), "`timeout` is \"soon\""),
            ("timeout", json!("3d"), "at most a day"),
            ("timeout", json!(5), "must be text"),
            ("network", json!("no"), "true or false"),
            ("category", json!("My tools"), "`category` is \"My tools\""),
            ("env", json!("A=b"), "one text for each variable"),
            ("env", json!({"A": 1}), "must be text"),
            ("env", json!({"A": "secret:"}), "secret:NAME"),
            ("env", json!({"A": "secret:../x"}), "secret:NAME"),
            ("env", json!({"A-B": "x"}), "no name for a variable"),
            ("env", json!({"LD_PRELOAD": "x"}), "load or run something else"),
            ("output_schema", json!([]), "must be a table"),
            ("output_schema", json!({"type": "no"}), "its schema is broken"),
            ("parameters", json!({"env": {"type": "string", "minimum": 1}}), "no number"),
            ("parameters", json!({"env": {"type": "integer", "minimum": 1.5}}), "no integer"),
            ("parameters", json!({"env": {"type": "integer", "minimum": 2, "maximum": 1}}), "larger than"),
            ("parameters", json!({"env": {"type": "integer", "minimum": 2, "default": 1}}), "beyond its bounds"),
            ("writes", json!(["staging"]), "no full path"),
            ("writes", json!(["/srv/../etc"]), "no full path"),
            ("writes", json!(["/"]), "no full path"),
            ("writes", json!("/srv"), "array of text"),
            ("parameters", json!([]), "one table for each"),
            ("parameters", json!({"env": {"type": "object"}}), "is no type"),
            ("parameters", json!({"env": {}}), "has no `type`"),
            ("parameters", json!({"env": "string"}), "must have keys"),
            ("parameters", json!({"env": {"type": "string", "requird": true}}), "did you mean `required`?"),
            ("parameters", json!({"env": {"type": "integer", "default": "1"}}), "no integer"),
            ("parameters", json!({"env": {"type": "string", "enum": []}}), "something in it"),
            ("parameters", json!({"env": {"type": "string", "enum": [1]}}), "not of its type"),
            ("parameters", json!({"env": {"type": "string", "enum": ["a"], "default": "b"}}), "not in its `enum`"),
            ("parameters", json!({"env": {"type": "string"}, "a b": {"type": "string"}}), "no name for a parameter"),
        ];
        for (key, value, expected) in cases {
            let said = fault(|manifest| drop(manifest.insert((*key).to_owned(), value.clone())));
            assert!(said.contains(expected) && !said.contains('\n'), "{key} = {value}: {said}");
        }
        let alike = json!({"env": {"type": "string"}, "a-b": {"type": "string"}, "aB": {"type": "string"}});
        assert!(fault(|manifest| drop(manifest.insert("parameters".to_owned(), alike.clone()))).contains("too alike"));
        assert!(fault(|manifest| drop(manifest.remove("command"))).contains("has no `command`"));
        assert!(Manifest::read(&json!(3), "x").unwrap_err().contains("must have keys"));
        let array = json!({"description": "d", "command": ["x", "-f={{a}}"], "parameters": {"a": {"type": "array"}}});
        assert!(Manifest::read(&array, "x").unwrap_err().contains("stands alone"));
    }

    #[test]
    fn the_name_of_the_file_is_the_name_where_none_is_given() {
        let manifest = json!({"description": "d", "command": ["true"]});
        assert_eq!(Manifest::read(&manifest, "run_tests").unwrap().name(), "run_tests");
        assert!(Manifest::read(&manifest, "Run tests").is_err());
    }

    #[test]
    fn the_schema_says_what_the_manifest_says() {
        let manifest = json!({"description": "d", "command": ["x"], "timeout": "1.5h", "requires_approval": true,
            "parameters": {
                "env": {"type": "string", "description": "Where.", "required": true, "enum": ["a", "b"]},
                "tags": {"type": "array", "enum": ["x"], "default": ["x"]},
                "dry": {"type": "boolean", "default": false}}});
        let manifest = Manifest::read(&manifest, "x").unwrap();
        let spec = manifest.spec(Duration::ZERO);
        assert_eq!(
            spec.input_schema,
            json!({"type": "object", "additionalProperties": false, "required": ["env"], "properties": {
                "env": {"type": "string", "enum": ["a", "b"], "description": "Where."},
                "tags": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "default": ["x"]},
                "dry": {"type": "boolean", "default": false}}})
        );
        assert_eq!((spec.timeout, spec.asks), (Duration::from_secs(5400), Asks::Always));
        let values = Value::Object(manifest.with_defaults(&json!({"env": "a", "tags": null})));
        assert_eq!(values, json!({"env": "a", "tags": ["x"], "dry": false}));
    }
}

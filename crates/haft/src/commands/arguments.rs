//! A tool's input as it is typed: JSON, a file, standard input, or flags made from the schema.

use std::{
    io::Read,
    path::{Component, Path, PathBuf},
};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValue};
use haft_runtime::{ErrorCode, ToolError, ToolSpec};
use serde_json::{Map, Value};

/// What a tool may be given at most.
pub(crate) const LARGEST_INPUT: u64 = 16 << 20;

/// The fields of our own tools that name something in the workspace. Those of `undo_call` and `commit_call` are not
/// here: they take paths as `haft changes` prints them.
const PATH_FIELDS: &[(&str, &[&str])] = &[
    ("copy_file", &["source", "dest"]),
    ("create_directory", &["path"]),
    ("definition", &["path"]),
    ("delete_file", &["path"]),
    ("diagnostics", &["path"]),
    ("edit_file", &["path"]),
    ("git_commit", &["files"]),
    ("git_diff", &["path"]),
    ("git_log", &["path"]),
    ("git_status", &["path"]),
    ("glob", &["path"]),
    ("grep", &["path"]),
    ("hover", &["path"]),
    ("list_directory", &["path"]),
    ("move_file", &["from", "to"]),
    ("read_file", &["path"]),
    ("references", &["path"]),
    ("run_code", &["cwd"]),
    ("shell_background", &["cwd"]),
    ("shell_exec", &["cwd"]),
    ("symbols", &["path"]),
    ("write_file", &["path"]),
];

/// Adds one flag for each field of the schema that haft's own flags do not already use.
pub(crate) fn with_fields(mut command: Command, spec: &ToolSpec, called_as: &str) -> Command {
    let own: Vec<String> = command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
    let mut in_json_only = Vec::new();
    for (name, schema) in fields(spec) {
        if own.contains(&kebab_case(name)) {
            in_json_only.push(name.as_str());
            continue;
        }
        let other_names = other_names(spec, called_as, name).filter(|other| !own.contains(other));
        command = command.arg(flag(name, schema, required(spec, name)).aliases(other_names));
    }
    if in_json_only.is_empty() {
        return command;
    }
    let note =
        format!("Fields that only the JSON can set, because haft has a flag of that name: {}", in_json_only.join(", "));
    command.after_help(note)
}

fn fields(spec: &ToolSpec) -> impl Iterator<Item = (&String, &Value)> {
    spec.input_schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// What a field may also be called, by everybody or by those who use an old name of the tool.
fn other_names(spec: &ToolSpec, called_as: &str, name: &str) -> impl Iterator<Item = String> {
    // The flag of a field takes the field's own unit.
    let always =
        spec.parameter_aliases.iter().filter(|alias| !alias.in_seconds).map(|alias| (&*alias.name, &*alias.of));
    let once = spec.deprecated_alias(called_as).into_iter().flat_map(|alias| &alias.parameters);
    let once = once.map(|(other, own)| (other.as_str(), own.as_str()));
    always.chain(once).filter(move |(_, own)| *own == name).map(|(other, _)| other.to_owned())
}

fn required(spec: &ToolSpec, name: &str) -> bool {
    spec.input_schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|n| n == name))
}

fn flag(name: &str, schema: &Value, required: bool) -> Arg {
    let help = schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
    let help = if required { format!("{help} [required]") } else { help };
    let kebab = kebab_case(name);
    let flag = Arg::new(flag_id(name)).long(kebab.clone()).help(help).help_heading("The tool's own fields");
    let flag = if kebab == name { flag } else { flag.alias(name.to_owned()) };
    if let Some(values) = choices(schema) {
        return flag.value_name("CHOICE").value_parser(values);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => {
            flag.num_args(0..=1).default_missing_value("true").value_parser(["true", "false"]).value_name("BOOL")
        }
        Some("array") => flag.action(ArgAction::Append).value_name("ITEM").allow_hyphen_values(true),
        Some("integer" | "number") => flag.value_name("NUMBER").allow_hyphen_values(true),
        Some("object") => flag.value_name("JSON"),
        _ => flag.value_name("TEXT").allow_hyphen_values(true),
    }
}

/// The only texts that a field takes; `None` where it takes others.
fn choices(schema: &Value) -> Option<Vec<PossibleValue>> {
    let values = schema.get("enum")?.as_array()?;
    values.iter().map(|value| value.as_str().map(|text| PossibleValue::new(text.to_owned()))).collect()
}

/// What the flag of a field is called among all arguments: haft's own may have the field's name without being a flag.
fn flag_id(field: &str) -> String {
    format!("field {field}")
}

fn kebab_case(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            kebab.push('-');
        }
        kebab.extend(letter.to_lowercase());
    }
    kebab.replace('_', "-")
}

/// The input: the JSON that was given, with the flags laid over it. Paths in flags count from the current folder, as a
/// shell completes them; paths in JSON count from the workspace, as all paths do at a server.
pub(crate) fn input(
    typed: Option<&str>,
    spec: Option<&ToolSpec>,
    matches: &ArgMatches,
    workspace: Option<&Path>,
) -> Result<Value, ToolError> {
    let mut input = typed.map_or_else(|| Ok(Value::Object(Map::new())), read)?;
    let Some(spec) = spec else { return Ok(input) };
    let here = workspace.and_then(current_folder);
    for (name, schema) in fields(spec) {
        let Ok(Some(values)) = matches.try_get_many::<String>(&flag_id(name)) else { continue };
        let Value::Object(object) = &mut input else {
            return Err(bad("flags can only be laid over a JSON object"));
        };
        let values = values.cloned();
        let values: Vec<String> = match &here {
            Some(here) if is_path(spec, name) => values.map(|path| in_workspace(here, path)).collect(),
            Some(_) | None => values.collect(),
        };
        object.insert(name.clone(), value(schema, &values));
    }
    Ok(input)
}

fn is_path(spec: &ToolSpec, field: &str) -> bool {
    PATH_FIELDS.iter().any(|(tool, fields)| *tool == spec.name && fields.contains(&field))
}

/// The current folder as a path of the workspace; `None` at its top and outside of it, where a path stays as it is typed.
fn current_folder(workspace: &Path) -> Option<PathBuf> {
    let current = std::env::current_dir().ok()?.canonicalize().ok()?;
    let within = current.strip_prefix(workspace).ok()?;
    // What is not UTF-8 cannot be a part of an input.
    within.to_str().filter(|within| !within.is_empty()).map(PathBuf::from)
}

/// The path of the workspace that is meant by one typed in a folder of it.
fn in_workspace(here: &Path, typed: String) -> String {
    if typed.is_empty() || typed.starts_with('/') {
        return typed;
    }
    let mut path = here.to_owned();
    for part in Path::new(&typed).components() {
        match part {
            Component::CurDir => {}
            // Above the workspace there is nothing: the tool says so of the path as it was typed.
            Component::ParentDir if !path.pop() => return typed,
            Component::ParentDir => {}
            part @ (Component::Normal(_) | Component::RootDir | Component::Prefix(_)) => path.push(part),
        }
    }
    let path = path.to_string_lossy();
    if path.is_empty() { ".".to_owned() } else { path.into_owned() }
}

/// What was typed, as the schema's type where it can be read so; otherwise as text, which validation then names.
fn value(schema: &Value, typed: &[String]) -> Value {
    let parsed = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
    let last = typed.last().cloned().unwrap_or_default();
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => Value::String(last),
        Some("array") => {
            let of_text = schema.pointer("/items/type").is_some_and(|kind| kind == "string");
            let item = |text: &String| if of_text { Value::String(text.clone()) } else { parsed(text) };
            Value::Array(typed.iter().map(item).collect())
        }
        _ => parsed(&last),
    }
}

pub(crate) fn read(typed: &str) -> Result<Value, ToolError> {
    let text = match typed.strip_prefix('@') {
        Some(file) => {
            let opened = std::fs::File::open(file);
            let opened = opened.map_err(|err| bad(format!("cannot read the input from `{file}`: {err}")))?;
            up_to_the_limit(opened)?
        }
        None if typed == "-" => up_to_the_limit(std::io::stdin().lock())?,
        None if typed.len() as u64 > LARGEST_INPUT => return Err(too_large()),
        None => typed.to_owned(),
    };
    serde_json::from_str(&text).map_err(|err| bad(not_json(&err)))
}

/// Where a text is not JSON, and what to write.
pub(crate) fn not_json(err: &serde_json::Error) -> String {
    let (line, column) = (err.line(), err.column());
    format!(
        "The input is not JSON (line {line}, column {column}). Write an object such as '{{\"path\": \"README.md\"}}'."
    )
}

/// Reads no further than the limit.
fn up_to_the_limit(reader: impl Read) -> Result<String, ToolError> {
    let mut bytes = Vec::new();
    let mut reader = reader.take(LARGEST_INPUT + 1);
    reader.read_to_end(&mut bytes).map_err(|err| bad(format!("cannot read the input: {err}")))?;
    if bytes.len() as u64 > LARGEST_INPUT {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|_| bad("the input is not UTF-8"))
}

pub(crate) fn too_large() -> ToolError {
    let most = LARGEST_INPUT >> 20;
    ToolError::new(ErrorCode::TooLarge, format!("the input is larger than {most} MiB; write large content in parts"))
}

fn bad(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgs, message)
}

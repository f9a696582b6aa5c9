//! What holds for every tool.

use std::collections::HashSet;

use haft_runtime::{Effect, ParameterAlias, faults_of_input};
use serde_json::json;

use crate::place::Place;

#[test]
fn every_tool_has_a_unique_name_a_description_and_schemas() {
    let place = Place::new();
    let mut names = HashSet::new();
    for tool in &place.tools {
        let spec = tool.spec();
        assert!(names.insert(spec.name.clone()), "{} twice", spec.name);
        assert!(spec.aliases.iter().all(|alias| names.insert(alias.clone())), "an alias of {} twice", spec.name);
        assert!(spec.description.len() > 80, "{}", spec.name);
        assert_eq!(faults_of_input(&spec.input_schema), Vec::<String>::new(), "{}", spec.name);
        assert_eq!(spec.output_schema["type"], "object", "{}", spec.name);
        for (field, schema) in spec.input_schema["properties"].as_object().unwrap() {
            assert!(schema["description"].as_str().is_some_and(|text| text.len() > 10), "{}.{field}", spec.name);
        }
    }
}

#[test]
fn what_each_tool_can_do_at_the_worst() {
    let place = Place::new();
    let effect = |name: &str| place.tool(name).spec().effect;
    assert_eq!(effect("read_file"), Effect::Read);
    assert_eq!(effect("list_directory"), Effect::Read);
    assert_eq!(effect("glob"), Effect::Read);
    assert_eq!(effect("grep"), Effect::Read);
    assert_eq!(effect("write_file"), Effect::Write);
    assert_eq!(effect("edit_file"), Effect::Write);
    assert_eq!(effect("delete_file"), Effect::Destroy);
    assert_eq!(effect("create_directory"), Effect::Write);
    assert_eq!(effect("copy_file"), Effect::Write);
    assert_eq!(effect("move_file"), Effect::Write);
}

#[test]
fn the_shape_of_inputs_is_kept() {
    let place = Place::new();
    let input = |name: &str| place.tool(name).spec().input_schema.clone();
    assert_eq!(input("read_file")["required"], json!(["path"]));
    assert_eq!(input("read_file")["properties"]["offset"]["minimum"], 1);
    assert_eq!(input("read_file")["properties"]["encoding"]["enum"], json!(["utf-8", "base64"]));
    assert_eq!(input("write_file")["properties"]["ifExists"]["enum"], json!(["overwrite", "fail"]));
    assert_eq!(input("write_file")["required"], json!(["path", "content"]));
    assert_eq!(input("edit_file")["required"], json!(["path"]));
    assert_eq!(input("list_directory").get("required"), None);
    assert_eq!(input("list_directory")["properties"]["path"]["default"], ".");
    assert_eq!(input("list_directory")["properties"]["limit"]["default"], 1000);
    assert_eq!(input("create_directory")["properties"]["parents"]["default"], true);
    assert_eq!(input("copy_file")["required"], json!(["source", "dest"]));
    assert_eq!(input("move_file")["required"], json!(["from", "to"]));
    assert_eq!(input("glob")["required"], json!(["pattern"]));
    assert_eq!(input("grep")["required"], json!(["pattern"]));
    assert_eq!(input("grep")["properties"]["outputMode"]["enum"], json!(["lines", "files", "count"]));
    assert_eq!(input("grep")["properties"]["maxResults"]["maximum"], 10_000);
    assert_eq!(place.tool("glob").spec().aliases, ["search_files"]);
    assert_eq!(place.tool("edit_file").spec().aliases, ["edit"]);
    let aliases = &place.tool("write_file").spec().parameter_aliases;
    assert_eq!(*aliases, [ParameterAlias::new("createDirectories", "createDirs")]);
}

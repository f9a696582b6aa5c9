//! `openapi.json`, from the same lines as the router.

use haft_platform::Permission;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::route::{Route, RouteAccess};

/// Where schemas are found.
const SCHEMAS: &str = "/components/schemas";
/// Where those of requests are found until it is known which of them are the same in replies.
const REQUESTS: &str = "/components/requests";

/// The description of all routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let settings =
        |path: &'static str| SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = path.into());
    // What may be left out of a request is always there in a reply.
    let mut taken = settings(REQUESTS).into_generator();
    let mut given = settings(SCHEMAS).for_serialize().into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let (query, body) = ((route.query)(&mut taken).to_value(), (route.body)(&mut taken).to_value());
        let mut done = json!({"description": "Done."});
        if let Some(reply) = route.reply {
            done["content"] = json!({"application/json": {"schema": reply(&mut given)}});
        }
        let mut operation = json!({
            "summary": route.what,
            "operationId": operation_id(route),
            "responses": {
                "200": done,
                "default": {"description": "Refused.", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
            },
        });
        let mut parameters: Vec<Value> = parts(route.path).map(path_parameter).collect();
        parameters.extend(query_parameters(&query, taken.definitions()));
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        if route.method != axum::http::Method::GET && !is_nothing(&body) {
            operation["requestBody"] = json!({"content": {"application/json": {"schema": body}}});
        }
        let (security, needs) = security(route.access);
        operation["security"] = security;
        if let Some(needs) = needs {
            operation["x-permission"] = json!(needs.word());
        }
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation;
    }
    let mut schemas: Map<String, Value> = given.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem());
    let (paths, schemas) = merged(&json!(paths), schemas, &taken.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {"title": "haft", "version": env!("CARGO_PKG_VERSION"), "description": "Every call, by whomever, takes the same line."},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": crate::admit::COOKIE},
            },
        },
    })
}

/// Puts the schemas of requests beside those of replies. One that differs from a reply's of the same name is called a body.
/// What nothing leads to is left out.
fn merged(paths: &Value, mut schemas: Map<String, Value>, taken: &Map<String, Value>) -> (Value, Map<String, Value>) {
    let is_other = |(name, schema): &(&String, &Value)| {
        let as_reply = schema.to_string().replace(REQUESTS, SCHEMAS);
        let reply = schemas.get(*name).map(Value::to_string);
        reply.is_some_and(|reply| reply != as_reply)
    };
    let mut other: Vec<&String> = taken.iter().filter(is_other).map(|(name, _)| name).collect();
    // Whatever leads to one that differs differs as well.
    let leads = |schema: &Value, other: &[&String]| {
        let text = schema.to_string();
        other.iter().any(|name| text.contains(&format!("{REQUESTS}/{name}\"")))
    };
    while let Some((name, _)) = taken.iter().find(|(name, schema)| !other.contains(name) && leads(schema, &other)) {
        other.push(name);
    }
    let renamed = |part: &Value| -> Value {
        let named = |text: String, name: &&String| {
            text.replace(&format!("{REQUESTS}/{name}\""), &format!("{SCHEMAS}/{name}Body\""))
        };
        let text = other.iter().fold(part.to_string(), named).replace(REQUESTS, SCHEMAS);
        serde_json::from_str(&text).unwrap_or_default()
    };
    for (name, schema) in taken {
        let name = if other.contains(&name) { format!("{name}Body") } else { name.clone() };
        schemas.insert(name, renamed(schema));
    }
    let paths = renamed(paths);
    let text = json!([paths, schemas]).to_string();
    schemas.retain(|name, _| text.contains(&format!("{SCHEMAS}/{name}\"")));
    (paths, schemas)
}

fn is_nothing(schema: &Value) -> bool {
    schema["$ref"].as_str().is_some_and(|name| name.ends_with("/NoFields"))
}

fn security(access: RouteAccess) -> (Value, Option<Permission>) {
    match access {
        RouteAccess::Open => (json!([]), None),
        RouteAccess::Known | RouteAccess::KnownOrToken => (json!([{"key": []}, {"cookie": []}]), None),
        RouteAccess::Needs(permission) => (json!([{"key": []}, {"cookie": []}]), Some(permission)),
    }
}

/// `GET /api/calls/{id}` → `getApiCallsId`.
fn operation_id(route: &Route) -> String {
    let words = route.path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    route.method.as_str().to_lowercase() + &words.map(capital).collect::<String>()
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
}

/// The fields of a query, each as a parameter.
fn query_parameters(query: &Value, definitions: &Map<String, Value>) -> Vec<Value> {
    let named = query["$ref"].as_str().and_then(|name| definitions.get(name.rsplit('/').next()?));
    let query = named.unwrap_or(query);
    let parameter = |(name, schema): (&String, &Value)| {
        let required = query["required"].as_array().is_some_and(|required| required.contains(&json!(name)));
        let description = &schema["description"];
        json!({"name": name, "in": "query", "required": required, "schema": schema, "description": description})
    };
    query["properties"].as_object().into_iter().flatten().map(parameter).collect()
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "recoverable"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "recoverable": {"type": "boolean"},
                "details": {"type": "object"},
            },
        }},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_in_requests_has_a_name_of_its_own() {
        let to = |place: &str, name: &str| json!({"$ref": format!("#{place}/{name}")});
        let schemas = |place: &str, optional: bool| {
            let leads = json!({"properties": {"a": to(place, "Settings")}});
            let all =
                json!({"Same": {"type": "string"}, "Settings": {"required": optional}, "Leads": leads, "Unused": {}});
            all.as_object().cloned().unwrap_or_default()
        };
        let asked: Vec<Value> = ["Same", "Leads"].into_iter().map(|name| to(REQUESTS, name)).collect();
        let told: Vec<Value> = ["Same", "Leads"].into_iter().map(|name| to(SCHEMAS, name)).collect();
        let (paths, merged) = merged(&json!([asked, told]), schemas(SCHEMAS, false), &schemas(REQUESTS, true));
        let names: Vec<&String> = merged.keys().collect();
        assert_eq!(names, ["Same", "Settings", "Leads", "SettingsBody", "LeadsBody"]);
        assert_eq!(paths[0], json!([to(SCHEMAS, "Same"), to(SCHEMAS, "LeadsBody")]));
        assert_eq!(paths[1], json!(told));
        assert_eq!(merged["LeadsBody"]["properties"]["a"], to(SCHEMAS, "SettingsBody"));
    }
}

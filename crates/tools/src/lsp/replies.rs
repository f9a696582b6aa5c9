//! What a server gets when it asks us something.

use std::path::Path;

use serde_json::{Value, json};

use super::{handshake::folders, servers::LanguageServer};

/// The number of "there is no such method".
const NO_METHOD: i64 = -32601;

/// The whole answer to a request of the server's.
pub(super) fn reply(server: &LanguageServer, workspace: &Path, request: &Value) -> Value {
    let method = request["method"].as_str().unwrap_or_default();
    let result = match method {
        "workspace/configuration" => configuration(&server.settings, &request["params"]["items"]),
        "workspace/workspaceFolders" => folders(workspace),
        "window/showDocument" => json!({ "success": false }),
        // Nobody was asked, so nothing is changed.
        "workspace/applyEdit" => {
            json!({ "applied": false, "failureReason": "haft lets no language server change files" })
        }
        "client/registerCapability"
        | "client/unregisterCapability"
        | "window/workDoneProgress/create"
        | "window/showMessageRequest" => Value::Null,
        _ if method.starts_with("workspace/") && method.ends_with("/refresh") => Value::Null,
        _ => {
            let error = json!({ "code": NO_METHOD, "message": format!("haft does not know `{method}`") });
            return json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
        }
    };
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

/// One value for each section that is asked for.
fn configuration(settings: &Value, items: &Value) -> Value {
    let section = |item: &Value| {
        let path = item["section"].as_str().unwrap_or_default();
        let parts = path.split('.').filter(|part| !part.is_empty());
        parts.fold(settings, |settings, part| &settings[part]).clone()
    };
    items.as_array().into_iter().flatten().take(1000).map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_changed_for_a_server_and_settings_are_told_by_section() {
        let settings = json!({ "python": { "analysis": { "typeCheckingMode": "strict" } } });
        let (command, extensions) = (Vec::new(), Vec::new());
        let language = "python".to_owned();
        let server = LanguageServer { language, command, extensions, init_options: Value::Null, settings };
        let ask = |method: &str, params: Value| {
            reply(&server, Path::new("/w"), &json!({ "id": "7", "method": method, "params": params }))
        };
        assert_eq!(ask("workspace/applyEdit", json!({}))["result"]["applied"], false);
        let items = json!({ "items": [{ "section": "python.analysis" }, { "section": "other" }, {}] });
        let told = ask("workspace/configuration", items);
        assert_eq!(told["result"][0], json!({ "typeCheckingMode": "strict" }));
        assert_eq!((&told["result"][1], &told["id"]), (&Value::Null, &json!("7")));
        assert_eq!(ask("workspace/diagnostic/refresh", Value::Null)["result"], Value::Null);
        assert_eq!(ask("made/up", Value::Null)["error"]["code"], NO_METHOD);
    }
}

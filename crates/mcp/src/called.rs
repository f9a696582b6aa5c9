//! A call of a tool, read straight from its line. It is most of what is ever said to a server, and rmcp reads a message
//! into a tree first and then tries every request that it knows.

use rmcp::{
    RoleServer,
    model::{
        CallToolRequest, CallToolRequestMethod, CallToolRequestParams, JsonRpcMessage, JsonRpcRequest,
        JsonRpcVersion2_0, RequestId,
    },
    service::RxJsonRpcMessage,
};
use serde::Deserialize;

/// The line of a call. One that has anything more is left to rmcp.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    params: CallToolRequestParams,
}

/// The call that a line says; `None` when it says anything else, or is no message at all.
pub(crate) fn call(line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
    let Called { jsonrpc, id, _method, mut params } = serde_json::from_slice(line).ok()?;
    let meta = params.meta.take();
    let mut request = CallToolRequest::new(params);
    if let Some(meta) = meta {
        request.extensions.insert(meta);
    }
    Some(JsonRpcMessage::Request(JsonRpcRequest { jsonrpc, id, request: request.into() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rmcp makes of a line.
    fn by_rmcp(line: &str) -> Option<RxJsonRpcMessage<RoleServer>> {
        serde_json::from_str(line).ok()
    }

    #[test]
    fn a_call_is_what_rmcp_takes_it_for() {
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"a"}}}"#,
            r#"{"id":"x","params":{"arguments":{"n":[1,2.5,null,"\u00e9"]},"name":"a"},"method":"tools/call","jsonrpc":"2.0"}"#,
            r#" {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":3,"x":{}}}} "#,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","requestState":"s","inputResponses":{}}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","else":1,"arguments":null}}"#,
        ];
        for line in lines {
            let (ours, theirs) = (call(line.as_bytes()), by_rmcp(line));
            assert!(ours.is_some(), "{line}");
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{line}");
            // What stands under `_meta` is not part of that, but of what would be sent on.
            let sent = |message| serde_json::to_value(message).unwrap();
            assert_eq!(sent(ours), sent(theirs), "{line}");
        }
    }

    #[test]
    fn what_is_no_plain_call_is_left_to_rmcp() {
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}} {}"#,
            r#"[]"#,
            "",
        ];
        for line in lines {
            assert!(call(line.as_bytes()).is_none(), "{line}");
        }
    }
}

//! Requests that could not be read as what their method takes.

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CustomRequest, ErrorCode, GetTaskParams, PaginatedRequestParams,
        ReadResourceRequestParams, SubscriptionsListenRequestParams, UpdateTaskParams,
    },
};
use serde::de::DeserializeOwned;

/// What is wrong with a request: its parameters when the method is one of ours, or else the method.
pub(super) fn misread(request: &CustomRequest) -> ErrorData {
    let method = &request.method;
    let why = match method.as_str() {
        "tools/call" => unreadable::<CallToolRequestParams>(request),
        "tools/list" => unreadable::<PaginatedRequestParams>(request),
        "resources/read" => unreadable::<ReadResourceRequestParams>(request),
        "tasks/get" | "tasks/cancel" => unreadable::<GetTaskParams>(request),
        "subscriptions/listen" => unreadable::<SubscriptionsListenRequestParams>(request),
        "tasks/update" => unreadable::<UpdateTaskParams>(request),
        _ => return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}` here"), None),
    };
    ErrorData::invalid_params(format!("the parameters of `{method}` cannot be read: {why}"), None)
}

fn unreadable<T: DeserializeOwned>(request: &CustomRequest) -> String {
    match request.params_as::<T>() {
        Err(err) => err.to_string(),
        Ok(Some(_)) => "they are not what it takes".to_owned(),
        Ok(None) => "there are none".to_owned(),
    }
}

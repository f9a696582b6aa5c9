//! The suite's resources and prompts, which the product has not; everything else is the product's own server.

use haft_mcp::Server;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tools::PIXEL;

/// Our server, and what the suite wants beside it.
#[derive(Clone)]
pub(crate) struct Beside(pub(crate) Server);

type Context = RequestContext<RoleServer>;

/// A result as the protocol writes it.
fn result<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|err| ErrorData::internal_error(err.to_string(), None))
}

fn contents(uri: &str) -> Option<Value> {
    let text = |text: String| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    match uri {
        "test://static-text" => Some(text("This is the content of the static text resource.".to_owned())),
        "test://static-binary" => Some(json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL})),
        "test://watched-resource" => Some(text("watched".to_owned())),
        other => {
            let id = other.strip_prefix("test://template/")?.strip_suffix("/data")?;
            Some(json!({"uri": uri, "mimeType": "application/json", "text": json!({"id": id}).to_string()}))
        }
    }
}

fn message(content: &Value) -> Value {
    json!({"messages": [{"role": "user", "content": content}], "resultType": "complete"})
}

fn prompt(request: &GetPromptRequestParams) -> Option<Value> {
    let argument = |name: &str| request.arguments.as_ref().map_or(Value::Null, |all| all[name].clone());
    let text = |text: String| json!({"type": "text", "text": text});
    Some(match request.name.as_str() {
        "test_simple_prompt" => message(&text("This is a simple prompt for testing.".to_owned())),
        "test_prompt_with_arguments" => {
            message(&text(format!("Prompt with arguments: {}, {}", argument("arg1"), argument("arg2"))))
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({"uri": argument("resourceUri"), "mimeType": "text/plain", "text": "embedded"});
            message(&json!({"type": "resource", "resource": resource}))
        }
        "test_prompt_with_image" => message(&json!({"type": "image", "data": PIXEL, "mimeType": "image/png"})),
        "test_input_required_result_prompt" => {
            let given = request.input_responses.as_ref().and_then(|given| given.get("user_context"));
            match given {
                Some(given) => message(&text(format!("context: {}", given["content"]["context"]))),
                None => json!({"resultType": "input_required", "inputRequests": {"user_context": {
                    "method": "elicitation/create",
                    "params": {"mode": "form", "message": "What context should the prompt use?", "requestedSchema": {
                        "type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"],
                    }},
                }}}),
            }
        }
        _ => return None,
    })
}

impl ServerHandler for Beside {
    fn get_info(&self) -> ServerConfig {
        let mut config = self.0.get_info();
        let able = json!({"prompts": {}, "completions": {}, "resources": {"subscribe": true}});
        if let Ok(more) = serde_json::from_value::<rmcp::model::ServerCapabilities>(able) {
            config.capabilities.prompts = more.prompts;
            config.capabilities.completions = more.completions;
            config.capabilities.resources = more.resources;
        }
        config
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let named = |uri: &str| json!({"uri": uri, "name": uri});
        let all = ["test://static-text", "test://static-binary", "test://watched-resource"].map(named);
        result(json!({"resources": all, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({"uriTemplate": "test://template/{id}/data", "name": "template"});
        result(json!({"resourceTemplates": [template], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match contents(&request.uri) {
            Some(contents) => {
                let read =
                    json!({"contents": [contents], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"});
                result::<rmcp::model::ReadResourceResult>(read).map(Into::into)
            }
            None => self.0.read_resource(request, context).await,
        }
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let plain = |name: &str| json!({"name": name, "description": name});
        let mut all =
            ["test_simple_prompt", "test_prompt_with_image", "test_input_required_result_prompt"].map(plain).to_vec();
        all.push(json!({"name": "test_prompt_with_arguments", "description": "With arguments.",
            "arguments": [{"name": "arg1", "required": true}, {"name": "arg2", "required": true}]}));
        all.push(json!({"name": "test_prompt_with_embedded_resource", "description": "With a resource.",
            "arguments": [{"name": "resourceUri", "required": true}]}));
        result(json!({"prompts": all, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: Context) -> Result<GetPromptResponse, ErrorData> {
        let Some(prompt) = prompt(&request) else {
            return Err(ErrorData::invalid_params("there is no such prompt", None));
        };
        if prompt["resultType"] == "input_required" {
            return result::<rmcp::model::InputRequiredResult>(prompt).map(Into::into);
        }
        result::<rmcp::model::GetPromptResult>(prompt).map(Into::into)
    }

    async fn complete(&self, _: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        let completion = json!({"values": ["test", "testing"], "total": 2, "hasMore": false});
        result(json!({"completion": completion, "resultType": "complete"}))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.on_initialized(context).await;
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.0.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.listen(context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.list_tools(request, context).await
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        self.0.call_tool(request, context).await
    }

    async fn on_custom_request(&self, request: CustomRequest, context: Context) -> Result<CustomResult, ErrorData> {
        self.0.on_custom_request(request, context).await
    }

    async fn get_task(&self, request: GetTaskParams, context: Context) -> Result<GetTaskResult, ErrorData> {
        self.0.get_task(request, context).await
    }

    async fn update_task(&self, request: UpdateTaskParams, context: Context) -> Result<(), ErrorData> {
        self.0.update_task(request, context).await
    }

    async fn cancel_task(&self, request: CancelTaskParams, context: Context) -> Result<(), ErrorData> {
        self.0.cancel_task(request, context).await
    }
}

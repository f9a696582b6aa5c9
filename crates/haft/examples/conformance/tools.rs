//! The tools that the suite calls. None is treated otherwise than a tool of the product.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::BoxFuture;
use haft_runtime::{
    AnyTool, Asks, Audio, Body, Described, Effect, Embedded, ErrorCode, Form, FormAnswer, Image, Prepared, Ran,
    Registry, ToolCtx, ToolError, ToolOutput, ToolSpec,
};
use serde_json::{Value, json};

/// One red pixel, and as little sound.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

type Work = fn(ToolCtx, Value) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// A tool of the suite.
struct Sample {
    spec: ToolSpec,
    work: Work,
}

pub(crate) fn all() -> Vec<Arc<dyn AnyTool>> {
    vec![
        sample("test_simple_text", |_, _| done(said("This is a simple text response for testing."))),
        sample("test_image_content", |_, _| done(ToolOutput { images: vec![pixel()], ..said("") })),
        sample("test_audio_content", |_, _| {
            let audio = Audio { mime_type: "audio/wav".to_owned(), data: SILENCE.to_owned() };
            done(ToolOutput { audio: vec![audio], ..said("") })
        }),
        sample("test_embedded_resource", |_, _| {
            let resource = embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.");
            done(ToolOutput { resources: vec![resource], ..said("") })
        }),
        sample("test_multiple_content_types", |_, _| {
            let resource =
                embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
            let images = vec![pixel()];
            done(ToolOutput { images, resources: vec![resource], ..said("Multiple content types test:") })
        }),
        sample("test_error_handling", |_, _| {
            let message = "this tool intentionally returns an error for testing";
            Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::ExecutionError, message))))
        }),
        sample("test_tool_with_progress", |ctx, _| Box::pin(progress(ctx))),
        sample("test_logging_tool", |_, _| done(said("nothing is logged"))),
        asking("test_elicitation", |ctx, input| {
            let fields = json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            });
            let message = input["message"].as_str().unwrap_or_default().to_owned();
            Box::pin(ask(ctx, "answer", message, fields, &["username", "email"]))
        }),
        asking("test_elicitation_sep1034_defaults", |ctx, _| {
            Box::pin(ask(ctx, "answer", "Are these right?".to_owned(), defaults(), &[]))
        }),
        asking("test_elicitation_sep1330_enums", |ctx, _| {
            Box::pin(ask(ctx, "answer", "Which?".to_owned(), choices(), &[]))
        }),
        asking("test_streaming_elicitation", |ctx, _| Box::pin(name(ctx))),
        asking("test_input_required_result_elicitation", |ctx, _| Box::pin(name(ctx))),
        asking("test_input_required_result_request_state", |ctx, _| Box::pin(confirm(ctx))),
        asking("test_input_required_result_tampered_state", |ctx, _| Box::pin(confirm(ctx))),
        asking("test_input_required_result_multi_round", |ctx, _| Box::pin(two_rounds(ctx))),
    ]
}

/// A tool that adds another one, so that the list has changed.
pub(crate) fn let_change(registry: &Arc<Registry>) {
    let changes: Arc<dyn AnyTool> = Arc::new(Changes {
        spec: spec("test_trigger_tool_change", json!({"type": "object", "properties": {}})),
        registry: Arc::downgrade(registry),
    });
    registry.register(changes).expect("a tool of its own name");
}

struct Changes {
    spec: ToolSpec,
    registry: Weak<Registry>,
}

impl AnyTool for Changes {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Read
    }

    fn prepare<'a>(&'a self, _: &'a ToolCtx, _: &'a Value) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        Box::pin(std::future::ready(Ok(Prepared::Plain(Described::default()))))
    }

    fn run<'a>(&'a self, _: &'a ToolCtx, _: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        let new = sample("test_new_tool", |_, _| done(said("new")));
        // The second time it is there already.
        let _known = self.registry.upgrade().map(|registry| registry.register(new));
        Box::pin(std::future::ready(Ok(Ran::plain(said("the tools have changed")))))
    }
}

impl AnyTool for Sample {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Read
    }

    fn prepare<'a>(&'a self, _: &'a ToolCtx, _: &'a Value) -> BoxFuture<'a, Result<Prepared<ToolOutput>, ToolError>> {
        Box::pin(std::future::ready(Ok(Prepared::Plain(Described::default()))))
    }

    fn run<'a>(&'a self, ctx: &'a ToolCtx, input: &'a Value) -> BoxFuture<'a, Result<Ran<ToolOutput>, ToolError>> {
        let working = (self.work)(ctx.clone(), input.clone());
        Box::pin(async move { working.await.map(Ran::plain) })
    }
}

fn sample(name: &str, work: Work) -> Arc<dyn AnyTool> {
    Arc::new(Sample { spec: spec(name, json!({"type": "object", "properties": {}})), work })
}

fn asking(name: &str, work: Work) -> Arc<dyn AnyTool> {
    let input = json!({"type": "object", "properties": {"message": {"type": "string"}}});
    Arc::new(Sample { spec: spec(name, input), work })
}

fn spec(name: &str, input_schema: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        title: name.to_owned(),
        description: format!("`{name}` of the conformance suite."),
        category: "conformance".to_owned(),
        input_schema,
        output_schema: json!({"type": "object"}),
        example: None,
        effect: Effect::Read,
        aliases: Vec::new(),
        permission: Effect::Read.workspace_permission().to_owned(),
        deprecated_aliases: Vec::new(),
        parameter_aliases: Vec::new(),
        timeout: Duration::from_secs(20),
        asks: Asks::ByEffect,
        idempotent: false,
        open_world: false,
    }
}

fn said(text: &str) -> ToolOutput {
    ToolOutput { content: text.to_owned(), structured: json!({}).into(), ..ToolOutput::default() }
}

fn done(output: ToolOutput) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
    Box::pin(std::future::ready(Ok(output)))
}

fn pixel() -> Image {
    Image { mime_type: "image/png".to_owned(), data: PIXEL.to_owned() }
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> Embedded {
    Embedded { uri: uri.to_owned(), mime_type: Some(mime_type.to_owned()), body: Body::Text(text.to_owned()) }
}

async fn progress(ctx: ToolCtx) -> Result<ToolOutput, ToolError> {
    for percent in [0, 50, 100] {
        ctx.progress(Some(percent), "under way");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(said("done"))
}

async fn name(ctx: ToolCtx) -> Result<ToolOutput, ToolError> {
    let fields = json!({"name": {"type": "string"}});
    ask(ctx, "user_name", "What is your name?".to_owned(), fields, &["name"]).await
}

async fn confirm(ctx: ToolCtx) -> Result<ToolOutput, ToolError> {
    let fields = json!({"ok": {"type": "boolean"}});
    let heard = ask(ctx, "confirm", "Please confirm".to_owned(), fields, &["ok"]).await?;
    Ok(said(&format!("state-ok: {}", heard.content)))
}

async fn two_rounds(ctx: ToolCtx) -> Result<ToolOutput, ToolError> {
    let name = json!({"name": {"type": "string"}});
    let first = ask(ctx.clone(), "step1", "Step 1: What is your name?".to_owned(), name, &["name"]).await?;
    let color = json!({"color": {"type": "string"}});
    let message = "Step 2: What is your favorite color?".to_owned();
    let second = ask(ctx, "step2", message, color, &["color"]).await?;
    Ok(said(&format!("{}; {}", first.content, second.content)))
}

async fn ask(
    ctx: ToolCtx,
    name: &str,
    message: String,
    fields: Value,
    required: &[&str],
) -> Result<ToolOutput, ToolError> {
    let schema = json!({"type": "object", "properties": fields, "required": required});
    let (action, content) = match ctx.ask(Form::new(message, schema)?.named(name)).await? {
        FormAnswer::Accepted(filled) => ("accept", Value::Object(filled.values().clone())),
        FormAnswer::Declined { .. } => ("decline", Value::Null),
        FormAnswer::Cancelled => ("cancel", Value::Null),
    };
    Ok(said(&format!("Elicitation completed: action={action}, content={content}")))
}

fn defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    })
}

fn choices() -> Value {
    let titled = |what: &str| {
        json!([
            {"const": "value1", "title": format!("First {what}")},
            {"const": "value2", "title": format!("Second {what}")},
            {"const": "value3", "title": format!("Third {what}")},
        ])
    };
    let options = ["option1", "option2", "option3"];
    let names = ["Option One", "Option Two", "Option Three"];
    json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    })
}

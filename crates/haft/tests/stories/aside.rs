//! A tool that works aside, as a fenced command does: what it stages, runs, is stopped in and leaves behind.

use std::{future::pending, path::PathBuf, sync::Arc, time::Duration};

use haft::house::House;
use haft_runtime::{
    ChangeList, Described, Effect, ErrorCode, Isolation, Output, PartialWork, Prepared, Ran, Stream, Tool, ToolCtx,
    ToolError, ToolFacts, Turn, Workbench, typed,
};
use haft_sandbox::{
    Root,
    changes::{Draft, Expected},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stage::Stage;

/// Stages files, or runs and stages them then.
struct Aside {
    root: Arc<Root>,
    data: PathBuf,
    workbench: Arc<dyn Workbench>,
}

/// A tool for tests that makes files aside.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The files to make.
    files: Vec<String>,
    /// When they are made.
    made: Made,
    /// How that ends.
    #[serde(default)]
    ends: Ends,
}

#[derive(Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Made {
    Before,
    After,
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
enum Ends {
    #[default]
    Well,
    Overtaken,
    AtALimit,
    WhenStopped,
    WhenStoppedAndUnknown,
    Never,
}

#[derive(Serialize, JsonSchema)]
struct Said {
    /// What came out.
    said: String,
}

impl Output for Said {
    fn text(&self) -> String {
        self.said.clone()
    }
}

impl Aside {
    async fn stage(&self, ctx: &ToolCtx, input: &Input) -> (ChangeList, Turn) {
        let mut draft = Draft::new(&self.root, &self.data.join("changes").join(ctx.call_id.as_str())).unwrap();
        for file in &input.files {
            draft.write(&self.root.place(file).unwrap(), b"made aside\n", Expected::Nothing).unwrap();
        }
        draft.seal().unwrap();
        (self.workbench.show(ctx.scope(), &ctx.call_id).await.unwrap(), Turn::commit(ctx.call_id.clone()))
    }

    async fn work(&self, ctx: &ToolCtx, input: &Input) -> Result<(Said, (ChangeList, Turn)), PartialWork> {
        ctx.output(Stream::Stdout, "at work").await;
        let code = match input.ends {
            Ends::Well => return Ok((Said { said: "done".into() }, self.stage(ctx, input).await)),
            Ends::Overtaken => {
                let staged = self.stage(ctx, input).await;
                std::fs::write(self.root.path().join(&input.files[0]), "somebody's\n").unwrap();
                return Ok((Said { said: "done".into() }, staged));
            }
            Ends::AtALimit => ErrorCode::ResourceLimit,
            Ends::WhenStopped => {
                ctx.cancel.cancelled().await;
                // Nobody may take the words of a stopped tool, and it must come to its end all the same.
                for _ in 0..100 {
                    ctx.output(Stream::Stdout, ".").await;
                }
                ErrorCode::ExecutionError
            }
            Ends::WhenStoppedAndUnknown => {
                ctx.cancel.cancelled().await;
                ErrorCode::OutcomeUnknown
            }
            Ends::Never => pending().await,
        };
        let (changes, turn) = self.stage(ctx, input).await;
        let error = ToolError::new(code, "it used the network").with("exitCode", 137);
        Err(PartialWork { error, changes, turn, isolation: Some(Isolation::Namespaces) })
    }
}

impl Tool for Aside {
    type Input = Input;
    type Output = Said;
    const FACTS: ToolFacts =
        ToolFacts { timeout: Duration::from_millis(300), ..ToolFacts::new("aside", "test", Effect::Execute) };

    async fn prepare(&self, ctx: &ToolCtx, input: &Input) -> Result<Prepared<Said>, ToolError> {
        if input.made == Made::After {
            return Ok(Prepared::Plain(Described {
                isolation: Some(Isolation::Namespaces),
                runs_aside: true,
                ..Described::showing("any host, this machine included")
            }));
        }
        let isolation = Some(Isolation::Namespaces);
        Ok(match self.work(ctx, input).await {
            Ok((output, (changes, turn))) => Prepared::Staged { output, changes, turn, isolation },
            Err(cut) => Prepared::CutShort(cut),
        })
    }

    async fn run(&self, ctx: &ToolCtx, input: Input) -> Result<Ran<Said>, ToolError> {
        let isolation = Some(Isolation::Namespaces);
        Ok(match self.work(ctx, &input).await {
            Ok((output, staged)) => Ran::Done { output, isolation, staged: Some(staged) },
            Err(cut) => Ran::CutShort(cut),
        })
    }
}

/// A house with the tool `aside`.
pub(crate) async fn house(stage: &Stage) -> House {
    let house = stage.house().await;
    let data = stage.settings.data.clone();
    let root = Arc::new(Root::open(&stage.path(""), std::slice::from_ref(&data)).unwrap());
    house.registry.register(typed(Aside { root, data, workbench: house.workbench.clone() })).unwrap();
    house
}

//! A workspace with a language server, asked by hand.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc, time::Duration};

use haft_runtime::{
    AnyTool, CallId, Caller, Isolation, Ran, RegisteredTool, Scope, Shown, Source, ToolCtx, ToolError, ToolOutput,
};
use haft_sandbox::fence::FenceLimits;
use haft_tools::{FenceConfig, LanguageServer, LanguageServers, OpenWorkspaces, Workspace, Workspaces};
use serde_json::{Value, json};

use crate::support::{Fixture, HAFT, LIMIT};

/// A workspace with a language server for `.fake` files, or with whatever is installed.
pub(crate) struct Bench {
    pub(crate) fixture: Fixture,
    pub(crate) workspace: Arc<Workspace>,
    tools: Vec<Arc<dyn AnyTool>>,
}

impl Bench {
    /// With the made-up server, which does as these options say.
    pub(crate) fn fake(options: Value) -> Self {
        Self::with(options, LanguageServers::default())
    }

    /// The same, with other settings.
    pub(crate) fn with(options: Value, mut settings: LanguageServers) -> Self {
        settings.servers.push(fake(options));
        let fixture = Fixture::new();
        let variables = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        let around = around(fixture.home.clone(), variables);
        Self::open(fixture, around, settings)
    }

    /// With the servers that `scripts/setup tests` has installed and those of whoever runs the tests.
    pub(crate) fn installed() -> Self {
        let mut variables: std::collections::BTreeMap<String, String> = std::env::vars().collect();
        let home = PathBuf::from(variables["HOME"].clone());
        let cache = variables.get("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
        let path = format!("{}:{}", cache.join("haft/tools/bin").display(), variables["PATH"]);
        variables.insert("PATH".to_owned(), path);
        let settings = LanguageServers { ready: LIMIT, timeout: LIMIT, ..LanguageServers::default() };
        Self::open(Fixture::new(), around(home, variables), settings)
    }

    /// With programs of this name and text in the user's `PATH`, and no other settings.
    pub(crate) fn programs(programs: &[(&str, String)]) -> Self {
        let fixture = Fixture::new();
        let folder = fixture.home.join("bin");
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in programs {
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let variables = [("PATH".to_owned(), format!("{}:/usr/bin:/bin", folder.display()))].into();
        let around = FenceConfig { readable: vec![script(), folder], ..around(fixture.home.clone(), variables) };
        Self::open(fixture, around, LanguageServers::default())
    }

    fn open(fixture: Fixture, around: FenceConfig, servers: LanguageServers) -> Self {
        fs::create_dir(&fixture.data).unwrap();
        let workspace = Workspace::open(&fixture.workspace, &fixture.data).unwrap();
        let workspace = Arc::new(workspace.running_commands(around).outliving_calls().asking(servers));
        let open = OpenWorkspaces::new(&fixture.data).with(Scope::local("test"), workspace.clone());
        let workspaces: Arc<dyn Workspaces> = Arc::new(open);
        let tools = haft_tools::all(&workspaces, Shown::Never);
        Self { fixture, workspace, tools }
    }

    /// Uses a tool, and gives all that it says.
    pub(crate) async fn output(&self, ctx: &ToolCtx, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.tools.iter().find(|known| known.spec().name == tool).unwrap();
        let ran = tokio::time::timeout(2 * LIMIT, tool.run(ctx, &input)).await.unwrap()?;
        if let Ran::Done { isolation, .. } = &ran {
            assert_eq!(*isolation, Some(Isolation::Namespaces));
        }
        let output = ran.into_output()?;
        let published = RegisteredTool::new(Arc::clone(tool)).unwrap();
        assert!(published.may_give(&output.structured), "{}", output.structured.text());
        Ok(output)
    }

    pub(crate) async fn try_to(&self, tool: &str, input: Value) -> Result<Value, ToolError> {
        self.output(&ctx(), tool, input).await.map(|output| output.structured.into_value())
    }

    pub(crate) async fn ask(&self, tool: &str, input: Value) -> Value {
        self.try_to(tool, input).await.unwrap()
    }

    /// What the made-up server knows, told when it is asked about a file.
    pub(crate) async fn state(&self, path: &str) -> Value {
        let hover = self.ask("hover", json!({ "path": path, "line": 1, "col": 1 })).await;
        serde_json::from_str(hover["contents"].as_str().unwrap()).unwrap()
    }
}

pub(crate) fn ctx() -> ToolCtx {
    let caller = Caller::owner("test", Scope::local("test"), Source::Cli);
    ToolCtx::detached(CallId::new(), caller)
}

/// The made-up server, which does as these options say.
pub(crate) fn fake(options: Value) -> LanguageServer {
    LanguageServer {
        language: "fake".to_owned(),
        command: vec!["python3".to_owned(), script().join("fake.py").display().to_string()],
        extensions: vec!["fake".to_owned()],
        init_options: options,
        settings: json!({ "fake": { "a": 1 } }),
    }
}

/// The ids of the made-up servers of a workspace that run.
pub(crate) fn servers(fixture: &Fixture) -> Vec<String> {
    let here = fixture.workspace.canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let is_one = |process: &fs::DirEntry| {
        let words = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        words.contains("fake.py") && fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == here)
    };
    processes.filter(is_one).map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

/// The folder of the made-up server.
pub(crate) fn script() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lsp"))
}

fn around(home: PathBuf, variables: std::collections::BTreeMap<String, String>) -> FenceConfig {
    FenceConfig {
        program: HAFT.into(),
        home,
        variables,
        limits: FenceLimits::default(),
        minimum: Isolation::Namespaces,
        readable: vec![script()],
        writable: Vec::new(),
        hide: Vec::new(),
        timeout: Duration::from_secs(120),
        settings_file: "haft.toml".to_owned(),
    }
}

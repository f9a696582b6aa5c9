//! Everything that is asked of a real server.

use serde_json::{Value, json};

use crate::bench::{Bench, ctx};

/// Everything that is asked of a server about a small project of two files.
pub(crate) struct Project {
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The file that defines `add`, and the one that uses it.
    pub(crate) defines: &'static str,
    pub(crate) uses: &'static str,
    /// Where `add` is used there: line and column.
    pub(crate) at: (u32, u32),
    /// A change that makes the file wrong, and a word that the server then says.
    pub(crate) broken: &'static str,
    pub(crate) complaint: &'static str,
}

pub(crate) async fn all_tools_work(project: &Project) {
    let bench = Bench::installed();
    for (path, text) in project.files {
        bench.fixture.put(path, text.replace("WORKSPACE", &bench.fixture.workspace.display().to_string()));
    }
    let (line, col) = project.at;
    let here = json!({ "path": project.uses, "line": line, "col": col });
    let found = bench.output(&ctx(), "references", here.clone()).await.unwrap();
    let paths: Vec<&str> =
        found.structured["references"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert!(paths.contains(&project.defines) && paths.contains(&project.uses), "{found:#?}");
    assert_eq!(found.structured["ready"], json!(true), "{found:#?}");
    let definition = bench.ask("definition", here.clone()).await;
    assert_eq!(definition["locations"][0]["path"], json!(project.defines), "{definition:#}");
    assert!(definition["locations"][0]["preview"].as_str().unwrap().contains("add"));
    let hover = bench.ask("hover", here).await;
    assert!(hover["contents"].as_str().unwrap().contains("add"), "{hover:#}");
    let symbols = bench.ask("symbols", json!({ "path": project.defines })).await;
    assert!(
        symbols["symbols"].as_array().unwrap().iter().any(|one| one["name"].as_str().unwrap().starts_with("add")),
        "{symbols:#}"
    );
    let fine = bench.ask("diagnostics", json!({ "path": project.uses })).await;
    assert_eq!((&fine["counts"]["error"], &fine["ready"]), (&json!(0), &json!(true)), "{fine:#}");
    bench.fixture.put(project.uses, project.broken);
    let wrong = bench.ask("diagnostics", json!({ "path": project.uses })).await;
    let says =
        |one: &Value| one["severity"] == json!("error") && one["message"].as_str().unwrap().contains(project.complaint);
    assert!(wrong["diagnostics"].as_array().unwrap().iter().any(says), "{wrong:#}");
    bench.workspace.end_background().await;
}

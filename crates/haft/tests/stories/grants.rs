//! Grants and rules: what a remembered yes covers, how often, and what it never covers.

use std::fs;

use haft::rules::{self, Profile};
use haft_runtime::{
    Answer, ApprovedBy, Bounds, Breadth, ChangeState, End, Grant, GrantStatus, Outcome, Questions, Reply, WrittenBounds,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::stage::{Stage, answer, call, code, counted, request, start_waiting, success, yes};

async fn write(house: &haft::house::House, path: &str) -> Outcome {
    call(house, "write_file", json!({"path": path, "content": "text\n"})).await
}

/// Says yes, and always with that breadth.
async fn always(house: &haft::house::House, outcome: &Outcome, breadth: Breadth) -> Grant {
    let id = &outcome.tool_call_id;
    let (question, _) = house.question(id).await.unwrap().unwrap();
    let offers = house.pipeline.offers(&house.caller, &question).await.unwrap();
    let offer = offers.into_iter().find(|offer| offer.breadth == breadth).unwrap();
    let grant = Grant::new("write_file", offer.bounds);
    let done = counted(answer(house, id, Answer::Always { grant: Box::new(grant.clone()) }).await);
    success(&done);
    assert_eq!((done.approved_by, done.grant), (Some(ApprovedBy::User), None));
    grant
}

fn paths(globs: &[&str]) -> Bounds {
    let paths = Some(globs.iter().map(|&glob| glob.to_owned()).collect());
    Bounds::try_from(WrittenBounds { paths, ..WrittenBounds::default() }).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_the_folder_covers_the_folder_and_is_counted() {
    let stage = Stage::new();
    fs::create_dir(stage.path("src")).unwrap();
    let house = stage.house().await;
    let asked = write(&house, "src/a").await;
    let grant = always(&house, &asked, Breadth::Folder).await;
    assert_eq!(stage.text("src/a").as_deref(), Some("text\n"), "the yes commits this call too");
    let other = stage.house().await;
    let covered = write(&other, "src/b").await;
    success(&covered);
    assert_eq!((covered.approved_by, covered.grant.as_ref()), (Some(ApprovedBy::Config), Some(&grant.id)));
    assert_eq!(write(&other, "elsewhere").await.end.status(), "pending");
    assert_eq!(call(&other, "delete_file", json!({"path": "src/a"})).await.end.status(), "pending");
    let kept = other.store.grant(&other.scope, &grant.id).await.unwrap().unwrap();
    assert_eq!(kept.used, 1);
    assert!(kept.last_used.is_some_and(|last| last >= kept.created_at));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_the_very_call_covers_no_other_input_and_no_other_effect() {
    let stage = Stage::new();
    let house = stage.house().await;
    let asked = write(&house, "a").await;
    always(&house, &asked, Breadth::Call).await;
    assert_eq!(write(&house, "b").await.end.status(), "pending");
    stage.put("a", "somebody's\n");
    assert_eq!(write(&house, "a").await.end.status(), "pending", "it was created then, and would be changed now");
    fs::remove_file(stage.path("a")).unwrap();
    success(&write(&house, "a").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_the_bounds_covers_as_much_and_no_more() {
    let stage = Stage::new();
    let house = stage.house().await;
    let asked = write(&house, "a").await;
    always(&house, &asked, Breadth::Bounds).await;
    success(&write(&house, "b").await);
    let longer = call(&house, "write_file", json!({"path": "c", "content": "a longer text\n"})).await;
    assert_eq!(longer.end.status(), "pending");
    let (question, _) = house.question(&longer.tool_call_id).await.unwrap().unwrap();
    assert!(question.nearly.unwrap().contains("14 bytes would be written, and it allows 5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_flagged_is_never_offered_and_covered_only_by_its_name() {
    let stage = Stage::new();
    let house = stage.house().await;
    let grant = |bounds| Grant::new("write_file", bounds);
    house.store.remember(&house.scope, &grant(paths(&["**", ".env*", "[.]envrc"]))).await.unwrap();
    let flagged = write(&house, ".envrc").await;
    assert_eq!(flagged.end.status(), "pending");
    let (question, _) = house.question(&flagged.tool_call_id).await.unwrap().unwrap();
    assert!(
        question.nearly.as_ref().unwrap().contains("is flagged, and it does not name that very path"),
        "{question:?}"
    );
    let why = house.pipeline.offers(&house.caller, &question).await.unwrap_err().to_string();
    assert!(why.contains("`.envrc` is run or obeyed by other programs"), "{why}");
    house.store.remember(&house.scope, &grant(paths(&[".envrc"]))).await.unwrap();
    success(&write(&house, ".envrc").await);
    house.store.remember(&house.scope, &grant(paths(&["haft.toml"]))).await.unwrap();
    assert_eq!(write(&house, "haft.toml").await.end.status(), "pending", "this is asked for in every mode");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_over_covers_nothing() {
    let stage = Stage::new();
    let house = stage.house().await;
    let revoked = Grant::new("write_file", paths(&["**"]));
    let soon = Timestamp::now() + SignedDuration::from_secs(3600);
    let expired = Grant { until: Some(Timestamp::now()), ..Grant::new("write_file", paths(&["**"])) };
    let lasting = Grant { until: Some(soon), uses_left: Some(1), ..Grant::new("write_file", paths(&["**"])) };
    for grant in [&revoked, &expired] {
        house.store.remember(&house.scope, grant).await.unwrap();
    }
    assert!(house.store.revoke(&house.scope, &revoked.id).await.unwrap());
    let waiting = write(&house, "a").await;
    assert_eq!(waiting.end.status(), "pending");
    house.store.remember(&house.scope, &lasting).await.unwrap();
    assert_eq!(write(&house, "b").await.grant, Some(lasting.id.clone()));
    assert_eq!(write(&house, "c").await.end.status(), "pending");
    let now = Timestamp::now();
    let mut standings = Vec::new();
    for grant in house.store.all_grants(&house.scope, &house.here).await.unwrap() {
        standings.push((grant.id.clone(), grant.standing(now)));
    }
    let expected =
        [(lasting.id, GrantStatus::Spent), (expired.id, GrantStatus::Expired), (revoked.id, GrantStatus::Revoked)];
    assert_eq!(standings, expected);
    success(&yes(&house, &waiting.tool_call_id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_too_late_leaves_no_grant() {
    let stage = Stage::new();
    let house = stage.house().await;
    let (id, waiting) =
        start_waiting(&house, request(&house, "write_file", json!({"path": "a", "content": "a\n"}))).await;
    answer(&house, &id, Answer::Reject { message: None }).await;
    waiting.await.unwrap();
    let grant = Box::new(Grant::new("write_file", paths(&["**"])));
    assert!(matches!(answer(&house, &id, Answer::Always { grant }).await, Reply::TooLate(_)));
    assert!(house.store.all_grants(&house.scope, &house.here).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_deny_ask_and_allow_before_anything_is_committed() {
    let mut stage = Stage::new();
    let text = r#"
        [[rule]]
        decision = "deny"
        reason = "keep out"
        bounds = { paths = ["secret/**"] }
        [[rule]]
        decision = "ask"
        bounds = { kinds = ["deleted"] }
        [[rule]]
        tool = "write_file"
        decision = "allow"
        bounds = { paths = ["out/**"] }
    "#;
    let table: toml::Table = text.parse().unwrap();
    stage.settings.rules = rules::read(&table["rule"], "your settings").unwrap();
    for folder in ["secret", "out"] {
        fs::create_dir(stage.path(folder)).unwrap();
    }
    stage.put("old", "old\n");
    let house = stage.house().await;
    let refused = write(&house, "secret/a").await;
    assert_eq!(code(&refused), "FORBIDDEN");
    assert_eq!(refused.end.error().unwrap().message, "rule 1 of your settings refuses this: keep out");
    let staged = house.workbench.show(&house.scope, &refused.tool_call_id).await.unwrap();
    assert!(staged.0.iter().all(|change| change.state == ChangeState::Discarded), "{staged:?}");
    let mut everything = request(&house, "delete_file", json!({"path": "old"}));
    everything.auto_approve = haft_runtime::AutoApprove::Everything;
    let asked = house.pipeline.call(everything).await;
    assert!(matches!(asked.end, End::Pending { .. }), "a rule that asks counts in every mode: {asked:?}");
    let allowed = write(&house, "out/a").await;
    assert_eq!((success(&allowed).content.is_empty(), allowed.approved_by), (false, Some(ApprovedBy::Config)));
    assert_eq!(write(&house, "a").await.end.status(), "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dynamic_profile_lets_new_files_be_made_and_nothing_else() {
    let mut stage = Stage::new();
    stage.settings.profile = Profile::Dynamic;
    let house = stage.house().await;
    success(&write(&house, "a").await);
    stage.put("a", "somebody's\n");
    assert_eq!(write(&house, "a").await.end.status(), "pending", "overwriting is asked for");
    assert_eq!(call(&house, "delete_file", json!({"path": "a"})).await.end.status(), "pending");
    assert_eq!(write(&house, ".envrc").await.end.status(), "pending", "flagged");
    assert_eq!(write(&house, "haft.toml").await.end.status(), "pending", "steers haft itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_denies_meanwhile_holds_against_a_yes() {
    let mut stage = Stage::new();
    let house = stage.house().await;
    let pending = write(&house, "a").await;
    drop(house);
    let table: toml::Table = "[[rule]]\ndecision = \"deny\"".parse().unwrap();
    stage.settings.rules = rules::read(&table["rule"], "your settings").unwrap();
    let stricter = stage.house().await;
    let outcome = yes(&stricter, &pending.tool_call_id).await;
    assert_eq!((code(&outcome).as_str(), stage.text("a")), ("FORBIDDEN", None));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_offered_where_only_the_mode_asks() {
    let stage = Stage::new();
    stage.put("a", "text\n");
    let house = stage.house().await;
    let mut read = request(&house, "read_file", json!({"path": "a"}));
    read.auto_approve = haft_runtime::AutoApprove::Nothing;
    let asked = house.pipeline.call(read).await;
    let (question, _) = house.question(&asked.tool_call_id).await.unwrap().unwrap();
    let why = house.pipeline.offers(&house.caller, &question).await.unwrap_err().to_string();
    assert!(why.contains("only the mode asks"), "{why}");
}

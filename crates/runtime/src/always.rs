//! "Always": the three yeses that can be made of one, and when none may be.

use std::fmt;

use jiff::Timestamp;

use crate::{
    AutoApprove, Bounds, CallFacts, Caller, Case, Change, ChangeKind, ChangeList, Decision, Described, Evidence, Grant,
    Pipeline, Policy, Question, Rememberable, ToolSpec, WrittenBounds,
    bounds::{self, ChangeSubset, carries, escaped, touched},
    decide,
    policy::needs_a_grant,
};

/// How much more than the call at hand a remembered yes covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// This very call: the same input, changing no other paths and in no other way than today.
    Call,
    /// The same tool within the folder that holds all that this call changes; nothing is deleted, moved or made a link
    /// there unless this call did so.
    Folder,
    /// The same tool on any path, with no more and no other kinds of change than this call has; for one that reads from
    /// a host, the same host.
    Bounds,
}

/// One grant that an approver may choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// How broad it is.
    pub breadth: Breadth,
    /// What it would cover.
    pub bounds: Bounds,
}

/// Why no grant is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld(String);

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Withheld {}

impl Pipeline {
    /// The grants that a yes to this question may be turned into, narrowest first. Each would have covered the call.
    pub async fn offers(&self, caller: &Caller, question: &Question) -> Result<Vec<Offer>, Withheld> {
        let caller = &Caller { scope: question.scope(&caller.scope), ..caller.clone() };
        let tool = self.doors.catalog.find(caller, &question.tool).await.map_err(|error| Withheld(error.message))?;
        let seen = CallFacts::new(&question.input, evidence_of(question)?);
        let policy = self.policy(&caller.scope).await.map_err(|error| Withheld(error.message))?;
        let part = needs_a_grant(&policy, tool.spec(), &seen);
        let (mut covering, mut withheld) = (Vec::new(), None);
        for offer in offers(question, part)? {
            match would_cover(&policy, tool.spec(), question, &offer) {
                Ok(()) => covering.push(offer),
                Err(why) => withheld = Some(why),
            }
        }
        withheld.filter(|_| covering.is_empty()).map_or(Ok(covering), Err)
    }
}

fn would_cover(policy: &Policy, spec: &ToolSpec, question: &Question, offer: &Offer) -> Result<(), Withheld> {
    let grants = [Grant::new(&question.tool, offer.bounds.clone())];
    let case = Case {
        spec,
        input: &question.input,
        effect: question.effect,
        evidence: evidence_of(question)?,
        mode: AutoApprove::Reads,
        caller: &question.asked_by.id,
        own_form: None,
        grants: &grants,
        now: Timestamp::now(),
    };
    match decide(policy, &case) {
        Decision::Yes { grant: Some(_), .. } => Ok(()),
        Decision::Yes { grant: None, .. } => {
            Err(Withheld("only the mode asks for this, whatever is remembered".to_owned()))
        }
        Decision::Ask { reason, .. } => Err(Withheld(format!("it asks every time, because {reason}"))),
        Decision::No(error) => Err(Withheld(error.message)),
    }
}

/// A form is answered each time: there is no yes in it to remember.
fn evidence_of(question: &Question) -> Result<&Evidence, Withheld> {
    question.evidence().ok_or_else(|| Withheld("it is not a question for a yes".to_owned()))
}

fn offers(question: &Question, part: ChangeSubset) -> Result<Vec<Offer>, Withheld> {
    let bounded = |breadth, written: WrittenBounds| {
        Bounds::try_from(written).map(|bounds| Offer { breadth, bounds }).map_err(|err| Withheld(err.to_string()))
    };
    let input = Some(question.input.clone());
    let changes = match evidence_of(question)? {
        Evidence::Staged { changes, .. } => {
            ChangeList(changes.0.iter().filter(|change| part.has(change)).cloned().collect())
        }
        Evidence::Plain(Described { lasting: Rememberable::ThisInput, reach, .. }) => {
            let call = WrittenBounds { input, ..WrittenBounds::default() };
            let host = reach.iter().filter(|reach| !reach.sends).map(|reach| {
                let hosts = Some(vec![reach.host.clone()]);
                (Breadth::Bounds, WrittenBounds { hosts, ..WrittenBounds::default() })
            });
            let offers = std::iter::once((Breadth::Call, call)).chain(host);
            return offers.map(|(breadth, written)| bounded(breadth, written)).collect();
        }
        Evidence::Plain(Described { lasting: Rememberable::No { why }, .. }) => return Err(Withheld(why.clone())),
    };
    // What one line says whole, as a commit's objects, needs no look at each of its files.
    let told: Vec<usize> = changes.0.iter().filter(|one| one.summary.is_some()).map(|one| one.unit).collect();
    let why = |change: &Change| must_be_looked_at(change, told.contains(&change.unit));
    if let Some(why) = changes.0.iter().find_map(why) {
        return Err(Withheld(why));
    }
    let executables = changes.0.iter().any(|change| change.executable || carries(change));
    let paths = Some(changes.0.iter().flat_map(very_paths).collect());
    let kinds = kinds(&changes);
    let same = WrittenBounds { kinds: Some(kinds.clone()), executables, ..WrittenBounds::default() };
    let call = WrittenBounds { input, paths, ..same.clone() };
    let folder = WrittenBounds { paths: Some(folder(&changes)), kinds: Some(with_every_write(kinds)), ..same.clone() };
    let effect = WrittenBounds { max_files: Some(changes.0.len()), max_bytes: Some(changes.bytes()), ..same };
    let offers = [(Breadth::Call, call), (Breadth::Folder, folder), (Breadth::Bounds, effect)];
    offers.into_iter().map(|(breadth, written)| bounded(breadth, written)).collect()
}

/// Why a person must see each such change, if so. `told` is whether one line has said what it is.
fn must_be_looked_at(change: &Change, told: bool) -> Option<String> {
    if let Some(flag) = change.flags.first() {
        return Some(format!("`{}` {}, so it asks every time", change.path, flag.words()));
    }
    let has_content = match change.kind {
        ChangeKind::Created | ChangeKind::Changed | ChangeKind::Link => !change.directory && change.size > 0,
        ChangeKind::Deleted | ChangeKind::Mode | ChangeKind::Renamed => false,
    };
    let hidden = has_content && change.diff.is_none() && !told;
    hidden.then(|| format!("the content of `{}` cannot be shown whole", change.path))
}

fn kinds(changes: &ChangeList) -> Vec<ChangeKind> {
    let mut kinds = Vec::new();
    for kind in changes.0.iter().flat_map(bounds::kinds) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// The globs of a change's own paths; a moved folder goes with all that is in it.
fn very_paths(change: &Change) -> impl Iterator<Item = String> {
    let inside = touched(change).filter(|_| carries(change)).map(|path| format!("{}/**", escaped(path)));
    touched(change).map(escaped).chain(inside)
}

/// Whoever may write new files in a folder may write there again, and the other way round.
fn with_every_write(mut kinds: Vec<ChangeKind>) -> Vec<ChangeKind> {
    let writes = [ChangeKind::Created, ChangeKind::Changed];
    if writes.iter().any(|write| kinds.contains(write)) {
        kinds.extend(writes.into_iter().filter(|write| !kinds.contains(write)).collect::<Vec<_>>());
    }
    kinds
}

/// The globs of the deepest folder that holds all that changes; a folder that is itself made or removed is its own.
/// Where all of it lies at the top of the workspace, that is the top alone and not everything beneath it.
fn folder(changes: &ChangeList) -> Vec<String> {
    let paths: Vec<&str> = changes.0.iter().flat_map(touched).collect();
    let Some((first, others)) = paths.split_first() else { return Vec::new() };
    let mut common: Vec<&str> = first.split('/').collect();
    if others.is_empty() {
        common.pop();
    }
    for path in others {
        let same = common.iter().zip(path.split('/')).take_while(|(a, b)| **a == *b).count();
        common.truncate(same);
    }
    if common.is_empty() {
        let is_at_the_top = paths.iter().all(|path| !path.contains('/'));
        return vec![if is_at_the_top { "*" } else { "**" }.to_owned()];
    }
    let folder = common.join("/");
    let itself = paths.contains(&folder.as_str()).then(|| escaped(&folder));
    itself.into_iter().chain([format!("{}/**", escaped(&folder))]).collect()
}

#[cfg(test)]
mod tests;

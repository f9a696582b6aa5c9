//! Finding a tool by words: BM25 over its name, its description and its parameters.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::Value;

use crate::{RegisteredTool, ToolSpec};

/// How much a word counts, by where it stands.
const IN_NAME: f32 = 4.0;
const IN_DESCRIPTION: f32 = 1.0;
const IN_PARAMETER: f32 = 1.0;
const IN_PARAMETER_TEXT: f32 = 0.5;
/// BM25's usual constants: how soon repeating a word counts no more, and how much a long text weakens each word.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;
/// A definition comes from a stranger, a query from a model: neither is read for ever.
const WORDS_OF_A_TEXT: usize = 2000;
const WORDS_OF_A_QUERY: usize = 32;
/// A word that no tool has stands for the words that it begins, if it is at least so long.
const SHORTEST_BEGINNING: usize = 3;
/// What fits by words stays below the score of a name that was given exactly.
const EXACT: f32 = 1.0;
const BEST_BY_WORDS: f32 = 0.999;

/// A tool that fits, and how well: 1 for its very name, less for words.
#[derive(Clone)]
pub struct ToolMatch {
    /// The tool.
    pub tool: Arc<RegisteredTool>,
    /// How well it fits.
    pub score: f32,
}

/// Every word of many tools, with what it says about each of them.
#[derive(Default)]
pub(crate) struct Index {
    /// Sorted by name, so that what fits equally well comes in that order.
    tools: Vec<Arc<RegisteredTool>>,
    /// Every name and alias in lower case.
    names: HashMap<String, usize>,
    words: BTreeMap<String, Vec<Posting>>,
}

/// One tool that has the word, and what the word adds to its score.
struct Posting {
    tool: u32,
    weight: f32,
}

impl Index {
    pub(crate) fn of(tools: Vec<Arc<RegisteredTool>>) -> Self {
        let counted: Vec<WordWeights> = tools.iter().map(|tool| WordWeights::of(tool.spec())).collect();
        let average = counted.iter().map(|counts| counts.length).sum::<f32>() / counted.len().max(1) as f32;
        let mut words: BTreeMap<String, Vec<Posting>> = BTreeMap::new();
        for (tool, counts) in (0..).zip(counted) {
            let norm = SATURATION * (1.0 - LENGTH + LENGTH * counts.length / average);
            for (word, count) in counts.words {
                let weight = count * (SATURATION + 1.0) / (count + norm);
                words.entry(word).or_default().push(Posting { tool, weight });
            }
        }
        for postings in words.values_mut() {
            let rarity = rarity(tools.len(), postings.len());
            postings.iter_mut().for_each(|posting| posting.weight *= rarity);
            postings.shrink_to_fit();
        }
        let names = (0..).zip(&tools).flat_map(|(at, tool)| {
            let spec = tool.spec();
            spec.aliases.iter().chain([&spec.name]).map(move |name| (name.to_lowercase(), at))
        });
        Self { names: names.collect(), tools, words }
    }

    /// What fits best, best first: the tool of that very name, then by words.
    pub(crate) fn find(&self, query: &str, limit: usize) -> Vec<ToolMatch> {
        let mut scores = vec![0.0_f32; self.tools.len()];
        let mut possible = 0.0;
        for word in query_words(query) {
            possible += self.add(&word, &mut scores) * (SATURATION + 1.0);
        }
        let by_words = |score: f32| (score / possible).min(BEST_BY_WORDS);
        let mut fitting: Vec<(usize, f32)> = scores
            .iter()
            .enumerate()
            .filter(|(_, score)| **score > 0.0)
            .map(|(at, score)| (at, by_words(*score)))
            .collect();
        if let Some(&named) = self.names.get(&query.trim().to_lowercase()) {
            fitting.retain(|(at, _)| *at != named);
            fitting.push((named, EXACT));
        }
        let order =
            |a: &(usize, f32), b: &(usize, f32)| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal).then(a.0.cmp(&b.0));
        if fitting.len() > limit {
            fitting.select_nth_unstable_by(limit, order);
            fitting.truncate(limit);
        }
        fitting.sort_by(order);
        fitting.into_iter().map(|(at, score)| ToolMatch { tool: Arc::clone(&self.tools[at]), score }).collect()
    }

    /// Adds what one word says, and gives how rare it is.
    fn add(&self, word: &str, scores: &mut [f32]) -> f32 {
        let mut take = |postings: &[Posting]| {
            for posting in postings {
                scores[posting.tool as usize] += posting.weight;
            }
            rarity(self.tools.len(), postings.len())
        };
        if let Some(postings) = self.words.get(word) {
            return take(postings);
        }
        let mut rarest = rarity(self.tools.len(), 0);
        if word.len() >= SHORTEST_BEGINNING {
            let begun = self.words.range(word.to_owned()..).take_while(|(other, _)| other.starts_with(word));
            for (_, postings) in begun {
                rarest = rarest.min(take(postings));
            }
        }
        rarest
    }
}

/// How much it tells that a tool has a word which so many have.
fn rarity(tools: usize, having: usize) -> f32 {
    let (tools, having) = (tools as f32, having as f32);
    (1.0 + (tools - having + 0.5) / (having + 0.5)).ln()
}

/// The words of one tool, each with how much it counts.
#[derive(Default)]
struct WordWeights {
    words: HashMap<String, f32>,
    length: f32,
    taken: usize,
}

impl WordWeights {
    fn of(spec: &ToolSpec) -> Self {
        let mut counts = Self::default();
        counts.add(&spec.name, IN_NAME);
        counts.add(&spec.description, IN_DESCRIPTION);
        counts.add_parameters(&spec.input_schema);
        counts
    }

    fn add(&mut self, text: &str, weight: f32) {
        for word in words(text).take(WORDS_OF_A_TEXT - self.taken) {
            *self.words.entry(word).or_default() += weight;
            self.length += weight;
            self.taken += 1;
        }
    }

    /// Names and descriptions of the parameters, and of those inside them.
    fn add_parameters(&mut self, schema: &Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, parameter) in properties.into_iter().flatten() {
            self.add(name, IN_PARAMETER);
            self.add(parameter.get("description").and_then(Value::as_str).unwrap_or_default(), IN_PARAMETER_TEXT);
            self.add_parameters(parameter);
        }
        if let Some(items) = schema.get("items") {
            self.add_parameters(items);
        }
    }
}

/// Each word of a query once, in order.
fn query_words(query: &str) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for word in words(query) {
        if distinct.len() == WORDS_OF_A_QUERY {
            break;
        }
        if !distinct.contains(&word) {
            distinct.push(word);
        }
    }
    distinct
}

/// The words of a text in lower case and without a plural's `s`; `GitHub` is `github`, `git` and `hub`.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|run| !run.is_empty()).flat_map(|run| {
        let mut parts = humps(run);
        if parts.len() > 1 {
            parts.insert(0, run);
        }
        parts.into_iter().map(|part| singular(part.to_lowercase()))
    })
}

/// `readHTTPBody` → `read`, `HTTP`, `Body`.
fn humps(run: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = run.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, window) in letters.windows(2).enumerate() {
        let [(here, first), (next, second)] = [window[0], window[1]];
        let ends_capitals = first.is_uppercase() && second.is_lowercase() && at > 0 && letters[at - 1].1.is_uppercase();
        let cut = if first.is_lowercase() && second.is_uppercase() {
            next
        } else if ends_capitals {
            here
        } else {
            continue;
        };
        parts.push(&run[start..cut]);
        start = cut;
    }
    parts.push(&run[start..]);
    parts
}

fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

#[cfg(test)]
pub(crate) mod tests;

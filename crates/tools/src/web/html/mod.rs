//! Pages as people and models read them: the article without what stands around it, as text or Markdown.

mod article;
mod lines;
mod markdown;
mod table;
#[cfg(test)]
mod tests;
mod tree;

pub(super) use markdown::{PageFormat, readable};

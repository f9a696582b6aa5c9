//! Tables that hold figures and words; those that only place things on a page are walked like the rest of it.

use html5ever::{LocalName, local_name};

use super::{
    lines::Gap,
    markdown::{PageFormat, PageWriter},
    tree::is_one_of,
};

impl PageWriter<'_> {
    /// Writes a table and gives the node after it; `None` when it is not one that has rows and columns to show.
    pub(super) fn table(&mut self, at: usize) -> Option<usize> {
        let end = self.nodes[at].end;
        if self.nodes[at + 1..end].iter().any(|node| places_things(node.name())) {
            return None;
        }
        let rows = self.rows(at);
        let columns = rows.iter().map(Vec::len).max().filter(|columns| *columns > 1)?;
        self.lines.part(Gap::Block);
        let caption = (at + 1..end).find(|inner| is_one_of!(self.nodes[*inner].name(), "caption"));
        if let Some(caption) = caption {
            let caption = self.flat(caption + 1..self.nodes[caption].end);
            self.lines.verbatim(&caption);
            self.lines.part(Gap::Block);
        }
        for (number, row) in rows.iter().enumerate() {
            if self.is_full() {
                break;
            }
            let empty = String::new();
            let cells: Vec<&str> = (0..columns).map(|column| row.get(column).unwrap_or(&empty).as_str()).collect();
            let written = match self.form {
                PageFormat::Markdown => format!("| {} |", cells.join(" | ")),
                PageFormat::Text => cells.join("\t"),
            };
            self.lines.verbatim(&written);
            self.lines.part(Gap::Line);
            if number == 0 && self.form == PageFormat::Markdown {
                self.lines.verbatim(&format!("|{}", " --- |".repeat(columns)));
                self.lines.part(Gap::Line);
            }
        }
        self.lines.part(Gap::Block);
        Some(end)
    }

    fn rows(&self, table: usize) -> Vec<Vec<String>> {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut held = 0;
        for at in table + 1..self.nodes[table].end {
            if held > self.most {
                break;
            }
            match *self.nodes[at].name() {
                local_name!("tr") => rows.push(Vec::new()),
                local_name!("td") | local_name!("th") => {
                    let text = self.flat(at + 1..self.nodes[at].end);
                    let cell = if self.form == PageFormat::Markdown { text.replace('|', "\\|") } else { text };
                    held += cell.len();
                    if rows.is_empty() {
                        rows.push(Vec::new());
                    }
                    if let Some(row) = rows.last_mut() {
                        row.push(cell);
                    }
                }
                _ => {}
            }
        }
        rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        rows
    }
}

/// What no cell of a table of figures holds.
fn places_things(name: &LocalName) -> bool {
    is_one_of!(
        name,
        "table" | "h1" | "h2" | "h3" | "h4" | "ul" | "ol" | "pre" | "blockquote" | "form" | "article" | "section"
    )
}

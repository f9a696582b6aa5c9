//! Columns that line up.

use std::io::IsTerminal;

use crate::show::{safe::safe, style::STRONG};

/// The width of the terminal, or 80.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(80, |(terminal_size::Width(width), _)| usize::from(width)).max(40)
}

/// Rows under a heading; at a terminal the last column takes what is left of the line and is cut to it.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| safe(cell)).collect()).collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([head[column].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let mut text = format!("{STRONG}{}{STRONG:#}\n", line(&head, &widths));
    for row in &rows {
        text.push_str(&line(row, &widths));
        text.push('\n');
    }
    text
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (column, cell) in cells.iter().enumerate() {
        if column + 1 == cells.len() {
            let left = width().saturating_sub(text.chars().count()).max(8);
            let left = if std::io::stdout().is_terminal() { left } else { usize::MAX };
            text.push_str(&cut(cell, left));
        } else {
            text.push_str(&format!("{cell:<width$}  ", width = widths[column]));
        }
    }
    text.trim_end().to_owned()
}

/// The text cut to so many columns.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let one_line = text.replace('\n', " ");
    if one_line.chars().count() <= most {
        return one_line;
    }
    one_line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The text in lines of at most so many columns, broken between words.
pub(crate) fn wrapped(text: &str, most: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > most {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{cut, wrapped};

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree");
        assert_eq!(wrapped("one\n\ntwo", 80), "one\n\ntwo");
        assert_eq!(wrapped("a-very-long-word x", 5), "a-very-long-word\nx");
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abc", 4), "abc");
    }
}

//! A form: filled in at the terminal field by field, or with values that were typed at once.

use anyhow::Result;
use haft_runtime::{Answer, AnswerReceipt, Choice, Field, FieldKind, Form, Question};
use serde_json::{Map, Value, json};

use crate::{
    backend::Backend,
    commands::{
        answer::already,
        arguments, mistake,
        prompt::{Person, TerminalLines},
    },
    exit::CliExit,
    show::{
        Out,
        card::{card, choice_words},
        changes::DetailLevel,
        safe::safe,
        style::{DIM, STRONG, WARN},
    },
};

/// The answer that `haft approve` gives to a form: the typed values, or what a person fills in, or the defaults.
pub(crate) async fn by_flag(
    backend: &Backend,
    (question, form): (&Question, &Form),
    typed: Option<&str>,
) -> Result<Answer> {
    let values = match typed.map(arguments::read).transpose()? {
        Some(Value::Object(values)) => values,
        Some(_) => return Err(mistake(format!("give the values as a JSON object, like {}", example(form)))),
        None if Person::at_the_terminal() == Person::Terminal => {
            return Ok(ask(backend, (question, form), &mut TerminalLines::new()).await);
        }
        None => Map::new(),
    };
    match form.filled(values) {
        Ok(values) => Ok(Answer::Fill { values }),
        Err(error) => {
            let wanted = example(form);
            Err(mistake(format!(
                "{}; the question stays open: haft approve {} --input '{wanted}'",
                error.message, question.call
            )))
        }
    }
}

/// Gives the answer to a form; the process that does the work goes on with it.
pub(crate) async fn give(backend: &Backend, question: &Question, answer: Answer) -> Result<()> {
    let call = &question.call;
    match backend.give_answer(question, answer).await?.0 {
        AnswerReceipt::Taken | AnswerReceipt::MoreNeeded(_) => Ok(()),
        AnswerReceipt::TooLate(first) => Err(mistake(already(call, &first))),
        AnswerReceipt::NoQuestion => {
            Err(mistake(format!("{call} waits for no answer; `haft log show {call}` tells its story")))
        }
    }
}

/// The same, and says so.
pub(crate) async fn give_and_say(backend: &Backend, out: &Out, question: &Question, answer: Answer) -> Result<CliExit> {
    give(backend, question, answer).await?;
    if out.json {
        out.document(&json!({"status": "answered", "tool_call_id": question.call}));
    } else {
        out.line(&format!("answered; `{}` goes on with it", question.tool));
        out.hint(&format!("`haft wait {}` shows how it ends", question.call));
    }
    Ok(CliExit::Success)
}

/// Shows the form and asks for one field after the other. No more input means: put it away.
pub(crate) async fn ask(backend: &Backend, (question, form): (&Question, &Form), lines: &mut TerminalLines) -> Answer {
    anstream::eprint!("{}", card(question, DetailLevel::Short, backend.redactor()));
    loop {
        let prompt = format!("{STRONG}Answer this?{STRONG:#} [y]es [n]o ");
        let Some(line) = lines.next(&prompt).await else { return Answer::Cancel };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => break,
            "n" | "no" => {
                let words = lines.next("Why? (Enter to give no reason) ").await.unwrap_or_default();
                let message = Some(words.trim().to_owned()).filter(|words| !words.is_empty());
                return Answer::Reject { message };
            }
            other => anstream::eprintln!("`{}` is neither y nor n", safe(other)),
        }
    }
    let mut values = Map::new();
    for field in form.fields() {
        match fill_in(form, &field, lines).await {
            FieldAnswer::Value(value) => drop(values.insert(field.name, value)),
            FieldAnswer::Nothing => {}
            FieldAnswer::NoMore => return Answer::Cancel,
        }
    }
    match form.filled(values) {
        Ok(values) => Answer::Fill { values },
        Err(error) => {
            anstream::eprintln!("{WARN}{}{WARN:#}", safe(&error.message));
            Answer::Cancel
        }
    }
}

/// What a person typed for a field.
enum FieldAnswer {
    Value(Value),
    Nothing,
    NoMore,
}

/// Asks for one field until it fits.
async fn fill_in(form: &Form, field: &Field, lines: &mut TerminalLines) -> FieldAnswer {
    if let FieldKind::One(choices) | FieldKind::Any(choices) = &field.kind {
        for (at, choice) in choices.iter().enumerate() {
            anstream::eprintln!("  {STRONG}{}{STRONG:#}  {}", at + 1, choice_words(choice));
        }
    }
    let prompt = prompt(field);
    loop {
        let Some(line) = lines.next(&prompt).await else { return FieldAnswer::NoMore };
        let typed = line.trim();
        if typed.is_empty() {
            match (&field.default, field.required) {
                (Some(default), _) => return FieldAnswer::Value(default.clone()),
                (None, false) => return FieldAnswer::Nothing,
                (None, true) => {
                    anstream::eprintln!("it must be filled in");
                    continue;
                }
            }
        }
        let read = read(&field.kind, typed).and_then(|value| {
            form.fits(&field.name, &value).map_err(|error| error.message)?;
            Ok(value)
        });
        match read {
            Ok(value) => return FieldAnswer::Value(value),
            Err(why) => anstream::eprintln!("{WARN}{}{WARN:#}", safe(&why)),
        }
    }
}

fn prompt(field: &Field) -> String {
    let name = safe(field.title.as_ref().unwrap_or(&field.name));
    let about = field.description.as_ref().map_or_else(String::new, |text| format!(" {DIM}{}{DIM:#}", safe(text)));
    let hint = match &field.kind {
        FieldKind::YesOrNo => " (y or n)",
        FieldKind::One(_) => " (a number of the list)",
        FieldKind::Any(_) => " (numbers of the list, with commas between)",
        FieldKind::Text | FieldKind::Number | FieldKind::Integer => "",
    };
    let default = match &field.default {
        Some(Value::String(text)) => format!(" [{}]", safe(text)),
        Some(value) => format!(" [{}]", safe(&value.to_string())),
        None if field.required => String::new(),
        None => " [leave out]".to_owned(),
    };
    format!("{STRONG}{name}{STRONG:#}{about}{hint}{default}: ")
}

/// What was typed, as a value of this kind.
fn read(kind: &FieldKind, typed: &str) -> Result<Value, String> {
    match kind {
        FieldKind::Text => Ok(json!(typed)),
        FieldKind::Number => typed.parse::<f64>().map(Value::from).map_err(|_| format!("`{typed}` is not a number")),
        FieldKind::Integer => {
            typed.parse::<i64>().map(Value::from).map_err(|_| format!("`{typed}` is not a whole number"))
        }
        FieldKind::YesOrNo => match typed.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(json!(true)),
            "n" | "no" | "false" => Ok(json!(false)),
            _ => Err(format!("`{typed}` is neither y nor n")),
        },
        FieldKind::One(choices) => chosen(choices, typed).map(Value::from),
        FieldKind::Any(choices) => {
            let parts = typed.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| chosen(choices, part).map(Value::from)).collect()
        }
    }
}

/// The choice with this number, value or title.
fn chosen(choices: &[Choice], typed: &str) -> Result<String, String> {
    let by_number = typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    let by_name = || choices.iter().find(|one| one.value == typed || one.title.as_deref() == Some(typed));
    // A value that is itself a number is meant before the place in the list.
    let exact = choices.iter().find(|one| one.value == typed);
    let found = exact.or(by_number).or_else(by_name);
    found.map(|choice| choice.value.clone()).ok_or_else(|| format!("`{typed}` is none of the list"))
}

/// Values that show what is wanted.
fn example(form: &Form) -> Value {
    let value = |field: &Field| match (&field.default, &field.kind) {
        (Some(default), _) => default.clone(),
        (None, FieldKind::Text) => json!("…"),
        (None, FieldKind::Number | FieldKind::Integer) => json!(0),
        (None, FieldKind::YesOrNo) => json!(true),
        (None, FieldKind::One(choices)) => json!(choices.first().map(|choice| &choice.value)),
        (None, FieldKind::Any(choices)) => {
            json!(choices.iter().take(1).map(|choice| &choice.value).collect::<Vec<_>>())
        }
    };
    let wanted = form.fields().into_iter().filter(|field| field.required || field.default.is_none());
    Value::Object(wanted.map(|field| (field.name.clone(), value(&field))).collect())
}

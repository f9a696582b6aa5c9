//! One word of a project tool's command, and what it becomes: never more than its author wrote, and no shell reads it.

use serde_json::{Map, Value};

use super::{
    parameter::{Parameter, ParameterKind},
    table::texts,
};

/// What ends the options of a command.
const NO_MORE_OPTIONS: &str = "--";

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument(Vec<ArgumentPart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum ArgumentPart {
    Text(String),
    /// The value of the parameter of this name.
    Value(String),
}

impl Argument {
    /// Reads a word of a manifest; its `{{names}}` must be parameters.
    pub(super) fn read(word: &str, parameters: &[Parameter]) -> Result<Self, String> {
        if word.contains('\0') {
            return Err(format!("{word:?} in `command` has a NUL character, which no program can be given"));
        }
        let mut pieces = Vec::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or_else(|| format!("`{word}` in `command` has no `}}}}`"))?;
            let name = name.trim();
            if !parameters.iter().any(|parameter| parameter.name == name) {
                let near = haft_runtime::nearest(name, parameters.iter().map(|parameter| parameter.name.as_str()));
                let hint = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                return Err(format!("`{{{{{name}}}}}` in `command` is none of its parameters{hint}"));
            }
            if !before.is_empty() {
                pieces.push(ArgumentPart::Text(before.to_owned()));
            }
            pieces.push(ArgumentPart::Value(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() || pieces.is_empty() {
            pieces.push(ArgumentPart::Text(rest.to_owned()));
        }
        let argument = Self(pieces);
        argument.check(word, parameters)?;
        Ok(argument)
    }

    /// Several values are several words, so they stand alone.
    fn check(&self, word: &str, parameters: &[Parameter]) -> Result<(), String> {
        let is_array = |piece: &ArgumentPart| match piece {
            ArgumentPart::Text(_) => false,
            ArgumentPart::Value(name) => {
                parameters.iter().any(|one| one.name == *name && one.kind == ParameterKind::Texts)
            }
        };
        if self.0.len() > 1 && self.0.iter().any(is_array) {
            return Err(format!("`{word}` in `command`: an array becomes one word for each value, so it stands alone"));
        }
        Ok(())
    }

    /// The word itself, where it is the same each time.
    pub(super) fn fixed(&self) -> Option<&str> {
        match self.0.as_slice() {
            [ArgumentPart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The word as its author wrote it.
    pub(super) fn written(&self) -> String {
        let text = |part: &ArgumentPart| match part {
            ArgumentPart::Text(text) => text.clone(),
            ArgumentPart::Value(name) => format!("{{{{{name}}}}}"),
        };
        self.0.iter().map(text).collect()
    }

    /// The words that it becomes: one, none for a value that is not there, or one for each value of an array.
    fn filled(&self, values: &Map<String, Value>) -> Vec<String> {
        if let [ArgumentPart::Value(name)] = self.0.as_slice() {
            let Some(value) = values.get(name) else { return Vec::new() };
            return texts(value).unwrap_or_else(|| vec![plain(value)]);
        }
        let text = |piece: &ArgumentPart| match piece {
            ArgumentPart::Text(text) => text.clone(),
            ArgumentPart::Value(name) => values.get(name).map(plain).unwrap_or_default(),
        };
        vec![self.0.iter().map(text).collect()]
    }

    /// The parameter whose value a program could take for an option.
    fn begins_with(&self) -> Option<&str> {
        match self.0.first() {
            Some(ArgumentPart::Value(name)) => Some(name),
            Some(ArgumentPart::Text(_)) | None => None,
        }
    }
}

/// Some words as a person would type them: quoted where a shell would read them otherwise.
pub(super) fn shown(words: &[String]) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:=,@%+{}".contains(letter);
    let quoted = words.iter().map(|word| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The command with everything filled in. A value that a program would take for an option is refused, unless the author
/// has said `--` before it.
pub(super) fn filled(arguments: &[Argument], values: &Map<String, Value>) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    for argument in arguments {
        for word in argument.filled(values) {
            if word.contains('\0') {
                return Err(format!("{word:?} has a NUL character, which no program can be given"));
            }
            if let Some(name) = argument.begins_with()
                && is_option(&word, values.get(name))
                && !words.iter().any(|word| word == NO_MORE_OPTIONS)
            {
                return Err(format!("`{name}` is {word:?}, which the program would take for an option"));
            }
            words.push(word);
        }
    }
    Ok(words)
}

/// A number may be negative.
fn is_option(word: &str, value: Option<&Value>) -> bool {
    word.starts_with('-') && !value.is_some_and(Value::is_number)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameters() -> Vec<Parameter> {
        let kinds = [("env", "string"), ("count", "integer"), ("dry", "boolean"), ("files", "array")];
        kinds.iter().map(|(name, kind)| Parameter::read(name, &json!({"type": kind})).unwrap()).collect()
    }

    fn command(words: &[&str]) -> Vec<Argument> {
        words.iter().map(|word| Argument::read(word, &parameters()).unwrap()).collect()
    }

    fn words(command_words: &[&str], values: &Value) -> Result<Vec<String>, String> {
        filled(&command(command_words), values.as_object().unwrap())
    }

    #[test]
    fn each_value_is_one_word_or_part_of_one() {
        let odd = "a b; $(rm -rf /) `x` 'y' \"z\"\n*";
        let given = json!({"env": odd, "count": -3, "dry": true, "files": ["one two", "", "$HOME"]});
        let filled =
            words(&["run", "{{env}}", "--env={{ env }}/{{count}}", "{{count}}", "{{dry}}", "{{files}}"], &given);
        let expected = ["run", odd, &format!("--env={odd}/-3"), "-3", "true", "one two", "", "$HOME"];
        assert_eq!(filled.unwrap(), expected);
    }

    #[test]
    fn what_is_not_there_drops_the_word_that_it_is() {
        let filled = words(&["run", "{{env}}", "--env={{env}}", "{{files}}", "end"], &json!({}));
        assert_eq!(filled.unwrap(), ["run", "--env=", "end"]);
    }

    #[test]
    fn nothing_is_filled_in_twice() {
        assert_eq!(words(&["run", "{{env}}"], &json!({"env": "{{count}}", "count": 1})).unwrap(), ["run", "{{count}}"]);
    }

    #[test]
    fn a_value_never_becomes_an_option() {
        for (arguments, values) in [
            (&["run", "{{env}}"][..], json!({"env": "--force"})),
            (&["run", "{{env}}x"], json!({"env": "-"})),
            (&["run", "{{files}}"], json!({"files": ["a", "-rf"]})),
        ] {
            let said = words(arguments, &values).unwrap_err();
            assert!(said.contains("take for an option"), "{said}");
        }
        assert_eq!(words(&["run", "--", "{{env}}"], &json!({"env": "-x"})).unwrap(), ["run", "--", "-x"]);
        assert_eq!(words(&["run", "--env={{env}}"], &json!({"env": "-x"})).unwrap(), ["run", "--env=-x"]);
        // Only the author ends the options.
        assert!(words(&["run", "{{env}}", "{{files}}"], &json!({"env": "--", "files": ["-x"]})).is_err());
        assert!(words(&["run", "{{env}}"], &json!({"env": "a\0b"})).unwrap_err().contains("NUL"));
    }
}

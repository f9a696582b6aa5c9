//! Which forms there can be, and what fits them.

use serde_json::{Value, json};

use super::{Choice, FieldKind, Form};
use crate::ToolError;

fn form(properties: &Value, required: &[&str]) -> Result<Form, ToolError> {
    Form::new("What?", json!({"type": "object", "properties": properties, "required": required}))
}

fn filled(form: &Form, values: Value) -> Result<Value, String> {
    let Value::Object(values) = values else { panic!("an object") };
    form.filled(values).map(|filled| json!(filled)).map_err(|error| error.message)
}

#[test]
fn every_kind_of_field_that_clients_show_is_read() {
    let choices = json!([{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]);
    let form = form(
        &json!({
            "name": {"type": "string", "title": "Name", "default": "Ann"},
            "age": {"type": "integer"}, "score": {"type": "number"}, "sure": {"type": "boolean"},
            "plain": {"type": "string", "enum": ["a", "b"]},
            "titled": {"type": "string", "oneOf": choices},
            "older": {"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "many_titled": {"type": "array", "items": {"anyOf": choices}},
        }),
        &["name"],
    )
    .unwrap();
    let fields = form.fields();
    let kinds: Vec<&FieldKind> = fields.iter().map(|field| &field.kind).collect();
    let choice = |value: &str, title: Option<&str>| Choice { value: value.into(), title: title.map(str::to_owned) };
    let plain = vec![choice("a", None), choice("b", None)];
    let titled = vec![choice("a", Some("First")), choice("b", Some("Second"))];
    let expected = [
        FieldKind::Text,
        FieldKind::Integer,
        FieldKind::Number,
        FieldKind::YesOrNo,
        FieldKind::One(plain.clone()),
        FieldKind::One(titled.clone()),
        FieldKind::One(titled.clone()),
        FieldKind::Any(plain),
        FieldKind::Any(titled),
    ];
    assert_eq!(kinds, expected.iter().collect::<Vec<_>>());
    assert!(fields[0].required && !fields[1].required && fields[0].default == Some(json!("Ann")));
}

#[test]
fn what_no_client_could_show_is_refused() {
    for broken in [
        json!({"deep": {"type": "object"}}),
        json!({"list": {"type": "array", "items": {"type": "string"}}}),
        json!({"any": {}}),
    ] {
        assert!(form(&broken, &[]).unwrap_err().message.contains("cannot be shown"), "{broken}");
    }
    assert!(Form::new("What?", json!({"type": "string"})).is_err());
}

#[test]
fn only_what_fits_is_taken_and_defaults_fill_the_rest() {
    let fields = json!({
        "mail": {"type": "string", "format": "email"}, "age": {"type": "integer", "minimum": 18, "default": 30},
        "pets": {"type": "array", "items": {"type": "string", "enum": ["cat", "dog"]}, "maxItems": 1},
    });
    let form = form(&fields, &["mail"]).unwrap();
    assert_eq!(filled(&form, json!({"mail": "a@b.ch"})).unwrap(), json!({"mail": "a@b.ch", "age": 30}));
    for (wrong, why) in [
        (json!({}), "`answer.mail` is required"),
        (json!({"mail": "nobody"}), "answer.mail"),
        (json!({"mail": "a@b.ch", "age": 3}), "must be ≥ 18"),
        (json!({"mail": "a@b.ch", "pets": ["cow"]}), "must be one of"),
        (json!({"mail": "a@b.ch", "agee": 40}), "did you mean `age`?"),
    ] {
        let told = filled(&form, wrong.clone()).unwrap_err();
        assert!(told.contains(why), "{wrong}: {told}");
    }
}

//! What replies are constrained to.

use serde_json::{Value, json};

/// A language of sixteen sentences, as EBNF.
pub(super) const GRAMMAR: &str = "\
root ::= select_statement
select_statement ::= \"SELECT \" column \" from \" table \" where \" condition
column ::= \"col_1 \" | \"col_2 \"
table ::= \"table_1 \" | \"table_2 \"
condition ::= column \"= \" number
number ::= \"1 \" | \"2 \"
";

/// An e-mail address and a new line.
pub(super) const REGEX: &str = r"\w+@\w+\.com\n";

/// The words to choose from.
pub(super) const CHOICES: [&str; 2] = ["Positive", "Negative"];

/// The schema of a user's profile.
pub(super) fn profile() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "name": text(), "email": text(), "street": text(), "city": text(), "state": text(),
            "zip": text(), "phone": text(), "website": text(), "company": text(),
            "age": {"type": "integer"},
        },
        "required": ["name", "email"],
    })
}

/// `schema` with one more property that need not be there, whose name no other number and no other salt
/// gives. `None` for what has no properties.
pub(super) fn unique(schema: &Value, salt: u64, number: u64) -> Option<Value> {
    let mut schema = schema.as_object()?.clone();
    let properties = schema.entry("properties").or_insert_with(|| json!({})).as_object_mut()?;
    let field = json!({"type": "string", "description": "Need not be there; tells this schema from others"});
    properties.insert(format!("__optional_field_{}", uuid(salt, number)), field);
    Some(Value::Object(schema))
}

/// A UUID, of the salt and the number.
fn uuid(salt: u64, number: u64) -> String {
    let hex = format!("{salt:016x}{number:016x}");
    // Its fourth part begins with the number's highest digits, which are 0: nothing is lost.
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

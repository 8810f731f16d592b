//! Answers for people and programs.

use super::connect::Listed;
use crate::{
    failure::{Failure, print, say},
    output,
    table::{Table, fields},
    text,
};
use serde_json::Value;

/// A column: its title and the member that it shows.
pub(super) type Column = (&'static str, &'static str);

/// A list: one JSON document a line, or a table.
pub(super) fn list(listed: &Listed, columns: &[Column], json: bool) -> Result<(), Failure> {
    if json {
        for item in &listed.items {
            if output::write(output::json_line(item))?.is_break() {
                return Ok(());
            }
        }
        return Ok(());
    }
    let header: Vec<&'static str> = columns.iter().map(|(title, _)| *title).collect();
    let rows = listed.items.iter().map(|item| {
        let cells = columns.iter();
        cells.map(|(_, member)| cell(&item[member])).collect()
    });
    if !listed.items.is_empty() {
        let _ = output::write(Table::new(&header).portion(rows))?;
    }
    if listed.more {
        say(format_args!(
            "{} shown, and there are more: --limit N or --all shows them",
            listed.items.len()
        ));
    }
    Ok(())
}

/// One thing: a JSON document, or its members below each other.
pub(super) fn one(value: &Value, json: bool) -> Result<(), Failure> {
    if json {
        return output::write(output::json_line(value)).map(|_| ());
    }
    let Some(members) = value.as_object() else {
        return print(format_args!("{}", text::json(&value.to_string())));
    };
    let shown = members
        .iter()
        .map(|(name, value)| (name.as_str(), cell(value)));
    output::write(fields(shown)).map(|_| ())
}

/// A value in few characters.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            items.join(", ")
        }
        other => other.to_string(),
    }
}

//! One case of a vector, divided into what it describes and what it expects.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What a case describes: everything but its name and what it expects.
#[derive(Clone, Debug)]
pub struct Input(Map<String, Value>);

/// What a case expects: members that the outcome must have, with these values.
#[derive(Clone, Debug)]
pub struct Expectation(Map<String, Value>);

/// What happened, under the names of the members in which vectors expect it. It may say more than a case asks for.
#[derive(Clone, Debug, Default)]
pub struct Outcome(Map<String, Value>);

/// A case that cannot be carried out: it is not of the form that its handler knows, or the environment failed.
#[derive(Clone, Debug)]
pub struct Fault(pub String);

/// Divides a case: `expected` names the members that hold expectations. The name goes too, since it tells them.
pub fn divide(case: Map<String, Value>, expected: &[&str]) -> (Input, Expectation) {
    let (expectation, mut input): (Map<_, _>, Map<_, _>) = case
        .into_iter()
        .partition(|(member, _)| expected.contains(&member.as_str()));
    input.shift_remove("name");
    (Input(input), Expectation(expectation))
}

impl Input {
    /// The member, if it is there.
    pub fn get(&self, member: &str) -> Option<&Value> {
        self.0.get(member)
    }

    /// The member.
    ///
    /// # Errors
    /// When it is missing.
    pub fn member(&self, member: &str) -> Result<Value, Fault> {
        let value = self.0.get(member).cloned();
        value.ok_or_else(|| Fault(format!("the case has no {member}")))
    }

    /// The member, read as `T`.
    ///
    /// # Errors
    /// When it is missing or something else.
    pub fn read<T: DeserializeOwned>(&self, member: &str) -> Result<T, Fault> {
        serde_json::from_value(self.member(member)?)
            .map_err(|error| Fault(format!("{member}: {error}")))
    }

    /// The member, read as `T`, or `T`'s default without it.
    ///
    /// # Errors
    /// When it is something else.
    pub fn read_or_default<T: DeserializeOwned + Default>(&self, member: &str) -> Result<T, Fault> {
        if self.0.contains_key(member) {
            self.read(member)
        } else {
            Ok(T::default())
        }
    }

    /// The member `operation`, by which some vectors divide their cases; else empty.
    pub fn operation(&self) -> &str {
        self.0
            .get("operation")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

impl Outcome {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether something was accepted.
    pub fn valid(valid: bool) -> Self {
        Self::new().with("valid", valid)
    }

    /// Adds what happened as `member`.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.0.insert(member.to_owned(), value.into());
        self
    }
}

impl Expectation {
    /// Compares every member with what happened.
    ///
    /// # Errors
    /// The first difference, for people; also when nothing is expected at all, since nothing would be shown then.
    pub fn compare(&self, outcome: &Outcome) -> Result<(), String> {
        if self.0.is_empty() {
            return Err("the case expects nothing that is known here".to_owned());
        }
        for (member, expected) in &self.0 {
            match outcome.0.get(member) {
                Some(found) if found == expected => {}
                Some(found) => return Err(format!("{member} is {found}, not {expected}")),
                None => return Err(format!("{member} was not decided; expected is {expected}")),
            }
        }
        Ok(())
    }
}

impl Fault {
    /// For `map_err`: what `doing` failed with.
    pub fn of<E: std::fmt::Display>(doing: &str) -> impl FnOnce(E) -> Self {
        move |error| Self(format!("{doing}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn a_handler_sees_neither_name_nor_expectation() {
        let case = map(json!({"name": "bad-id", "value": "..", "valid": false, "extra": 1}));
        let (input, expectation) = divide(case, &["valid"]);
        assert_eq!(Value::Object(input.0), json!({"value": "..", "extra": 1}));
        assert_eq!(Value::Object(expectation.0), json!({"valid": false}));
    }

    #[test]
    fn every_expected_member_must_have_happened() {
        let expectation = |value| Expectation(map(value));
        let outcome = Outcome::valid(true).with("status", 304);
        assert!(
            expectation(json!({"valid": true}))
                .compare(&outcome)
                .is_ok()
        );
        assert!(
            expectation(json!({"valid": true, "status": 304}))
                .compare(&outcome)
                .is_ok()
        );
        assert!(
            expectation(json!({"valid": true, "status": 200}))
                .compare(&outcome)
                .is_err()
        );
        assert!(
            expectation(json!({"valid": "true"}))
                .compare(&outcome)
                .is_err()
        );
        assert!(
            expectation(json!({"retry": false}))
                .compare(&outcome)
                .is_err()
        );
        assert!(expectation(json!({})).compare(&outcome).is_err());
    }
}

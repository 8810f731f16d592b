//! The adapter: one JSON request a line in, one JSON answer a line out.

use crate::case::{Fault, divide};
use crate::subject;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{self, BufRead, Write};

/// The version of the conversation with the harness.
pub const PROTOCOL_VERSION: &str = "1";

/// Whose behaviour is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The reader.
    Agent,
    /// The publisher.
    Service,
}

impl Role {
    /// The role of this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "agent" => Some(Self::Agent),
            "service" => Some(Self::Service),
            _ => None,
        }
    }

    /// The name in vectors and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Service => "service",
        }
    }
}

/// The vector that a case belongs to. Only its subject decides what is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorInfo {
    /// Identifier.
    pub id: String,
    /// For people.
    #[serde(default)]
    pub title: String,
    /// The drafts that it tests.
    #[serde(default)]
    pub drafts: Vec<String>,
    /// For people.
    #[serde(default)]
    pub category: String,
    /// What its cases are about.
    pub subject: String,
}

/// A request: one case in one role.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// [`PROTOCOL_VERSION`].
    pub protocol_version: String,
    /// Tells answers apart.
    pub sequence: u64,
    /// Whose behaviour is asked for.
    pub role: Role,
    /// The vector.
    pub vector: VectorInfo,
    /// The case, with what it expects.
    pub case: Map<String, Value>,
}

/// How a case went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// What happened is what was expected.
    Passed,
    /// It is not, or the case could not be carried out.
    Failed,
    /// It is of a subject or operation that is not known.
    Skipped,
}

/// The answer to a request.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// [`PROTOCOL_VERSION`].
    pub protocol_version: &'static str,
    /// That of the request.
    pub sequence: u64,
    /// How it went.
    pub status: Status,
    /// Why, unless it passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Carries one request out.
pub fn answer(request: Request) -> Answer {
    let sequence = request.sequence;
    let (status, message) = if request.protocol_version == PROTOCOL_VERSION {
        judge(request.role, &request.vector.subject, request.case)
    } else {
        let message = format!("protocol version {} is not known", request.protocol_version);
        (Status::Failed, Some(message))
    };
    Answer {
        protocol_version: PROTOCOL_VERSION,
        sequence,
        status,
        message,
    }
}

/// Carries one case out and compares: the only place where what happened and what was expected meet.
pub fn judge(role: Role, subject: &str, case: Map<String, Value>) -> (Status, Option<String>) {
    let operation = case
        .get("operation")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let expected = subject::expectation(subject, operation);
    let (input, expectation) = divide(case, expected);
    match subject::carry_out(role, subject, &input) {
        Ok(None) => (
            Status::Skipped,
            Some("this subject and operation are not known here".to_owned()),
        ),
        Ok(Some(outcome)) => match expectation.compare(&outcome) {
            Ok(()) => (Status::Passed, None),
            Err(difference) => (Status::Failed, Some(difference)),
        },
        Err(Fault(reason)) => (Status::Failed, Some(reason)),
    }
}

/// Answers every line of `requests` on `answers`. A line that is no request is told to `diagnostics`; with a sequence number that
/// can be read it is answered too.
///
/// # Errors
/// Those of the streams.
pub fn serve(
    requests: impl BufRead,
    mut answers: impl Write,
    mut diagnostics: impl Write,
) -> io::Result<()> {
    for line in requests.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = match serde_json::from_str::<Request>(&line) {
            Ok(request) => answer(request),
            Err(error) => {
                writeln!(diagnostics, "purvey-conformance: not a request: {error}")?;
                let value: Value = serde_json::from_str(&line).unwrap_or_default();
                let Some(sequence) = value.get("sequence").and_then(Value::as_u64) else {
                    continue;
                };
                Answer {
                    protocol_version: PROTOCOL_VERSION,
                    sequence,
                    status: Status::Failed,
                    message: Some(format!("not a request: {error}")),
                }
            }
        };
        serde_json::to_writer(&mut answers, &answer)?;
        writeln!(answers)?;
        answers.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn converse(lines: &str) -> (Vec<Value>, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        serve(lines.as_bytes(), &mut out, &mut err).unwrap();
        let out = String::from_utf8(out).unwrap();
        let answers = out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        (answers, String::from_utf8(err).unwrap())
    }

    fn request(sequence: u64, value: &str, valid: bool) -> Value {
        json!({
            "protocol_version": "1", "sequence": sequence, "role": "service",
            "vector": {"id": "local-identifier", "title": "", "drafts": [], "category": "identity", "subject": "local-identifier"},
            "case": {"name": "x", "value": value, "valid": valid},
        })
    }

    #[test]
    fn every_request_is_answered_on_a_line() {
        let (answers, err) = converse(&format!(
            "{}\n\n{}\n{}\n",
            request(7, "4821", true),
            request(8, "4821", false),
            request(9, "..", false)
        ));
        assert_eq!(
            answers,
            [
                json!({"protocol_version": "1", "sequence": 7, "status": "passed"}),
                json!({"protocol_version": "1", "sequence": 8, "status": "failed", "message": "valid is true, not false"}),
                json!({"protocol_version": "1", "sequence": 9, "status": "passed"}),
            ]
        );
        assert_eq!(err, "");
    }

    #[test]
    fn what_is_no_request_is_told_and_never_passes() {
        let mut other = request(3, "a", true);
        other["protocol_version"] = json!("2");
        let mut unknown = request(4, "a", true);
        unknown["vector"]["subject"] = json!("later");
        let (answers, err) = converse(&format!(
            "nonsense\n{}\n{other}\n{unknown}\n",
            json!({"sequence": 2})
        ));
        let got: Vec<_> = answers
            .iter()
            .map(|a| {
                (
                    a["sequence"].as_u64().unwrap(),
                    a["status"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(got, [(2, "failed"), (3, "failed"), (4, "skipped")]);
        assert_eq!(err.lines().count(), 2);
    }
}

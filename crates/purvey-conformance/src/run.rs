//! A harness of our own: every case of every vector through the adapter, and a report.

use crate::adapter::{PROTOCOL_VERSION, Request, Role, Status, answer};
use crate::deviation;
use crate::vectors::Vector;
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// What became of all cases of one role.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// The role.
    pub role: Role,
    /// The vectors that apply to it, in the order of the index.
    pub vectors: Vec<VectorReport>,
}

/// What became of the cases of one vector.
#[derive(Debug, Serialize)]
pub struct VectorReport {
    /// The vector's identifier.
    pub vector: String,
    /// Its cases, in order.
    pub cases: Vec<CaseReport>,
}

/// What became of one case.
#[derive(Debug, Serialize)]
pub struct CaseReport {
    /// The case's name.
    pub case: String,
    /// The adapter's answer.
    pub status: Status,
    /// Its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why another answer than the expected one is right, for a documented deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<&'static str>,
}

/// Cases by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// As expected.
    pub passed: usize,
    /// Not as expected, and not documented.
    pub failed: usize,
    /// Of a subject or operation that is not known.
    pub skipped: usize,
    /// Not as expected, on purpose.
    pub deviations: usize,
}

/// Runs the cases of `role`.
pub fn run(vectors: &[Vector], role: Role) -> RunReport {
    let mut sequence = 0;
    let vectors = vectors
        .iter()
        .map(|vector| {
            let cases = vector.cases(role).map(|case| {
                sequence += 1;
                let name = case
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                let answer = answer(Request {
                    protocol_version: PROTOCOL_VERSION.to_owned(),
                    sequence,
                    role,
                    vector: vector.info.clone(),
                    case: case.clone(),
                });
                let known = deviation::of(&vector.info.id, &name);
                CaseReport {
                    deviation: known
                        .filter(|_| answer.status == Status::Failed)
                        .map(|known| known.reason),
                    case: name,
                    status: answer.status,
                    message: answer.message,
                }
            });
            VectorReport {
                cases: cases.collect(),
                vector: vector.info.id.clone(),
            }
        })
        .filter(|vector| !vector.cases.is_empty())
        .collect();
    RunReport { role, vectors }
}

impl RunReport {
    /// Every case with its vector.
    pub fn cases(&self) -> impl Iterator<Item = (&str, &CaseReport)> {
        self.vectors.iter().flat_map(|vector| {
            vector
                .cases
                .iter()
                .map(|case| (vector.vector.as_str(), case))
        })
    }

    /// All cases.
    pub fn totals(&self) -> Totals {
        totals(self.cases().map(|(_, case)| case))
    }

    /// Whether nothing failed that is not documented.
    pub fn is_clean(&self) -> bool {
        self.totals().failed == 0
    }
}

fn totals<'a>(cases: impl Iterator<Item = &'a CaseReport>) -> Totals {
    let mut totals = Totals::default();
    for case in cases {
        *match (case.status, case.deviation) {
            (Status::Passed, _) => &mut totals.passed,
            (Status::Skipped, _) => &mut totals.skipped,
            (Status::Failed, None) => &mut totals.failed,
            (Status::Failed, Some(_)) => &mut totals.deviations,
        } += 1;
    }
    totals
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, name: &str, t: Totals| {
            writeln!(
                f,
                "{name:<34} {:>6} {:>6} {:>7} {:>9}",
                t.passed, t.failed, t.skipped, t.deviations
            )
        };
        writeln!(
            f,
            "{:<34} {:>6} {:>6} {:>7} {:>9}",
            format!("role {}", self.role.as_str()),
            "passed",
            "failed",
            "skipped",
            "deviation"
        )?;
        for vector in &self.vectors {
            row(f, &vector.vector, totals(vector.cases.iter()))?;
        }
        row(f, "all", self.totals())?;
        let mut told = false;
        for (vector, case) in self
            .cases()
            .filter(|(_, case)| case.status != Status::Passed)
        {
            if !std::mem::replace(&mut told, true) {
                writeln!(f)?;
            }
            let word = match (case.status, case.deviation) {
                (Status::Skipped, _) => "skipped",
                (_, Some(_)) => "deviation",
                _ => "failed",
            };
            let message = case.message.as_deref().unwrap_or_default();
            write!(f, "{word} {vector}/{}: {message}", case.case)?;
            match case.deviation {
                Some(reason) => writeln!(f, "; {reason}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

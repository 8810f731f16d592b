//! Query parameters: known ones once and well formed, others ignored.

use crate::odp;
use crate::v1::problem::{Failure, Fault};
use purvey_work::PageRequest;
use std::time::Duration;

/// Longest wait that a caller may ask for, in seconds (Work §11).
const WAIT: u64 = 60;

/// The query of a call.
pub(super) struct Query(Option<String>);

impl Query {
    pub(super) fn new(query: Option<&str>) -> Self {
        Self(query.map(str::to_owned))
    }

    /// The parameter `name`, if it is there.
    pub(super) fn one(&self, name: &'static str) -> Result<Option<String>, Failure> {
        let mut found = Vec::new();
        let value = odp::query_parameter(self.0.as_deref(), name, &mut found);
        match found.first() {
            None => Ok(value.map(Into::into)),
            Some(fault) => Err(Failure::invalid(vec![Fault::query(
                name,
                fault.reason().to_owned(),
            )])),
        }
    }

    /// Which part of a list.
    pub(super) fn page(&self) -> Result<PageRequest, Failure> {
        let (limit, cursor) = (self.one("limit")?, self.one("cursor")?);
        Ok(PageRequest::parse(limit.as_deref(), cursor.as_deref())?)
    }

    /// How long to hold the answer back.
    pub(super) fn wait(&self) -> Result<Duration, Failure> {
        let Some(text) = self.one("wait")? else {
            return Ok(Duration::ZERO);
        };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(seconds @ 0..=WAIT) if digits => Ok(Duration::from_secs(seconds)),
            _ => Err(Failure::invalid(vec![Fault::query(
                "wait",
                "Must be a whole number of seconds from 0 to 60.",
            )])),
        }
    }
}

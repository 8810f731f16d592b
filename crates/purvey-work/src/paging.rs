//! Lists, newest first: an identifier is also the place to go on from.

use crate::error::{Error, Fault, Place, Refusal};
use serde::Serialize;
use std::{fmt::Display, str::FromStr};

/// Items of a page when the caller does not say.
const USUAL: u32 = 50;
/// Items of a page at most.
const MOST: u32 = 100;

/// Which part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    limit: u32,
    cursor: Option<String>,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listing<T> {
    /// Newest first.
    pub items: Vec<T>,
    /// Where the next part begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self {
            limit: USUAL,
            cursor: None,
        }
    }
}

impl PageRequest {
    /// From the query parameters `limit` (1 to 100, 50 without) and `cursor`.
    ///
    /// # Errors
    /// `request.invalid` for a limit out of bounds.
    pub fn parse(limit: Option<&str>, cursor: Option<&str>) -> Result<Self, Error> {
        let limit = match limit {
            None => USUAL,
            Some(text) => text
                .parse()
                .ok()
                .filter(|limit| (1..=MOST).contains(limit) && !text.starts_with('+'))
                .ok_or_else(|| refused("limit", "Must be a whole number from 1 to 100."))?,
        };
        Ok(Self {
            limit,
            cursor: cursor.map(str::to_owned),
        })
    }

    /// How many rows to ask the store for: one more than wanted tells whether there is a next part.
    pub(crate) fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// The identifier that the rows lie before; the highest that there can be without a cursor.
    ///
    /// # Errors
    /// `request.invalid` for a cursor that no list of `T` gave.
    pub(crate) fn before<T: FromStr + Display>(&self) -> Result<String, Error> {
        match &self.cursor {
            // Every identifier ends in hexadecimal digits, all of them before this letter.
            None => Ok("~".into()),
            Some(cursor) => match cursor.parse::<T>() {
                Ok(id) => Ok(id.to_string()),
                Err(_) => Err(refused("cursor", "Must be a next_cursor of this list.")),
            },
        }
    }

    /// The same page, going on after another place.
    pub(crate) fn after(&self, cursor: String) -> Self {
        Self {
            limit: self.limit,
            cursor: Some(cursor),
        }
    }

    /// How many items are wanted.
    pub(crate) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// The part that these rows are, of which one more than wanted was asked for.
    pub(crate) fn listing<T, I: Display>(
        &self,
        mut items: Vec<T>,
        id: impl Fn(&T) -> I,
    ) -> Listing<T> {
        let limit = self.limit as usize;
        let more = items.len() > limit;
        items.truncate(limit);
        Listing {
            next_cursor: items
                .last()
                .filter(|_| more)
                .map(|last| id(last).to_string()),
            items,
        }
    }
}

fn refused(name: &'static str, reason: &'static str) -> Error {
    Refusal::invalid(vec![Fault {
        place: Place::Query(name),
        reason: reason.into(),
    }])
    .into()
}

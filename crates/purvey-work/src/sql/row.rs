//! Rows of an answer.

use crate::{clock::Timestamp, error::Error};

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// One row of an answer, by position of the columns asked for.
#[derive(Clone, Debug)]
pub(crate) struct Row(Vec<Value>);

impl Row {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self(values)
    }

    #[cfg(test)]
    pub(crate) fn values(&self) -> &[Value] {
        &self.0
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, Error> {
        self.opt_int(column)?.ok_or_else(|| unexpected(column))
    }

    pub(crate) fn opt_int(&self, column: usize) -> Result<Option<i64>, Error> {
        match self.0.get(column) {
            Some(Value::Int(value)) => Ok(Some(*value)),
            Some(Value::Null) => Ok(None),
            _ => Err(unexpected(column)),
        }
    }

    pub(crate) fn truth(&self, column: usize) -> Result<bool, Error> {
        Ok(self.int(column)? != 0)
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp, Error> {
        self.int(column).map(Timestamp::from_millis)
    }

    pub(crate) fn opt_time(&self, column: usize) -> Result<Option<Timestamp>, Error> {
        Ok(self.opt_int(column)?.map(Timestamp::from_millis))
    }

    pub(crate) fn text(&self, column: usize) -> Result<&str, Error> {
        self.opt_text(column)?.ok_or_else(|| unexpected(column))
    }

    pub(crate) fn opt_text(&self, column: usize) -> Result<Option<&str>, Error> {
        match self.0.get(column) {
            Some(Value::Text(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            _ => Err(unexpected(column)),
        }
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<&[u8], Error> {
        match self.0.get(column) {
            Some(Value::Bytes(value)) => Ok(value),
            _ => Err(unexpected(column)),
        }
    }

    /// A column that holds an identifier or a word, read as `T`.
    pub(crate) fn parsed<T: std::str::FromStr>(&self, column: usize) -> Result<T, Error> {
        self.text(column)?.parse().map_err(|_| unexpected(column))
    }

    /// [`Self::parsed`], if the column is not null.
    pub(crate) fn opt_parsed<T: std::str::FromStr>(
        &self,
        column: usize,
    ) -> Result<Option<T>, Error> {
        self.opt_text(column)?
            .map(|text| text.parse().map_err(|_| unexpected(column)))
            .transpose()
    }

    /// A column that holds JSON, if it is not null.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(
        &self,
        column: usize,
    ) -> Result<Option<T>, Error> {
        self.opt_text(column)?
            .map(|text| serde_json::from_str(text).map_err(|_| unexpected(column)))
            .transpose()
    }
}

fn unexpected(column: usize) -> Error {
    Error::Store {
        detail: format!("column {column} of a row does not hold what it should"),
    }
}

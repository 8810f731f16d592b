//! The schema that every catalog has, whatever its manifest: of the attributes of agents that are Offerings (Work §10).

use jsonschema::{Draft, Validator};
use std::sync::LazyLock;

/// Where it is served: below a path where no manifest can put a schema.
pub const AGENT_SCHEMA: &str = "/v1/schemas/agent";

const TEXT: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "An agent that runs are started of",
  "type": "object",
  "additionalProperties": false,
  "required": ["workspace_id", "time_limit_seconds", "verified"],
  "properties": {
    "workspace_id": {"description": "The workspace that its runs count in.", "type": "string"},
    "time_limit_seconds": {
      "description": "Longest time of a run, pauses included.",
      "type": "integer",
      "minimum": 1
    },
    "verified": {
      "description": "Whether output is held to a contract; a run whose output breaks it fails.",
      "type": "boolean"
    }
  }
}
"#;

static VALIDATOR: LazyLock<Option<Validator>> = LazyLock::new(|| {
    let value = serde_json::from_str(TEXT).ok()?;
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .build(&value)
        .ok()
});

/// The text of the schema at `url`.
pub(super) fn text(url: &str) -> Option<&'static str> {
    (url == AGENT_SCHEMA).then_some(TEXT)
}

/// The schema at `url`.
pub(super) fn validator(url: &str) -> Option<&'static Validator> {
    match url {
        AGENT_SCHEMA => VALIDATOR.as_ref(),
        _ => None,
    }
}

//! `echo`: the input is the output.

use super::{CallError, Content, Message, Provider, Reply, Request, Usage};
use futures_util::future::BoxFuture;
use serde_json::Value;

/// Answers with the run's input. Needs nothing and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo;

impl Provider for Echo {
    fn call<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, CallError>> {
        let input = input(request).clone();
        Box::pin(std::future::ready(Ok(Reply {
            content: Content::Json(input),
            tool_calls: Vec::new(),
            usage: Some(Usage::default()),
            cut: false,
        })))
    }

    fn most_input_tokens(&self, _: &Request) -> u64 {
        0
    }
}

/// What the run was given: the last thing that the user said.
pub(super) fn input(request: &Request) -> &Value {
    let said = request.messages.iter().rev();
    let mut said = said.filter_map(|message| match message {
        Message::User { content } => Some(content),
        _ => None,
    });
    said.next().unwrap_or(&Value::Null)
}

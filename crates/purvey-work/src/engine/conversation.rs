//! What a run has done so far, rebuilt from its kept steps alone: the same steps lead to the same next step, whoever takes the run up.

use crate::{
    error::Error,
    model::{Definition, StepKind, StepState},
    provider::{Content, Message, Reply, ToolCall},
    runs::{Claim, KeptStep},
};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// A run's conversation with its provider.
pub(super) struct Conversation {
    pub(super) instructions: String,
    pub(super) messages: Vec<Message>,
    /// What the last reply asked for and was not done yet.
    wanted: VecDeque<ToolCall>,
    /// The last reply, when it asked for nothing.
    answer: Option<Reply>,
    /// The number of the next step.
    seq: u32,
    /// How often in a row the provider has limited the step that is next.
    limited: u32,
}

/// What a run does next.
pub(super) enum Next {
    /// Calls the provider.
    Call {
        /// How often in a row the provider has limited this step.
        limited: u32,
    },
    /// Uses a tool.
    Use(ToolCall),
    /// Ends with this reply.
    End(Reply),
}

impl Conversation {
    /// The conversation of a run that was taken up; `history` is what was said before it in its thread.
    pub(super) fn of(claim: &Claim, history: Vec<Message>) -> Result<Self, Error> {
        let mut conversation = Self {
            instructions: instructions(&claim.definition),
            messages: history,
            wanted: VecDeque::new(),
            answer: None,
            seq: 1,
            limited: 0,
        };
        conversation.messages.push(Message::User {
            content: claim.input.clone(),
        });
        for step in &claim.steps {
            conversation.take(step)?;
        }
        Ok(conversation)
    }

    pub(super) fn seq(&self) -> u32 {
        self.seq
    }

    pub(super) fn next(&self) -> Next {
        match (self.wanted.front(), &self.answer) {
            (Some(call), _) => Next::Use(call.clone()),
            (None, Some(reply)) => Next::End(reply.clone()),
            (None, None) => Next::Call {
                limited: self.limited,
            },
        }
    }

    fn take(&mut self, step: &KeptStep) -> Result<(), Error> {
        let broken = || Error::Store {
            detail: format!("step {} does not follow from the ones before it", step.seq),
        };
        if step.state != StepState::Done {
            // It is done again; only how often it was limited counts.
            self.limited = step.limited;
            return Ok(());
        }
        let result = step.result.clone().ok_or_else(broken)?;
        if step.seq != self.seq {
            return Err(broken());
        }
        match step.kind {
            StepKind::Provider => {
                let reply = serde_json::from_value(result).map_err(|_| broken())?;
                self.replied(reply);
            }
            StepKind::Tool => self.used(result),
        }
        Ok(())
    }

    /// Takes the provider's reply.
    pub(super) fn replied(&mut self, reply: Reply) {
        self.seq += 1;
        self.limited = 0;
        if reply.tool_calls.is_empty() {
            self.answer = Some(reply);
            return;
        }
        self.wanted = reply.tool_calls.iter().cloned().collect();
        self.messages.push(Message::Assistant {
            content: match reply.content {
                Content::Text(text) => text.into(),
                Content::Json(value) => value,
            },
            tool_calls: reply.tool_calls,
        });
    }

    /// Takes what came of the tool that was next.
    pub(super) fn used(&mut self, result: Value) {
        self.seq += 1;
        self.limited = 0;
        if let Some(call) = self.wanted.pop_front() {
            self.messages.push(Message::Tool {
                id: call.id,
                content: result,
            });
        }
    }
}

/// What the model is told: the agent's instructions, and its output contract if it has one.
fn instructions(definition: &Definition) -> String {
    let Some(contract) = &definition.output_schema else {
        return definition.instructions.clone();
    };
    let between = if definition.instructions.is_empty() {
        ""
    } else {
        "\n\n"
    };
    format!(
        "{}{between}Answer with one JSON value and nothing else. It must fit this JSON Schema (Draft 2020-12):\n{contract}",
        definition.instructions
    )
}

/// What was said before in a thread, the oldest first.
pub(super) fn history(turns: Vec<(Value, Value)>) -> Vec<Message> {
    let said = |(input, output)| {
        [
            Message::User { content: input },
            Message::Assistant {
                content: output,
                tool_calls: Vec::new(),
            },
        ]
    };
    turns.into_iter().flat_map(said).collect()
}

/// The result of a use that was not made.
pub(super) fn refused(reason: &str) -> Value {
    json!({"error": {"code": "NOT_USED", "message": reason}})
}

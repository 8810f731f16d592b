//! `anthropic`: the Messages API.

use super::{
    ApiKey, CallError, Content, Endpoint, Message, Provider, Reply, Request, Tool, ToolCall, Usage,
    http::{cut, malformed},
    openai::{arguments_of, as_text},
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

/// The version of the API that is spoken.
const VERSION: &str = "2023-06-01";
/// Most blocks of one reply.
const BLOCKS: usize = 256;

/// A server of the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    endpoint: Endpoint,
}

impl Anthropic {
    /// The server at `endpoint`.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    async fn message(&self, request: &Request) -> Result<Reply, CallError> {
        let mut fields = vec![("anthropic-version", VERSION.to_owned())];
        let key = |key: &ApiKey| ("x-api-key", key.text().to_owned());
        fields.extend(self.endpoint.key().map(key));
        let mut response = self
            .endpoint
            .post("messages", &fields, &body(request))
            .await?;
        let mut gathered = Gathered::default();
        if response.is_stream() {
            let done = response.events(|event| gathered.event(&event.data)).await?;
            if !done {
                return Err(cut());
            }
        } else {
            gathered.whole(response.json().await?)?;
        }
        gathered.reply()
    }
}

impl Provider for Anthropic {
    fn call<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(self.message(request))
    }
}

fn body(request: &Request) -> Value {
    let mut body = json!({
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "messages": messages(&request.messages),
        "stream": true,
    });
    if !request.instructions.is_empty() {
        body["system"] = request.instructions.as_str().into();
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

/// Messages of alternating roles: what follows from the same side is one message, results of tools are the user's.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match message {
            Message::User { content } => ("user", text(content)),
            Message::Assistant {
                content,
                tool_calls,
            } => {
                let mut blocks = text(content);
                blocks.extend(tool_calls.iter().map(used));
                ("assistant", blocks)
            }
            Message::Tool { id, content } => {
                let block =
                    json!({"type": "tool_result", "tool_use_id": id, "content": as_text(content)});
                ("user", vec![block])
            }
        };
        match turns.last_mut() {
            Some((last, said)) if *last == role => said.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.retain(|(_, blocks)| !blocks.is_empty());
    turns
        .into_iter()
        .map(|(role, blocks)| json!({"role": role, "content": blocks}))
        .collect()
}

/// Empty text is refused, so it is no block.
fn text(content: &Value) -> Vec<Value> {
    let text = as_text(content);
    match text.is_empty() {
        true => Vec::new(),
        false => vec![json!({"type": "text", "text": text})],
    }
}

fn used(call: &ToolCall) -> Value {
    // The model's own words, had they been no JSON, would be refused here.
    let input = match &call.arguments {
        arguments @ Value::Object(_) => arguments.clone(),
        other => json!({"arguments": other}),
    };
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
}

fn tool(tool: &Tool) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: usize,
        content_block: Block,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    MessageDelta {
        delta: Stop,
        usage: Option<Used>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<Used>,
}

#[derive(Deserialize)]
struct Whole {
    content: Vec<Block>,
    stop_reason: Option<String>,
    usage: Option<Used>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Stop {
    stop_reason: Option<String>,
}

/// Counts so far: later ones replace earlier ones.
#[derive(Deserialize)]
struct Used {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

/// A reply as its events come in.
#[derive(Default)]
struct Gathered {
    blocks: Vec<Part>,
    stop: Option<String>,
    input: Option<u64>,
    cached: u64,
    output: Option<u64>,
}

enum Part {
    Text(String),
    Tool {
        id: String,
        name: String,
        input: Value,
        written: String,
    },
    Other,
}

impl From<Block> for Part {
    fn from(block: Block) -> Self {
        match block {
            Block::Text { text } => Self::Text(text),
            Block::ToolUse { id, name, input } => Self::Tool {
                id,
                name,
                input,
                written: String::new(),
            },
            Block::Other => Self::Other,
        }
    }
}

impl Gathered {
    /// Takes one event; whether it was the last one.
    fn event(&mut self, data: &str) -> Result<bool, CallError> {
        match serde_json::from_str(data).map_err(|_| malformed())? {
            Event::MessageStart { message } => self.used(message.usage),
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                if index != self.blocks.len() || index >= BLOCKS {
                    return Err(malformed());
                }
                self.blocks.push(content_block.into());
            }
            Event::ContentBlockDelta { index, delta } => {
                match (self.blocks.get_mut(index), delta) {
                    (Some(Part::Text(all)), Delta::Text { text }) => all.push_str(&text),
                    (Some(Part::Tool { written, .. }), Delta::InputJson { partial_json }) => {
                        written.push_str(&partial_json);
                    }
                    (Some(_), Delta::Other) | (Some(Part::Other), _) => {}
                    _ => return Err(malformed()),
                }
            }
            Event::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.or(self.stop.take());
                self.used(usage);
            }
            Event::MessageStop => return Ok(true),
            Event::Error { error } => return Err(failed(&error)),
            Event::Other => {}
        }
        Ok(false)
    }

    fn whole(&mut self, message: Value) -> Result<(), CallError> {
        let whole: Whole = serde_json::from_value(message).map_err(|_| malformed())?;
        self.blocks = whole.content.into_iter().map(Part::from).collect();
        self.stop = whole.stop_reason;
        self.used(whole.usage);
        Ok(())
    }

    fn used(&mut self, usage: Option<Used>) {
        let Some(usage) = usage else { return };
        self.input = usage.input_tokens.or(self.input);
        self.output = usage.output_tokens.or(self.output);
        let cached = [
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
        ];
        if cached.iter().any(Option::is_some) {
            self.cached = cached.into_iter().flatten().fold(0, u64::saturating_add);
        }
    }

    fn reply(self) -> Result<Reply, CallError> {
        if self.stop.as_deref() == Some("refusal") {
            return Err(CallError::rejected("The model refused to answer."));
        }
        let mut text = String::new();
        let mut tool_calls = Vec::new();
        for block in self.blocks {
            match block {
                Part::Text(part) => text.push_str(&part),
                Part::Tool {
                    id,
                    name,
                    input,
                    written,
                } => tool_calls.push(ToolCall {
                    id,
                    name,
                    arguments: match written.is_empty() {
                        true => input,
                        false => arguments_of(&written),
                    },
                }),
                Part::Other => {}
            }
        }
        let usage = self.input.zip(self.output);
        Ok(Reply {
            content: Content::Text(text),
            tool_calls,
            usage: usage.map(|(input, output)| Usage {
                input_tokens: input.saturating_add(self.cached),
                output_tokens: output,
            }),
            cut: matches!(
                self.stop.as_deref(),
                Some("max_tokens" | "model_context_window_exceeded")
            ),
        })
    }
}

/// An error in the middle of a stream, which has no status.
fn failed(error: &Value) -> CallError {
    match error.get("type").and_then(Value::as_str) {
        Some("rate_limit_error") => CallError::Limited {
            wait: None,
            detail: "The provider limited the request in the middle of its response".to_owned(),
        },
        Some("invalid_request_error") => {
            CallError::rejected("The provider refused the request in the middle of its response.")
        }
        _ => CallError::lost("The provider failed in the middle of its response."),
    }
}

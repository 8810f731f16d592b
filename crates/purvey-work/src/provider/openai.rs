//! `openai`: chat completions, as OpenAI and many other servers speak them.

use super::{
    ApiKey, CallError, Content, Endpoint, Message, Provider, Reply, Request, Tool, ToolCall, Usage,
    http::{cut, malformed},
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most tool calls in one reply.
const TOOL_CALLS: usize = 128;

/// The member of a request that bounds the reply. Which one a server knows differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLimitField {
    /// What nearly every compatible server knows.
    MaxTokens,
    /// What OpenAI's own newer models ask for.
    MaxCompletionTokens,
}

impl OutputLimitField {
    const fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// A server of chat completions.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Endpoint,
    limit: OutputLimitField,
}

impl OpenAi {
    /// The server at `endpoint`. Unless said, the reply is bounded by `max_completion_tokens` at `api.openai.com` and by `max_tokens`
    /// elsewhere.
    #[must_use]
    pub fn new(endpoint: Endpoint, limit: Option<OutputLimitField>) -> Self {
        let own = endpoint.base().host_str() == Some("api.openai.com");
        let usual = match own {
            true => OutputLimitField::MaxCompletionTokens,
            false => OutputLimitField::MaxTokens,
        };
        Self {
            endpoint,
            limit: limit.unwrap_or(usual),
        }
    }

    fn body(&self, request: &Request) -> Value {
        let mut messages = Vec::new();
        if !request.instructions.is_empty() {
            messages.push(json!({"role": "system", "content": request.instructions}));
        }
        messages.extend(request.messages.iter().map(message));
        let mut body = json!({
            "model": request.model,
            "messages": messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        body[self.limit.name()] = request.max_output_tokens.into();
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        body
    }

    async fn complete(&self, request: &Request) -> Result<Reply, CallError> {
        let bearer = |key: &ApiKey| ("authorization", format!("Bearer {}", key.text()));
        let fields: Vec<_> = self.endpoint.key().map(bearer).into_iter().collect();
        let mut response = self
            .endpoint
            .post("chat/completions", &fields, &self.body(request))
            .await?;
        let mut gathered = Gathered::default();
        if response.is_stream() {
            let done = response.events(|event| gathered.event(&event.data)).await?;
            if !done && gathered.finish.is_none() {
                return Err(cut());
            }
        } else {
            gathered.chunk(response.json().await?)?;
            if !gathered.begun {
                return Err(malformed());
            }
        }
        gathered.reply()
    }
}

impl Provider for OpenAi {
    fn call<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(self.complete(request))
    }
}

/// A value as text: a string as it is, anything else as JSON.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn message(message: &Message) -> Value {
    match message {
        Message::User { content } => json!({"role": "user", "content": as_text(content)}),
        Message::Assistant {
            content,
            tool_calls,
        } => {
            let mut message = json!({"role": "assistant", "content": as_text(content)});
            if !tool_calls.is_empty() {
                let calls = tool_calls.iter().map(|call| {
                    json!({"id": call.id, "type": "function", "function":
                        {"name": call.name, "arguments": as_text(&call.arguments)}})
                });
                message["tool_calls"] = calls.collect();
            }
            message
        }
        Message::Tool { id, content } => {
            json!({"role": "tool", "tool_call_id": id, "content": as_text(content)})
        }
    }
}

fn tool(tool: &Tool) -> Value {
    json!({"type": "function", "function":
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}})
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Used>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    /// `delta` in a stream, `message` in a whole response.
    #[serde(alias = "message")]
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    index: Option<usize>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Used {
    prompt_tokens: u64,
    completion_tokens: u64,
}

/// A reply as its pieces come in.
#[derive(Default)]
struct Gathered {
    begun: bool,
    text: String,
    refusal: String,
    calls: BTreeMap<usize, (String, String, String)>,
    finish: Option<String>,
    usage: Option<Usage>,
}

impl Gathered {
    /// Takes one event; whether it was the last one.
    fn event(&mut self, data: &str) -> Result<bool, CallError> {
        if data.trim() == "[DONE]" {
            return match self.begun {
                true => Ok(true),
                false => Err(malformed()),
            };
        }
        self.chunk(serde_json::from_str(data).map_err(|_| malformed())?)?;
        Ok(false)
    }

    fn chunk(&mut self, chunk: Value) -> Result<(), CallError> {
        let chunk: Chunk = serde_json::from_value(chunk).map_err(|_| malformed())?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(failed(&error));
        }
        if let Some(used) = chunk.usage {
            self.usage = Some(Usage {
                input_tokens: used.prompt_tokens,
                output_tokens: used.completion_tokens,
            });
        }
        // Only one choice is asked for.
        let first = chunk.choices.into_iter().filter(|choice| choice.index == 0);
        for choice in first {
            self.begun = true;
            if let Some(delta) = choice.delta {
                self.delta(delta)?;
            }
            self.finish = choice.finish_reason.or(self.finish.take());
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta) -> Result<(), CallError> {
        self.text.push_str(&delta.content.unwrap_or_default());
        self.refusal.push_str(&delta.refusal.unwrap_or_default());
        for (position, call) in delta.tool_calls.into_iter().flatten().enumerate() {
            let index = call.index.unwrap_or(position);
            if index >= TOOL_CALLS {
                return Err(malformed());
            }
            let (id, name, arguments) = self.calls.entry(index).or_default();
            if let Some(part) = call.id.filter(|_| id.is_empty()) {
                *id = part;
            }
            if let Some(function) = call.function {
                name.push_str(&function.name.unwrap_or_default());
                arguments.push_str(&function.arguments.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn reply(self) -> Result<Reply, CallError> {
        if self.finish.as_deref() == Some("content_filter") {
            return Err(CallError::rejected(
                "The provider's content filter stopped the reply.",
            ));
        }
        let calls = self
            .calls
            .into_iter()
            .map(|(index, (id, name, arguments))| {
                let id = if id.is_empty() {
                    format!("call_{index}")
                } else {
                    id
                };
                ToolCall {
                    id,
                    name,
                    arguments: arguments_of(&arguments),
                }
            });
        let text = if self.text.is_empty() {
            self.refusal
        } else {
            self.text
        };
        Ok(Reply {
            content: Content::Text(text),
            tool_calls: calls.collect(),
            usage: self.usage,
            cut: self.finish.as_deref() == Some("length"),
        })
    }
}

/// Arguments as a model wrote them: JSON if they are, the text if not, nothing said is no arguments.
pub(super) fn arguments_of(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// An error in the middle of a stream, which has no status.
fn failed(error: &Value) -> CallError {
    let said = |member| {
        error
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let limited = ["type", "code"]
        .iter()
        .any(|member| said(member).contains("rate_limit"));
    match limited || error.get("code") == Some(&json!(429)) {
        true => CallError::Limited {
            wait: None,
            detail: "The provider limited the request in the middle of its response".to_owned(),
        },
        false => CallError::lost("The provider failed in the middle of its response."),
    }
}

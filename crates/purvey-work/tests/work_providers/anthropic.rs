//! The Messages API.

use crate::server::{Answer, KEY, PAYLOAD, Server, request};
use purvey_work::provider::{
    Anthropic, CallError, Content, Message, Provider, Reply, Retry, Tool, ToolCall, Usage,
};
use serde_json::{Value, json};

fn events(events: &[Value]) -> Answer {
    let text: String = events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect();
    Answer::stream(&text)
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage":
        {"input_tokens": 20, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}}})
}

fn text(index: usize, text: &str) -> [Value; 3] {
    [
        json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": index}),
    ]
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

async fn answered(answer: Answer) -> Result<Reply, CallError> {
    let server = Server::start([answer]).await;
    Anthropic::new(server.endpoint()).call(&request()).await
}

#[tokio::test]
async fn a_streamed_reply_is_put_together_and_its_usage_taken() {
    let mut all = vec![start(), json!({"type": "ping"})];
    all.extend(text(0, "Hello"));
    all.push(json!({"type": "something_new", "at": 1}));
    all.extend(end("end_turn"));
    let server = Server::start([events(&all)]).await;
    let reply = Anthropic::new(server.endpoint())
        .call(&request())
        .await
        .unwrap();
    let expected = Reply {
        content: Content::Text("Hello".into()),
        tool_calls: vec![],
        usage: Some(Usage {
            input_tokens: 32,
            output_tokens: 9,
        }),
        cut: false,
    };
    assert_eq!(reply, expected);
    let asked = server.asked();
    assert!(
        asked.head.starts_with("post /v1/messages http/1.1"),
        "{}",
        asked.head
    );
    assert!(
        asked
            .head
            .contains(&format!("x-api-key: {}", KEY.to_lowercase()))
    );
    assert!(asked.head.contains("anthropic-version: 2023-06-01"));
    let expected = json!({
        "model": "small-model",
        "max_tokens": 256,
        "messages": [{"role": "user", "content": [{"type": "text", "text": PAYLOAD}]}],
        "stream": true,
        "system": "Be brief.",
    });
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn tool_calls_come_in_pieces_and_results_are_the_users() {
    let mut all = vec![start()];
    all.extend(text(0, "Looking."));
    all.push(
        json!({"type": "content_block_start", "index": 1, "content_block":
        {"type": "tool_use", "id": "t1", "name": "odp_get", "input": {}}}),
    );
    for piece in ["", "{\"id\"", ": \"lamp\"}"] {
        all.push(json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": piece}}));
    }
    all.push(json!({"type": "content_block_stop", "index": 1}));
    all.extend(end("tool_use"));
    let server = Server::start([events(&all)]).await;
    let mut asking = request();
    asking.tools = vec![Tool {
        name: "odp_get",
        description: "Reads.",
        parameters: json!({"type": "object"}),
    }];
    let call = |id: &str| ToolCall {
        id: id.into(),
        name: "odp_get".into(),
        arguments: json!({"id": id}),
    };
    let result = |id: &str| Message::Tool {
        id: id.into(),
        content: "found".into(),
    };
    asking.messages.push(Message::Assistant {
        content: "".into(),
        tool_calls: vec![call("a"), call("b")],
    });
    asking.messages.extend([result("a"), result("b")]);
    let reply = Anthropic::new(server.endpoint())
        .call(&asking)
        .await
        .unwrap();
    assert_eq!(reply.content, Content::Text("Looking.".into()));
    let expected = ToolCall {
        id: "t1".into(),
        name: "odp_get".into(),
        arguments: json!({"id": "lamp"}),
    };
    assert_eq!(reply.tool_calls, [expected]);
    let asked = server.asked().body;
    let used = |id| json!({"type": "tool_use", "id": id, "name": "odp_get", "input": {"id": id}});
    let found = |id| json!({"type": "tool_result", "tool_use_id": id, "content": "found"});
    let expected = json!([
        {"role": "assistant", "content": [used("a"), used("b")]},
        {"role": "user", "content": [found("a"), found("b")]},
    ]);
    assert_eq!(
        asked["messages"].as_array().unwrap()[1..],
        *expected.as_array().unwrap()
    );
    let tools =
        json!([{"name": "odp_get", "description": "Reads.", "input_schema": {"type": "object"}}]);
    assert_eq!(asked["tools"], tools);
}

#[tokio::test]
async fn a_whole_response_will_do() {
    let message = json!({"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "max_tokens",
        "usage": {"input_tokens": 3, "output_tokens": 2}});
    let reply = answered(Answer::json(&message)).await.unwrap();
    assert_eq!(reply.content, Content::Text("Hi".into()));
    assert!(reply.cut);
    let usage = Usage {
        input_tokens: 3,
        output_tokens: 2,
    };
    assert_eq!(reply.usage, Some(usage));
}

#[tokio::test]
async fn streams_that_end_early_or_make_no_sense_are_lost() {
    let mut early = vec![start()];
    early.extend(text(0, "Hel"));
    let skipped = json!({"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": ""}});
    for answer in [
        events(&early),
        events(&[start(), skipped]),
        events(&[
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}),
        ]),
        Answer::stream("data: {{{\n\n"),
        Answer::json(&json!({"type": "message"})),
    ] {
        let answer = answered(answer).await;
        let Err(CallError::Failed {
            retry: Retry::Backoff,
            charged: true,
            ..
        }) = answer
        else {
            panic!("{answer:?}");
        };
    }
}

#[tokio::test]
async fn errors_in_the_middle_of_a_stream_are_classified() {
    let error = |kind: &str| {
        events(&[
            start(),
            json!({"type": "error", "error": {"type": kind, "message": PAYLOAD}}),
        ])
    };
    let overloaded = answered(error("overloaded_error")).await.unwrap_err();
    assert!(matches!(
        overloaded,
        CallError::Failed {
            retry: Retry::Backoff,
            ..
        }
    ));
    let limited = answered(error("rate_limit_error")).await.unwrap_err();
    assert!(matches!(limited, CallError::Limited { wait: None, .. }));
    let rejected = answered(error("invalid_request_error")).await.unwrap_err();
    assert!(matches!(rejected, CallError::Rejected { .. }));
    for error in [overloaded, limited, rejected] {
        assert!(!error.to_string().contains(PAYLOAD));
    }
}

#[tokio::test]
async fn a_model_that_refuses_is_a_refusal() {
    let mut all = vec![start()];
    all.extend(end("refusal"));
    let refused = answered(events(&all)).await.unwrap_err();
    assert!(matches!(refused, CallError::Rejected { .. }), "{refused:?}");
}

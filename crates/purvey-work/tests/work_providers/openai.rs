//! Chat completions.

use crate::server::{Answer, KEY, PAYLOAD, Server, request};
use purvey_work::provider::{
    CallError, Content, Message, OpenAi, OutputLimitField, Provider, Reply, Retry, Tool, ToolCall,
    Usage,
};
use serde_json::{Value, json};

fn delta(delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "choices":
        [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

async fn answered(answer: Answer) -> Result<Reply, CallError> {
    let server = Server::start([answer]).await;
    OpenAi::new(server.endpoint(), None).call(&request()).await
}

fn lost(answer: Result<Reply, CallError>) -> String {
    match answer {
        Err(CallError::Failed {
            detail,
            retry: Retry::Backoff,
            charged: true,
        }) => detail,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_streamed_reply_is_put_together_and_its_usage_taken() {
    let server = Server::start([Answer::chunks(&[
        delta(&json!({"role": "assistant", "content": ""}), None),
        delta(&json!({"content": "Hel"}), None),
        delta(&json!({"content": "lo"}), None),
        delta(&json!({}), Some("stop")),
        json!({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}}),
    ])])
    .await;
    let reply = OpenAi::new(server.endpoint(), None)
        .call(&request())
        .await
        .unwrap();
    let expected = Reply {
        content: Content::Text("Hello".into()),
        tool_calls: vec![],
        usage: Some(Usage {
            input_tokens: 12,
            output_tokens: 3,
        }),
        cut: false,
    };
    assert_eq!(reply, expected);
    let asked = server.asked();
    assert!(
        asked.head.starts_with("post /v1/chat/completions http/1.1"),
        "{}",
        asked.head
    );
    let authorization = format!("authorization: bearer {}", KEY.to_lowercase());
    assert!(asked.head.contains(&authorization));
    let expected = json!({
        "model": "small-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": PAYLOAD},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 256,
    });
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn the_bound_of_the_reply_has_the_name_that_the_server_knows() {
    let answer = json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]});
    let server = Server::start([Answer::json(&answer)]).await;
    let limit = Some(OutputLimitField::MaxCompletionTokens);
    let reply = OpenAi::new(server.endpoint(), limit)
        .call(&request())
        .await
        .unwrap();
    assert_eq!(reply.content, Content::Text("x".into()));
    assert_eq!(reply.usage, None);
    let asked = server.asked();
    assert_eq!(asked.body["max_completion_tokens"], 256);
    assert_eq!(asked.body.get("max_tokens"), None);
}

#[tokio::test]
async fn tool_calls_come_in_pieces_and_go_back_whole() {
    let call = |index: usize, id: Option<&str>, name: Option<&str>, arguments: &str| {
        let call =
            json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
        delta(&json!({"tool_calls": [call]}), None)
    };
    let server = Server::start([Answer::chunks(&[
        call(0, Some("a"), Some("odp_search"), ""),
        call(1, Some("b"), Some("odp_get"), "{\"id\":"),
        call(0, None, None, "{\"query\":\"l"),
        call(1, None, None, " 7}"),
        call(0, None, None, "amp\"}"),
        call(2, Some("c"), Some("odp_get"), "not json"),
        delta(&json!({}), Some("tool_calls")),
    ])])
    .await;
    let mut asking = request();
    asking.tools = vec![Tool {
        name: "odp_get",
        description: "Reads.",
        parameters: json!({"type": "object"}),
    }];
    asking.messages.push(Message::Assistant {
        content: "".into(),
        tool_calls: vec![ToolCall {
            id: "z".into(),
            name: "odp_get".into(),
            arguments: json!({"id": 1}),
        }],
    });
    asking.messages.push(Message::Tool {
        id: "z".into(),
        content: json!({"found": true}),
    });
    let reply = OpenAi::new(server.endpoint(), None)
        .call(&asking)
        .await
        .unwrap();
    let tool_call = |id: &str, name: &str, arguments| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments,
    };
    let expected = [
        tool_call("a", "odp_search", json!({"query": "lamp"})),
        tool_call("b", "odp_get", json!({"id": 7})),
        tool_call("c", "odp_get", json!("not json")),
    ];
    assert_eq!(reply.tool_calls, expected);
    let asked = server.asked().body;
    let tools = json!([{"type": "function", "function":
        {"name": "odp_get", "description": "Reads.", "parameters": {"type": "object"}}}]);
    assert_eq!(asked["tools"], tools);
    let said = json!({"role": "assistant", "content": "", "tool_calls":
        [{"id": "z", "type": "function", "function": {"name": "odp_get", "arguments": "{\"id\":1}"}}]});
    assert_eq!(asked["messages"][2], said);
    let result = json!({"role": "tool", "tool_call_id": "z", "content": "{\"found\":true}"});
    assert_eq!(asked["messages"][3], result);
}

#[tokio::test]
async fn a_reply_cut_at_its_bound_says_so() {
    let reply = answered(Answer::chunks(&[delta(
        &json!({"content": "Once"}),
        Some("length"),
    )]))
    .await;
    assert!(reply.unwrap().cut);
}

#[tokio::test]
async fn a_stream_that_ends_in_the_middle_is_lost_and_charged() {
    let event = format!("data: {}\n\n", delta(&json!({"content": "Hel"}), None));
    let detail = lost(answered(Answer::stream(&event)).await);
    assert_eq!(detail, "The provider's response ended in the middle.");
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"choices\":";
    let detail = lost(answered(Answer::raw(cut)).await);
    assert_eq!(
        detail,
        "The connection to the provider was lost in the middle of its response."
    );
}

#[tokio::test]
async fn a_stream_without_its_last_word_counts_once_the_reply_is_over() {
    let event = format!(
        "data: {}\n\n",
        delta(&json!({"content": "Hello"}), Some("stop"))
    );
    let reply = answered(Answer::stream(&event)).await.unwrap();
    assert_eq!(reply.content, Content::Text("Hello".into()));
}

#[tokio::test]
async fn what_is_not_the_protocol_is_a_failure() {
    let malformed = "The provider's response is not what its protocol says.";
    for answer in [
        Answer::stream("data: {\"choices\": [\n\n"),
        Answer::stream("data: [DONE]\n\n"),
        Answer::json(&json!({"hello": "world"})),
        Answer::json(&json!([])),
        Answer::new("200 OK", &[("content-type", "text/html")], "<html>"),
        Answer::chunks(&[delta(&json!({"tool_calls": [{"index": 1_000_000}]}), None)]),
    ] {
        assert_eq!(lost(answered(answer).await), malformed);
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_classified() {
    let failed = answered(Answer::chunks(&[
        json!({"error": {"type": "server_error", "message": PAYLOAD}}),
    ]))
    .await;
    assert_eq!(
        lost(failed),
        "The provider failed in the middle of its response."
    );
    let limited = answered(Answer::chunks(&[
        json!({"error": {"code": "rate_limit_exceeded"}}),
    ]))
    .await;
    assert!(
        matches!(limited, Err(CallError::Limited { wait: None, .. })),
        "{limited:?}"
    );
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up() {
    let hung = Answer::stream(": wait\n\n").then_hang();
    let server = Server::start([hung]).await;
    let detail = lost(OpenAi::new(server.impatient(), None).call(&request()).await);
    assert_eq!(detail, "The provider sent nothing for 0.1 seconds.");
    let server = Server::start([Answer::raw("").then_hang()]).await;
    let detail = lost(OpenAi::new(server.impatient(), None).call(&request()).await);
    assert_eq!(detail, "The provider sent nothing for 0.1 seconds.");
}

#[tokio::test]
async fn a_response_without_end_is_given_up() {
    let comments = ": 0123456789\n".repeat(17 * 1_048_576 / 13);
    let answer = answered(Answer::stream(&comments)).await;
    let Err(CallError::Failed {
        detail,
        retry: Retry::Never,
        charged: true,
    }) = answer
    else {
        panic!("{answer:?}");
    };
    assert_eq!(
        detail,
        "The provider's response has more than 16777216 bytes."
    );
}

#[tokio::test]
async fn a_filtered_reply_is_a_refusal() {
    let answer = answered(Answer::chunks(&[delta(&json!({}), Some("content_filter"))])).await;
    assert!(
        matches!(answer, Err(CallError::Rejected { .. })),
        "{answer:?}"
    );
}

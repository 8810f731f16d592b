//! A real server of chat completions, when there is one: `PURVEY_TEST_OPENAI_URL`, such as `http://127.0.0.1:8000/v1`, and
//! `PURVEY_TEST_OPENAI_MODEL`.

use purvey_work::{
    SystemClock,
    provider::{Content, Endpoint, Message, OpenAi, Provider, Request, Timeouts},
};
use std::{env, sync::Arc, time::Duration};

#[tokio::test]
async fn a_real_server_answers() {
    let (Ok(url), Ok(model)) = (
        env::var("PURVEY_TEST_OPENAI_URL"),
        env::var("PURVEY_TEST_OPENAI_MODEL"),
    ) else {
        eprintln!("not run: PURVEY_TEST_OPENAI_URL and PURVEY_TEST_OPENAI_MODEL are not set");
        return;
    };
    let timeouts = Timeouts {
        idle: Duration::from_secs(600),
        ..Timeouts::default()
    };
    let endpoint =
        Endpoint::new(url.parse().unwrap(), None, timeouts, Arc::new(SystemClock)).unwrap();
    let request = Request {
        model,
        instructions: "You answer with one word.".into(),
        messages: vec![Message::User {
            content: "What is the capital of France?".into(),
        }],
        tools: Vec::new(),
        max_output_tokens: 32,
        place: None,
    };
    let provider = OpenAi::new(endpoint, None);
    let reply = provider.call(&request).await.unwrap();
    let Content::Text(text) = &reply.content else {
        panic!("{reply:?}");
    };
    assert!(!text.trim().is_empty());
    if let Some(usage) = reply.usage {
        assert!(
            usage.input_tokens > 0 && usage.input_tokens <= provider.most_input_tokens(&request)
        );
        assert!(usage.output_tokens > 0 && usage.output_tokens <= 32);
    }
}

//! One search over many Services.

use crate::support::{Fake, Reply, code, document, page};
use futures_util::StreamExt;
use purvey_agent::{Agent, Found};

fn serving(fake: &Fake, host: &str) {
    fake.on(&format!("GET https://{host}/.well-known/odp"), &document());
}

/// What came, in short: `host/id` or `host: CODE`.
async fn drain(agent: &Agent, origins: Vec<String>) -> Vec<String> {
    let found = agent.search_across(origins, |search| search.query("desk").limit(3));
    found
        .map(|found| match found {
            Found::Offering { service, offering } => {
                let host = service.origin().as_url().host_str().unwrap().to_owned();
                format!("{host}/{}", offering.id())
            }
            Found::Failed { origin, error } => {
                format!(
                    "{}: {}",
                    origin.trim_start_matches("https://"),
                    code(&error)
                )
            }
            _ => "?".to_owned(),
        })
        .collect()
        .await
}

#[tokio::test]
async fn results_and_failures_come_side_by_side() {
    let fake = Fake::new();
    for host in ["a.example", "b.example", "half.example", "refuses.example"] {
        serving(&fake, host);
    }
    let search = |host: &str| format!("POST https://{host}/odp/offerings/search");
    fake.on(&search("a.example"), &page(&["1", "2"], Some("/next")));
    fake.on("GET https://a.example/next", &page(&["3", "4"], None));
    fake.on(&search("b.example"), &page(&["1"], None));
    fake.on(&search("half.example"), &page(&["x"], Some("/next")));
    fake.reply("GET https://half.example/next", Reply::new(200, "{"));
    fake.reply(
        &search("refuses.example"),
        Reply::problem(400, "INVALID_REQUEST"),
    );
    let hosts = [
        "a.example",
        "down.example",
        "b.example",
        "half.example",
        "refuses.example",
    ];
    let mut origins: Vec<String> = hosts.iter().map(|host| format!("https://{host}")).collect();
    origins.push("no origin".to_owned());
    let mut found = drain(&fake.agent(), origins).await;
    let of_a: Vec<_> = found
        .iter()
        .filter(|f| f.starts_with("a.example"))
        .cloned()
        .collect();
    assert_eq!(of_a, ["a.example/1", "a.example/2", "a.example/3"]);
    let of_half: Vec<_> = found
        .iter()
        .filter(|f| f.starts_with("half"))
        .cloned()
        .collect();
    assert_eq!(
        of_half,
        ["half.example/x", "half.example: INVALID_DOCUMENT"]
    );
    found.sort();
    assert_eq!(
        found,
        [
            "a.example/1",
            "a.example/2",
            "a.example/3",
            "b.example/1",
            "down.example: NOT_FOUND",
            "half.example/x",
            "half.example: INVALID_DOCUMENT",
            "no origin: INVALID_REQUEST",
            "refuses.example: INVALID_REQUEST",
        ]
    );
}

#[tokio::test]
async fn only_so_many_services_are_asked_at_once() {
    for most in [1, 3] {
        let fake = Fake::new();
        let mut origins = Vec::new();
        for i in 0..20 {
            let host = format!("s{i}.example");
            serving(&fake, &host);
            fake.on(
                &format!("POST https://{host}/odp/offerings/search"),
                &page(&["x"], None),
            );
            origins.push(format!("https://{host}"));
        }
        let agent = Agent::builder()
            .transport(fake.clone())
            .max_services(most)
            .build()
            .unwrap();
        assert_eq!(drain(&agent, origins).await.len(), 20);
        assert_eq!(fake.most_open(), most);
    }
}

#[tokio::test]
async fn what_is_not_wanted_any_more_is_not_fetched() {
    let fake = Fake::new();
    let mut origins = Vec::new();
    for i in 0..50 {
        let host = format!("s{i}.example");
        serving(&fake, &host);
        fake.on(
            &format!("POST https://{host}/odp/offerings/search"),
            &page(&["x"], None),
        );
        origins.push(format!("https://{host}"));
    }
    let agent = Agent::builder()
        .transport(fake.clone())
        .max_services(2)
        .build()
        .unwrap();
    let found = agent.search_across(origins, |search| search.query("desk"));
    assert_eq!(found.take(3).count().await, 3);
    assert!(fake.log().len() <= 5, "{:?}", fake.log());
}

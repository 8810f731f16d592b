//! Output contracts (Work §6).

use super::bench::{Act, Bench, says, scripted};
use serde_json::{Value, json};

super::on_each_store! {
    output_that_fits_its_contract_is_verified,
    output_that_does_not_fit_fails_the_run_with_where_and_why,
    output_that_was_cut_is_a_limit_and_no_broken_contract,
}

fn agent() -> Value {
    let mut agent = scripted();
    agent["output_schema"] = json!({"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}});
    agent
}

async fn output_that_fits_its_contract_is_verified() {
    let bench = Bench::new([Act::Reply(says("```json\n{\"total\": 3}\n```"))]);
    let run = bench.run(&agent(), &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "succeeded").await;
    let expected = json!(["{\"total\":3}", "verified", Value::Null]);
    assert_eq!(
        bench.read(run, "output, verification_status, verification_errors"),
        expected
    );
    let calls = bench.script.calls.lock();
    let told = "Be brief.\n\nAnswer with one JSON value and nothing else. It must fit this JSON Schema (Draft 2020-12):\n{\"type\":\"object\",";
    assert!(
        calls[0].1.instructions.starts_with(told),
        "{}",
        calls[0].1.instructions
    );
}

async fn output_that_does_not_fit_fails_the_run_with_where_and_why() {
    let bench = Bench::new([Act::Reply(says("{\"total\": \"three\"}"))]);
    let run = bench.run(&agent(), &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "failed").await;
    let errors = "[{\"instance\":\"/total\",\"keyword\":\"/properties/total/type\",\"reason\":\"value is not of type \\\"integer\\\"\"}]";
    let expected = json!([
        "verification.failed",
        "verification_failed",
        errors,
        "{\"total\":\"three\"}",
        1_400
    ]);
    let columns = "error_code, verification_status, verification_errors, output, cost_micros";
    assert_eq!(bench.read(run, columns), expected);
}

async fn output_that_was_cut_is_a_limit_and_no_broken_contract() {
    let mut reply = says("{\"total\": 3}");
    reply.cut = true;
    let bench = Bench::new([Act::Reply(reply)]);
    let run = bench.run(&agent(), &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "failed").await;
    assert_eq!(
        bench.read(run, "error_code, verification_status, output"),
        json!(["provider.rejected", "pending", Value::Null])
    );
}

//! `[providers.NAME]`.

use purvey_work::{
    Clock, SystemClock,
    config::{ProviderConfigs, providers},
    provider::{Prices, Providers},
};
use serde::Deserialize;
use std::{ffi::OsString, sync::Arc};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    providers: ProviderConfigs,
}

fn read(text: &str) -> Result<Providers, String> {
    let file: File = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let environment = |name: &str| match name {
        "FAST_KEY" => Some(OsString::from("sk-secret\n")),
        "EMPTY" => Some(OsString::new()),
        "PATH" => Some(OsString::from("/nowhere:/bin:/usr/bin")),
        _ => None,
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    providers(&file.providers, &environment, &clock).map_err(|error| error.to_string())
}

#[test]
fn the_documented_form_is_taken() {
    let read = read(
        r#"
        [providers.fast]
        kind = "openai"
        base_url = "http://127.0.0.1:8000/v1"
        api_key_env = "FAST_KEY"
        [providers.fast.prices."small-model"]
        input = 100
        output = 400
        [providers.fast.prices."large.model"]
        input = 1000
        output = 4000
        max_output_tokens = 8192
        [providers.claude]
        kind = "anthropic"
        [providers.tidy]
        kind = "command"
        command = ["cat", "-u"]
        environment = ["PATH", "UNSET"]
        "#,
    )
    .unwrap();
    assert_eq!(
        read.names().collect::<Vec<_>>(),
        ["claude", "echo", "fast", "tidy"]
    );
    let fast = read.get("fast").unwrap();
    let prices = |input, output, max_output_tokens| Prices {
        input,
        output,
        max_output_tokens,
    };
    assert_eq!(fast.prices("small-model"), prices(100, 400, 4_096));
    assert_eq!(fast.prices("large.model"), prices(1_000, 4_000, 8_192));
    assert_eq!(fast.prices("free"), prices(0, 0, 4_096));
}

#[test]
fn what_cannot_be_used_names_the_field_and_the_fix() {
    for (text, expected) in [
        (
            "[providers.fast]\nkind = \"openai\"\nbase_ur = \"x\"",
            "unknown field `base_ur`",
        ),
        (
            "[providers.fast]\nkind = \"llama\"",
            "unknown variant `llama`",
        ),
        (
            "[providers.fast]\nbase_url = \"http://a\"",
            "missing field `kind`",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\n[providers.fast.prices.m]\ninput = 1",
            "missing field `output`",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\n[providers.fast.prices.m]\ninput = -1\noutput = 1",
            "invalid value",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\n[providers.fast.prices.m]\ninput = 1.5\noutput = 1",
            "invalid type",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\n[providers.fast.prices.m]\ninput = 1\noutput = 1000001",
            "providers.fast.prices.\"m\".output: must be 0 to 1000000 cents per million tokens",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\n[providers.fast.prices.m]\ninput = 1\noutput = 1\nmax_output_tokens = 0",
            "providers.fast.prices.\"m\".max_output_tokens: must be 1 to 1000000 tokens",
        ),
        (
            "[providers.echo]\nkind = \"openai\"",
            "providers.echo: this name is built in; choose another",
        ),
        (
            "[providers.\"a b\"]\nkind = \"openai\"",
            "providers.a b: a name has 1 to 64 letters, digits, - and _",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\nbase_url = \"ftp://x\"",
            "providers.fast.base_url: must be an http or https URL",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\nbase_url = \"http://user:secret@x/v1\"",
            "providers.fast.base_url: must be an http or https URL without user",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\napi_key_env = \"NO_KEY\"",
            "providers.fast.api_key_env: the environment variable NO_KEY is not set; set it to the key, or remove this line",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\napi_key_env = \"EMPTY\"",
            "providers.fast.api_key_env: the environment variable EMPTY does not hold a key",
        ),
        (
            "[providers.fast]\nkind = \"openai\"\nidle_timeout_seconds = 0",
            "providers.fast.idle_timeout_seconds: must be 1 to 3600 seconds",
        ),
        (
            "[providers.fast]\nkind = \"anthropic\"\noutput_limit_field = \"max_tokens\"",
            "providers.fast.output_limit_field: only providers of kind openai have it; remove it",
        ),
        (
            "[providers.tidy]\nkind = \"command\"\ncommand = [\"cat\"]\nbase_url = \"http://x\"",
            "providers.tidy.base_url: only providers of kind openai and anthropic have it; remove it",
        ),
        (
            "[providers.tidy]\nkind = \"command\"",
            "providers.tidy.command: must be the program and its arguments",
        ),
        (
            "[providers.tidy]\nkind = \"command\"\ncommand = []",
            "providers.tidy.command: must be the program and its arguments",
        ),
        (
            "[providers.tidy]\nkind = \"command\"\ncommand = [\"no-such-program\"]",
            "providers.tidy.command: there is no file no-such-program that can be run; write its path",
        ),
        (
            "[providers.tidy]\nkind = \"command\"\ncommand = [\"/etc/passwd\"]",
            "providers.tidy.command: there is no file /etc/passwd that can be run; write its path",
        ),
        (
            "[providers.tidy]\nkind = \"command\"\ncommand = [\"cat\"]\nenvironment = [\"A=B\"]",
            "providers.tidy.environment: \"A=B\" is no name of a variable",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}\n{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

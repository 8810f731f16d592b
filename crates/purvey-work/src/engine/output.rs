//! From a provider's last reply to the end of its run (Work §6).

use crate::{
    code::Code,
    contract,
    model::Definition,
    provider::{Content, OUTPUT_BYTES, Reply},
    runs::Outcome,
};
use serde_json::Value;

/// How a run ends whose provider has given this reply. Blocks while the output is held to the contract.
pub(super) fn outcome(definition: &Definition, reply: Reply) -> Outcome {
    let failed = |detail: String| Outcome::Failed {
        code: Code::ProviderRejected,
        detail,
        limit: None,
    };
    if reply.cut {
        return failed(
            "The model's answer was cut at its longest length; raise max_output_tokens of the model, or ask for less."
                .to_owned(),
        );
    }
    let output = value(definition, reply.content);
    if output.to_string().len() > OUTPUT_BYTES {
        return failed(format!(
            "The model's answer has more than {OUTPUT_BYTES} bytes; ask for less."
        ));
    }
    let Some(contract) = &definition.output_schema else {
        return Outcome::Succeeded {
            output,
            verified: false,
        };
    };
    let errors = contract::verify(contract, &output);
    if errors.is_empty() {
        return Outcome::Succeeded {
            output,
            verified: true,
        };
    }
    Outcome::Broken { output, errors }
}

/// The output that a reply is: JSON as it is. Text is a string, unless there is a contract and it is JSON.
fn value(definition: &Definition, content: Content) -> Value {
    match content {
        Content::Json(value) => value,
        Content::Text(text) if definition.output_schema.is_none() => text.into(),
        Content::Text(text) => {
            serde_json::from_str(unfenced(&text)).unwrap_or_else(|_| text.into())
        }
    }
}

/// The text without the fence that models like to put around JSON.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = || {
        let inner = text.strip_prefix("```")?.strip_suffix("```")?;
        let (language, inner) = inner.split_once('\n')?;
        matches!(language.trim(), "" | "json").then_some(inner)
    };
    inner().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(contract: Option<Value>, text: &str) -> Value {
        let mut definition =
            json!({"name": "a", "instructions": "", "provider": "p", "model": "m"});
        if let Some(contract) = contract {
            definition["output_schema"] = contract;
        }
        let definition: Definition = serde_json::from_value(definition).unwrap();
        value(&definition, Content::Text(text.to_owned()))
    }

    #[test]
    fn text_is_json_only_where_a_contract_asks_for_it() {
        assert_eq!(of(None, "{\"a\": 1}"), json!("{\"a\": 1}"));
        assert_eq!(of(Some(json!(true)), " {\"a\": 1}\n"), json!({"a": 1}));
        assert_eq!(of(Some(json!(true)), "```json\n[1]\n```\n"), json!([1]));
        assert_eq!(of(Some(json!(true)), "```\n[1]\n```"), json!([1]));
        assert_eq!(
            of(Some(json!(true)), "```rust\n[1]\n```"),
            json!("```rust\n[1]\n```")
        );
        assert_eq!(of(Some(json!(true)), "Hello."), json!("Hello."));
    }
}

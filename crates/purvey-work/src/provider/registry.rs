//! The providers of a server by name, and what their models cost.

use super::{Echo, Provider, Request, Usage};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// The built-in provider.
const ECHO: &str = "echo";
/// Most tokens of a reply unless the configuration says otherwise (Work §4).
pub(crate) const MAX_OUTPUT_TOKENS: u32 = 4_096;

/// What a model costs and may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// Cents per million tokens of a request, which is micro-cents per token.
    pub input: u32,
    /// Cents per million tokens of a reply.
    pub output: u32,
    /// Most tokens of one reply.
    pub max_output_tokens: u32,
}

impl Default for Prices {
    /// A model without prices costs nothing and says at most 4,096 tokens.
    fn default() -> Self {
        Self {
            input: 0,
            output: 0,
            max_output_tokens: MAX_OUTPUT_TOKENS,
        }
    }
}

impl Prices {
    /// What so many tokens cost, in micro-cents.
    #[must_use]
    pub fn micros(&self, usage: Usage) -> i64 {
        let cost = |tokens: u64, price: u32| u128::from(tokens) * u128::from(price);
        let total = cost(usage.input_tokens, self.input) + cost(usage.output_tokens, self.output);
        i64::try_from(total).unwrap_or(i64::MAX)
    }
}

/// A provider with the prices of its models.
#[derive(Clone)]
pub struct Priced {
    provider: Arc<dyn Provider>,
    prices: BTreeMap<String, Prices>,
}

impl Priced {
    /// A provider and what its models cost, by their names.
    pub fn new(provider: impl Provider + 'static, prices: BTreeMap<String, Prices>) -> Self {
        Self {
            provider: Arc::new(provider),
            prices,
        }
    }

    /// The provider.
    #[must_use]
    pub fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    /// What a model costs.
    #[must_use]
    pub fn prices(&self, model: &str) -> Prices {
        self.prices.get(model).copied().unwrap_or_default()
    }

    /// The most that a call can take: what is reserved for it, and what is charged when it is not known what it took (Work §4).
    #[must_use]
    pub fn most(&self, request: &Request) -> Usage {
        Usage {
            input_tokens: self.provider.most_input_tokens(request),
            output_tokens: request.max_output_tokens.into(),
        }
    }
}

/// The providers of a server by name. `echo` is always among them.
#[derive(Clone)]
pub struct Providers(BTreeMap<String, Priced>);

impl Default for Providers {
    fn default() -> Self {
        Self(BTreeMap::from([(
            ECHO.to_owned(),
            Priced::new(Echo, BTreeMap::new()),
        )]))
    }
}

impl Providers {
    /// The same with one more; in place of one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, provider: Priced) -> Self {
        self.0.insert(name.to_owned(), provider);
        self
    }

    /// The provider of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Priced> {
        self.0.get(name)
    }

    /// Every name, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cent_per_million_tokens_is_a_micro_cent_per_token() {
        let prices = Prices {
            input: 100,
            output: 400,
            max_output_tokens: 1,
        };
        let usage = |input_tokens, output_tokens| Usage {
            input_tokens,
            output_tokens,
        };
        assert_eq!(prices.micros(usage(1_000_000, 0)), 100_000_000);
        assert_eq!(prices.micros(usage(3, 5)), 2_300);
        assert_eq!(prices.micros(usage(u64::MAX, u64::MAX)), i64::MAX);
        assert_eq!(Prices::default().micros(usage(7, 7)), 0);
    }

    #[test]
    fn echo_is_always_there() {
        let providers = Providers::default();
        assert_eq!(providers.names().collect::<Vec<_>>(), ["echo"]);
        assert!(providers.get("fast").is_none());
    }
}

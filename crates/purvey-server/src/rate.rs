//! Requests per client address.

use crate::ServerConfig;
use governor::{
    DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
};
use std::net::{IpAddr, Ipv6Addr};

/// Bounds each client's request rate.
pub(crate) struct Limiter {
    buckets: DefaultKeyedRateLimiter<IpAddr>,
    clock: DefaultClock,
}

impl Limiter {
    /// The limiter that the configuration asks for; none when it asks for none.
    pub(crate) fn new(config: &ServerConfig) -> Option<Self> {
        let rate = config.rate_per_second?;
        let quota = Quota::per_second(rate).allow_burst(config.rate_burst.unwrap_or(rate));
        Some(Self {
            buckets: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
        })
    }

    /// Takes one request of `client`.
    ///
    /// # Errors
    /// The whole seconds, at least 1, after which the next one fits.
    pub(crate) fn take(&self, client: IpAddr) -> Result<(), u64> {
        self.buckets
            .check_key(&group(client))
            .map_err(|until| {
                let wait = until.wait_time_from(self.clock.now());
                wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
            })
            .map_err(|seconds| seconds.max(1))
    }

    /// Forgets clients whose bucket is full again, so that memory follows the active ones.
    pub(crate) fn tidy(&self) {
        self.buckets.retain_recent();
        self.buckets.shrink_to_fit();
    }
}

/// One host usually owns a whole IPv6 /64: it is one client.
fn group(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_ipv4_address_or_an_ipv6_network() {
        let parse = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(group(parse("::ffff:192.0.2.1")), parse("192.0.2.1"));
        assert_eq!(
            group(parse("2001:db8:1:2:3:4:5:6")),
            parse("2001:db8:1:2::")
        );
    }

    #[test]
    fn each_client_has_its_own_bucket() {
        let config = ServerConfig {
            rate_per_second: std::num::NonZeroU32::new(2),
            ..ServerConfig::default()
        };
        let limiter = Limiter::new(&config).unwrap();
        let (one, two) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        assert_eq!((limiter.take(one), limiter.take(one)), (Ok(()), Ok(())));
        assert_eq!(limiter.take(one), Err(1));
        assert_eq!(limiter.take(two), Ok(()));
        assert!(Limiter::new(&ServerConfig::default()).is_none());
    }
}

//! Invoking an Action through live challenges, as far as the caller's handler answers them (ODP §13).

use super::{Answer, Input, ResolvedAction};
use crate::Error;
use crate::challenge::{Challenge, Demand};
use crate::service::Service;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use purvey_odp::identity::ServiceOrigin;
use url::Url;

/// The caller's policy about live challenges: whether one is answered, and with what. To enroll, to pay and to ask a person are
/// the handler's own business.
pub trait ChallengeHandler: Send + Sync {
    /// The field that answers `demand` at `origin`, such as `PAYMENT-SIGNATURE` with a signature; nothing when the caller does
    /// not want to answer it. `challenges` are all those of the response, as received.
    fn answer<'a>(
        &'a self,
        demand: Demand,
        challenges: &'a [Challenge],
        origin: &'a ServiceOrigin,
    ) -> BoxFuture<'a, Option<(HeaderName, HeaderValue)>>;
}

impl Service {
    /// Invokes an Action as [`invoke`](Self::invoke) does, and again with what `handler` answers to live challenges.
    ///
    /// The handler is asked about nothing that a response did not demand: neither a price nor an advertised protocol is a
    /// reason to pay. Authentication comes before payment, and each is answered at most once; of several ways to pay that are
    /// demanded together, the first that the handler takes. A challenge past that ends the operation, so that nothing is paid
    /// twice: an answer that was not accepted, or authentication that is demanded after payment. Answers are sent to the origin
    /// of the Action's target alone.
    ///
    /// # Errors
    /// As [`invoke`](Self::invoke); the 401 or 402 that was not answered comes back with its
    /// [`challenges`](Error::challenges).
    pub async fn invoke_with(
        &self,
        action: &ResolvedAction,
        mut input: Input,
        handler: &dyn ChallengeHandler,
    ) -> Result<Answer, Error> {
        // Redirects stay there, so it is the origin of every challenge too.
        let origin = Url::parse(action.url()).ok();
        let origin =
            origin.and_then(|url| ServiceOrigin::from_url(&url, self.settings().local).ok());
        let Some(origin) = origin else {
            return self.invoke(action, input).await;
        };
        let mut progress = Progress::default();
        loop {
            let error = match self.invoke(action, input.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wanted = progress.next(&error.demands());
            let mut answered = None;
            for demand in wanted {
                answered = handler.answer(demand, error.challenges(), &origin).await;
                if answered.is_some() {
                    progress.note(demand);
                    break;
                }
            }
            let Some((name, value)) = answered else {
                return Err(error);
            };
            input = input.credential(&origin, name, value);
        }
    }
}

/// What was answered so far.
#[derive(Default)]
struct Progress {
    authenticated: bool,
    paid: bool,
}

impl Progress {
    /// What can be answered now: authentication alone, or one of several ways to pay; nothing when it is not its turn.
    fn next(&self, demands: &[Demand]) -> Vec<Demand> {
        let (payments, authentication): (Vec<_>, Vec<_>) =
            demands.iter().partition(|demand| demand.is_payment());
        match (authentication.is_empty(), self.authenticated, self.paid) {
            (_, _, true) | (false, true, _) => Vec::new(),
            (false, false, false) => authentication,
            (true, _, false) => payments,
        }
    }

    fn note(&mut self, demand: Demand) {
        match demand.is_payment() {
            true => self.paid = true,
            false => self.authenticated = true,
        }
    }
}

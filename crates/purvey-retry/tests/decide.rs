//! Decisions of the policy for reads, and of another.

use proptest::prelude::*;
use purvey_retry::{Backoff, Budget, Decision, Failure, Policy, Reason, Rule};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 1994-11-06 08:49:37 UTC.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(784_111_777)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn reads(status: u16, field: Option<&str>, budget: Budget, chance: f64) -> Decision {
    Policy::reads().decide(Failure::Status(status), field, &budget, chance, now())
}

#[test]
fn what_the_response_says_is_heeded_when_it_fits() {
    use Decision::{GiveUp, Wait};
    let fresh = Budget::new();
    for (status, field, budget, expected) in [
        (429, Some("5"), fresh, Wait(seconds(5))),
        (429, Some("30"), fresh, Wait(seconds(30))),
        (429, Some("31"), fresh, GiveUp(Reason::Waiting)),
        (429, Some("0"), fresh, Wait(Duration::ZERO)),
        (429, None, fresh, GiveUp(Reason::NotTold)),
        (429, Some("soon"), fresh, GiveUp(Reason::NotTold)),
        (429, Some("-1"), fresh, GiveUp(Reason::NotTold)),
        (503, Some("7"), fresh, Wait(seconds(7))),
        (503, Some("31"), fresh, GiveUp(Reason::Waiting)),
        // Far more than there is, and not a wait of none.
        (
            503,
            Some("18446744073709551615"),
            fresh,
            GiveUp(Reason::Waiting),
        ),
        (
            503,
            Some("10"),
            Budget::spent(1, seconds(20)),
            Wait(seconds(10)),
        ),
        (
            503,
            Some("11"),
            Budget::spent(1, seconds(20)),
            GiveUp(Reason::Waiting),
        ),
        (
            503,
            Some("1"),
            Budget::spent(3, seconds(3)),
            GiveUp(Reason::Retries),
        ),
        (
            429,
            Some("Sun, 06 Nov 1994 08:49:47 GMT"),
            fresh,
            Wait(seconds(10)),
        ),
        (
            429,
            Some("Sun, 06 Nov 1994 08:50:08 GMT"),
            fresh,
            GiveUp(Reason::Waiting),
        ),
        (
            429,
            Some("Sun, 06 Nov 1994 08:00:00 GMT"),
            fresh,
            Wait(Duration::ZERO),
        ),
    ] {
        assert_eq!(
            reads(status, field, budget, 0.5),
            expected,
            "{status} {field:?} {budget:?}"
        );
    }
}

#[test]
fn nothing_else_is_transient() {
    for status in [
        200, 301, 304, 400, 401, 402, 403, 404, 406, 408, 410, 413, 415, 422, 425, 500, 502, 504,
    ] {
        assert_eq!(
            reads(status, Some("1"), Budget::new(), 0.5),
            Decision::GiveUp(Reason::NotTransient),
            "{status}"
        );
    }
    assert_eq!(
        Policy::reads().decide(Failure::Connection, None, &Budget::new(), 0.5, now()),
        Decision::GiveUp(Reason::NotTransient)
    );
}

#[test]
fn without_guidance_503_backs_off() {
    for (retries, chance, milliseconds) in [
        (0, 0.0, 0),
        (0, 0.5, 250),
        (0, 1.0, 500),
        (1, 1.0, 1_000),
        (2, 0.25, 500),
        (2, 1.0, 2_000),
        // No chance at all is the longest wait.
        (0, 7.0, 500),
        (0, -1.0, 500),
        (0, f64::NAN, 500),
    ] {
        assert_eq!(
            reads(503, None, Budget::spent(retries, Duration::ZERO), chance),
            Decision::Wait(Duration::from_millis(milliseconds)),
            "{retries} {chance}"
        );
    }
    // The wait is drawn from what is left, and there is none when nothing is.
    assert_eq!(
        reads(503, None, Budget::spent(2, seconds(29)), 1.0),
        Decision::Wait(seconds(1))
    );
    assert_eq!(
        reads(503, None, Budget::spent(2, seconds(30)), 1.0),
        Decision::GiveUp(Reason::Waiting)
    );
}

#[test]
fn no_wait_reaches_past_the_deadline() {
    let budget = Budget::new().with_deadline(now() + seconds(10));
    assert_eq!(
        reads(503, Some("9"), budget, 0.5),
        Decision::Wait(seconds(9))
    );
    for field in ["10", "11"] {
        assert_eq!(
            reads(503, Some(field), budget, 0.5),
            Decision::GiveUp(Reason::Deadline)
        );
    }
    let over = Budget::new().with_deadline(now() - seconds(1));
    assert_eq!(
        reads(503, None, over, 0.0),
        Decision::GiveUp(Reason::Deadline)
    );
}

#[test]
fn another_policy_by_the_same_core() {
    let work = Policy {
        retries: 40,
        waiting: seconds(600),
        backoff: Backoff {
            base: seconds(1),
            cap: seconds(20),
        },
        rule: |failure| match failure {
            Failure::Connection => Rule::Backoff,
            Failure::Status(500..=599) => Rule::Backoff,
            _ => Rule::Never,
        },
    };
    let decide = |failure, retries| {
        let budget = Budget::spent(retries, Duration::ZERO);
        work.decide(failure, None, &budget, 1.0, now())
    };
    assert_eq!(decide(Failure::Connection, 0), Decision::Wait(seconds(1)));
    assert_eq!(decide(Failure::Status(502), 4), Decision::Wait(seconds(16)));
    assert_eq!(
        decide(Failure::Status(502), 39),
        Decision::Wait(seconds(20))
    );
    assert_eq!(
        Policy::never().decide(Failure::Status(503), Some("1"), &Budget::new(), 0.5, now()),
        Decision::GiveUp(Reason::NotTransient)
    );
}

#[test]
fn both_forms_of_retry_after() {
    let read = |field| purvey_retry::retry_after(field, now());
    for (field, expected) in [
        ("0", 0),
        ("120", 120),
        (" 3 ", 3),
        ("0003", 3),
        ("Sun, 06 Nov 1994 08:49:38 GMT", 1),
        ("Sunday, 06-Nov-94 08:49:38 GMT", 1),
        ("Sun Nov  6 08:49:38 1994", 1),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ] {
        assert_eq!(read(field), Some(seconds(expected)), "{field}");
    }
    for field in [
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1e3",
        "0x10",
        "1 2",
        "1,2",
        "18446744073709551616",
        "99999999999999999999999999",
        "tomorrow",
        "Sun, 06 Nov 1994",
        "Sun, 06 Nov 1994 08:49:38",
        "Sun, 99 Nov 1994 08:49:38 GMT",
        "1994-11-06T08:49:38Z",
        "\u{661}",
    ] {
        assert_eq!(read(field), None, "{field:?}");
    }
}

proptest! {
    /// However an operation goes, it ends within 3 retries and 30 seconds of waiting.
    #[test]
    fn an_operation_stays_within_its_budget(
        responses in prop::collection::vec(
            (any::<bool>(), prop::option::of("[0-9]{1,20}|[ -~]{0,30}"), -0.5..1.5_f64),
            0..20,
        )
    ) {
        let policy = Policy::reads();
        let (mut budget, mut now) = (Budget::new(), now());
        let (mut retries, mut waited) = (0, Duration::ZERO);
        for (limited, field, chance) in responses {
            let failure = Failure::Status(if limited { 429 } else { 503 });
            match policy.decide(failure, field.as_deref(), &budget, chance, now) {
                Decision::Wait(wait) => {
                    budget.spend(wait);
                    retries += 1;
                    waited += wait;
                    now += wait;
                }
                Decision::GiveUp(_) => break,
            }
            prop_assert!(retries <= 3);
            prop_assert!(waited <= seconds(30));
        }
        prop_assert_eq!((budget.retries(), budget.waited()), (retries, waited));
    }

    /// A wait that was asked for is never shortened.
    #[test]
    fn a_wait_asked_for_is_waited_whole(told in 0..60_u64, spent in 0..40_u64, chance in 0.0..1.0_f64) {
        let budget = Budget::spent(1, seconds(spent));
        let decision = reads(429, Some(&told.to_string()), budget, chance);
        let expected = if told + spent <= 30 || (told == 0 && spent >= 30) {
            Decision::Wait(seconds(told))
        } else {
            Decision::GiveUp(Reason::Waiting)
        };
        prop_assert_eq!(decision, expected);
    }

    /// No field makes reading it panic, and a number is read as itself.
    #[test]
    fn any_field_can_be_read(field in any::<String>(), number in any::<u64>()) {
        let _ = purvey_retry::retry_after(&field, now());
        prop_assert_eq!(purvey_retry::retry_after(&number.to_string(), now()), Some(seconds(number)));
    }
}

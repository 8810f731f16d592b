//! The five codes of spending, and the ledger (Work §4).

use super::world::{World, refusal};
use crate::{
    code::Code,
    id::{AgentId, UserId, WorkspaceId},
    model::{Role, RunStatus},
    runs::{Begun, Outcome, Target},
    sql::Param,
};

super::on_each_store! {
    daily_cost_applies_only_when_set_and_clears_at_midnight_utc,
    the_allowance_is_shared_by_every_workspace_of_the_owner,
    whoever_starts_draws_on_the_allowance_of_the_owner,
    the_platform_limit_counts_everyone,
    an_invited_owner_needs_approval_once_they_share_no_workspace_with_the_inviter,
    an_operator_stops_all_spending_and_lets_it_go_on,
    concurrent_calls_see_each_others_reservations_and_one_call_is_the_most_by_which_a_limit_is_passed,
    reservation_and_settlement_are_of_the_day_of_the_reservation,
    a_call_in_flight_at_a_crash_is_charged_its_reservation_and_may_be_made_again,
    an_answer_that_got_lost_neither_reserves_nor_charges_twice,
}

/// A cent in micro-cents.
const CENT: i64 = 1_000_000;

fn setting(seed: u64) -> (World, UserId, WorkspaceId, AgentId) {
    let world = World::new(seed);
    let user = world.user();
    let workspace = world.workspace(user, 9, 9);
    let agent = world.agent(workspace, user);
    (world, user, workspace, agent)
}

fn start_refused(world: &World, user: UserId, agent: AgentId) -> crate::error::Refusal {
    let start = world.start(world.by(user), Target::Agent(agent), None);
    let refused = refusal(world.admit(&start));
    assert_eq!(refused.retry_after, None);
    let limit = refused.limit_detail.as_ref().unwrap();
    assert_eq!(limit.code, refused.code);
    refused
}

/// Makes a run that has cost so much, settled.
fn spend(world: &World, user: UserId, agent: AgentId, micros: i64) {
    let run = world.run(agent, user);
    let claim = world.claim_one(run.id);
    assert_eq!(world.call(&claim.lease, 1, micros).unwrap(), Begun::Go);
    world.settle(&claim.lease, 1, micros).unwrap();
    world.succeed(&claim.lease);
}

fn ledger(world: &World, scope: &str) -> Vec<Vec<i64>> {
    world.numbers(
        "SELECT day, settled, reserved FROM ledger WHERE scope = $1 ORDER BY day",
        &[Param::Text(scope)],
    )
}

fn daily_cost_applies_only_when_set_and_clears_at_midnight_utc() {
    let (mut world, user, _, agent) = setting(1);
    spend(&world, user, agent, 5 * CENT);
    world.sql("UPDATE workspaces SET daily_cost_cents = 5", &[]);
    let refused = start_refused(&world, user, agent);
    assert_eq!(refused.code, Code::DailyCost);
    let limit = refused.limit_detail.unwrap();
    assert_eq!((limit.used_cents, limit.limit_cents), (Some(5), Some(5)));
    assert_eq!(
        limit.resets_at.unwrap().to_string(),
        "2026-01-02T00:00:00.000Z"
    );
    world.pass(12 * 3_600_000 - 1);
    start_refused(&world, user, agent);
    world.pass(1);
    assert_eq!(world.run(agent, user).status, RunStatus::Running);
}

fn the_allowance_is_shared_by_every_workspace_of_the_owner() {
    let (world, user, _, agent) = setting(2);
    world.sql("UPDATE limits SET allowance_daily_cents = 3", &[]);
    let elsewhere = world.agent(world.workspace(user, 9, 9), user);
    let stranger = world.user();
    let strangers = world.agent(world.workspace(stranger, 9, 9), stranger);
    spend(&world, user, agent, 2 * CENT + 1);
    assert_eq!(world.run(elsewhere, user).status, RunStatus::Running);
    world.succeed(&world.claim("n", 1)[0].lease);
    spend(&world, user, elsewhere, CENT - 1);
    for agent in [agent, elsewhere] {
        let refused = start_refused(&world, user, agent);
        assert_eq!(refused.code, Code::DailyAllowance);
        let limit = refused.limit_detail.unwrap();
        assert_eq!((limit.used_cents, limit.limit_cents), (Some(3), Some(3)));
    }
    assert_eq!(world.run(strangers, stranger).status, RunStatus::Running);
}

fn whoever_starts_draws_on_the_allowance_of_the_owner() {
    let (world, owner, workspace, agent) = setting(3);
    world.sql("UPDATE limits SET allowance_daily_cents = 1", &[]);
    let member = world.user();
    world.member(workspace, member, Some(Role::Member));
    spend(&world, member, agent, CENT);
    for user in [owner, member] {
        assert_eq!(
            start_refused(&world, user, agent).code,
            Code::DailyAllowance
        );
    }
    let own = world.agent(world.workspace(member, 1, 1), member);
    assert_eq!(world.run(own, member).status, RunStatus::Running);
}

fn the_platform_limit_counts_everyone() {
    let (world, user, _, agent) = setting(4);
    let stranger = world.user();
    let strangers = world.agent(world.workspace(stranger, 9, 9), stranger);
    world.sql("UPDATE limits SET platform_daily_cents = 4", &[]);
    spend(&world, user, agent, 3 * CENT);
    spend(&world, stranger, strangers, CENT);
    for (user, agent) in [(user, agent), (stranger, strangers)] {
        assert_eq!(start_refused(&world, user, agent).code, Code::DailyPlatform);
    }
}

fn an_invited_owner_needs_approval_once_they_share_no_workspace_with_the_inviter() {
    let (mut world, owner, workspace, agent) = setting(5);
    let inviter = world.user();
    world.sql(
        "UPDATE users SET invited_by = $2 WHERE id = $1",
        &[
            Param::Text(&owner.to_string()),
            Param::Text(&inviter.to_string()),
        ],
    );
    // They never shared one.
    let refused = start_refused(&world, owner, agent);
    assert_eq!(refused.code, Code::NeedsApproval);
    assert_eq!(refused.limit_detail.unwrap().resets_at, None);
    // It does not clear at midnight.
    world.pass(86_400_000);
    assert_eq!(
        start_refused(&world, owner, agent).code,
        Code::NeedsApproval
    );
    world.member(workspace, inviter, Some(Role::Viewer));
    let run = world.run(agent, owner);
    let claim = world.claim_one(run.id);
    // It is judged live, in the middle of a run too.
    world.member(workspace, inviter, None);
    let Begun::Refused(limit) = world.call(&claim.lease, 1, 1).unwrap() else {
        panic!("reserved");
    };
    assert_eq!(limit.code, Code::NeedsApproval);
    world.sql("UPDATE users SET approved = 1", &[]);
    assert_eq!(world.run(agent, owner).status, RunStatus::Running);
}

fn an_operator_stops_all_spending_and_lets_it_go_on() {
    let (world, user, _, agent) = setting(6);
    let run = world.run(agent, user);
    let claim = world.claim_one(run.id);
    world.sql("UPDATE limits SET budget_stop = 1", &[]);
    assert_eq!(start_refused(&world, user, agent).code, Code::BudgetStopped);
    let Begun::Refused(limit) = world.call(&claim.lease, 1, 1).unwrap() else {
        panic!("reserved");
    };
    assert_eq!(limit.code, Code::BudgetStopped);
    let outcome = Outcome::Failed {
        code: limit.code,
        detail: limit.code.detail().into(),
        limit: Some(limit),
    };
    world.finish(&claim.lease, &outcome).unwrap();
    assert_eq!(world.failed(run.id), Code::BudgetStopped);
    world.sql("UPDATE limits SET budget_stop = 0", &[]);
    assert_eq!(world.run(agent, user).status, RunStatus::Running);
}

fn concurrent_calls_see_each_others_reservations_and_one_call_is_the_most_by_which_a_limit_is_passed()
 {
    let (world, user, workspace, agent) = setting(7);
    world.sql("UPDATE workspaces SET daily_cost_cents = 10", &[]);
    let runs: Vec<_> = (0..3).map(|_| world.run(agent, user).id).collect();
    let claims = world.claim("node", 9);
    assert_eq!(claims.len(), runs.len());
    // 6 are reserved, 4 are left: a second call of 6 is the one that passes the limit.
    assert_eq!(
        world.call(&claims[0].lease, 1, 6 * CENT).unwrap(),
        Begun::Go
    );
    assert_eq!(
        world.call(&claims[1].lease, 1, 6 * CENT).unwrap(),
        Begun::Go
    );
    let Begun::Refused(limit) = world.call(&claims[2].lease, 1, 1).unwrap() else {
        panic!("reserved");
    };
    assert_eq!((limit.used_cents, limit.limit_cents), (Some(12), Some(10)));
    let today = 20_454;
    for scope in [workspace.to_string(), user.to_string(), "platform".into()] {
        assert_eq!(ledger(&world, &scope), [[today, 0, 12 * CENT]]);
    }
    // What was not used is free again.
    world.settle(&claims[0].lease, 1, CENT).unwrap();
    assert_eq!(ledger(&world, "platform"), [[today, CENT, 6 * CENT]]);
    assert_eq!(world.call(&claims[2].lease, 1, 1).unwrap(), Begun::Go);
    world.settle(&claims[2].lease, 1, 1).unwrap();
    assert_eq!(world.read(claims[2].lease.run).cost_cents, 1);
    assert_eq!(world.read(claims[0].lease.run).cost_cents, 1);
}

fn reservation_and_settlement_are_of_the_day_of_the_reservation() {
    let (mut world, user, workspace, agent) = setting(8);
    world.pass(12 * 3_600_000 - 1);
    let run = world.run(agent, user);
    let claim = world.claim_one(run.id);
    world.call(&claim.lease, 1, 9 * CENT).unwrap();
    world.pass(10);
    world.settle(&claim.lease, 1, 2 * CENT).unwrap();
    assert_eq!(
        ledger(&world, &workspace.to_string()),
        [[20_454, 2 * CENT, 0]]
    );
    world.call(&claim.lease, 2, CENT).unwrap();
    world.settle(&claim.lease, 2, CENT).unwrap();
    assert_eq!(
        ledger(&world, &workspace.to_string()),
        [[20_454, 2 * CENT, 0], [20_455, CENT, 0]]
    );
}

fn a_call_in_flight_at_a_crash_is_charged_its_reservation_and_may_be_made_again() {
    let (mut world, user, _, agent) = setting(9);
    let run = world.run(agent, user);
    let lost = world.claim_one(run.id);
    world.call(&lost.lease, 1, 3 * CENT).unwrap();
    world.pass(15_000);
    let claim = world.claim_one(run.id);
    assert_eq!(world.read(run.id).cost_cents, 3);
    // The lost worker's settlement comes too late to count.
    assert!(matches!(
        world.settle(&lost.lease, 1, CENT),
        Err(crate::error::Error::LeaseLost)
    ));
    assert_eq!(world.call(&claim.lease, 1, 3 * CENT).unwrap(), Begun::Go);
    world.settle(&claim.lease, 1, CENT).unwrap();
    assert_eq!(world.read(run.id).cost_cents, 4);
    assert_eq!(ledger(&world, "platform"), [[20_454, 4 * CENT, 0]]);
}

fn an_answer_that_got_lost_neither_reserves_nor_charges_twice() {
    let (world, user, _, agent) = setting(10);
    let run = world.run(agent, user);
    let claim = world.claim_one(run.id);
    for _ in 0..2 {
        assert_eq!(world.call(&claim.lease, 1, 3 * CENT).unwrap(), Begun::Go);
        assert_eq!(ledger(&world, "platform"), [[20_454, 0, 3 * CENT]]);
    }
    for _ in 0..2 {
        world.settle(&claim.lease, 1, 2 * CENT).unwrap();
        assert_eq!(ledger(&world, "platform"), [[20_454, 2 * CENT, 0]]);
    }
    assert_eq!(world.read(run.id).cost_cents, 2);
}

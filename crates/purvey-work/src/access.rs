//! Who may do what (Work §11): one table for code and documentation.
//!
//! A caller is judged in a fixed order: what lies in another organization is absent (404); then the token's scope, the user's state and
//! role in the workspace, and last the visibility of the thing (each 403). The operator may do everything but act as a user.

use crate::{
    code::Code,
    error::{Error, Refusal},
    id::{OrganizationId, TokenId, UserId},
    model::{Role, Scope, UserState},
};

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The holder of the operator's token: nobody's, so cannot start runs.
    Operator,
    /// A user, through one of their tokens.
    User(Actor),
}

/// A user as a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Who.
    pub user: UserId,
    /// Their tenant.
    pub organization: OrganizationId,
    /// What they may do at all.
    pub state: UserState,
    /// What the token may be used for.
    pub scopes: Vec<Scope>,
    /// Which token.
    pub token: TokenId,
}

macro_rules! actions {
    ($($name:ident $scope:ident $role:ident $own:ident $what:literal;)*) => {
        /// What a call does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Action { $(#[doc = $what] $name),* }

        impl Action {
            /// Every action, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// What it is, in words.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self { $(Self::$name => $what),* }
            }

            /// The scope that a token needs for it.
            #[must_use]
            pub const fn scope(self) -> Scope {
                match self { $(Self::$name => Scope::$scope),* }
            }

            /// The least role in the workspace; none when no workspace is concerned.
            #[must_use]
            pub const fn role(self) -> Option<Role> {
                match self { $(Self::$name => role!($role)),* }
            }

            /// The least role for what is one's own, where it is less.
            #[must_use]
            pub const fn own(self) -> Option<Role> {
                match self { $(Self::$name => role!($own)),* }
            }
        }
    };
}

macro_rules! role {
    (None) => {
        None
    };
    ($role:ident) => {
        Some(Role::$role)
    };
}

actions! {
    WorkspaceCreate WorkspacesWrite None None "Create a workspace of one's own";
    WorkspaceRead WorkspacesRead Viewer None "Read a workspace and its members";
    WorkspaceLimits WorkspacesWrite Admin None "Change concurrency and queue limits";
    WorkspaceBudget WorkspacesWrite Owner None "Change the daily budget";
    MembersWrite WorkspacesWrite Admin None "Add, change and remove members";
    TokensRead WorkspacesRead None None "List one's own tokens";
    TokensWrite WorkspacesWrite None None "Make and revoke one's own tokens";
    AgentRead AgentsRead Viewer None "Read an agent that is visible";
    AgentCreate AgentsWrite Member None "Create an agent";
    AgentChange AgentsWrite Admin Member "Change or delete an agent";
    RunStart RunsWrite Member None "Start a run of an agent that is visible";
    RunRead RunsRead Viewer None "Read runs, steps and events";
    RunCancel RunsWrite Admin Member "Cancel a run";
    ThreadRead ThreadsRead Viewer None "Read threads and turns";
    ThreadOpen ThreadsWrite Member None "Open a thread";
    TurnSend ThreadsWrite Member None "Send a request to a thread";
    ThreadChange ThreadsWrite Admin Member "Pause, resume or close a thread";
    TriggerRead TriggersRead Viewer None "Read triggers";
    TriggerWrite TriggersWrite Admin None "Create, change and delete triggers";
    ArtifactRead ArtifactsRead Viewer None "Read artifacts";
    ArtifactWrite ArtifactsWrite Member None "Upload an artifact";
    ArtifactDelete ArtifactsWrite Admin Member "Delete an artifact";
    CatalogWrite CatalogWrite None None "Write the catalog";
}

impl Principal {
    /// Whether a thing of this organization exists for the caller at all.
    #[must_use]
    pub fn sees(&self, organization: OrganizationId) -> bool {
        match self {
            Self::Operator => true,
            Self::User(actor) => actor.organization == organization,
        }
    }

    /// The user who acts.
    ///
    /// # Errors
    /// `permission.role` for the operator, who is nobody.
    pub fn actor(&self) -> Result<&Actor, Error> {
        match self {
            Self::Operator => Err(Refusal::because(
                Code::PermissionRole,
                "The operator's token is nobody's and cannot act as a user; use a user's token.",
            )
            .into()),
            Self::User(actor) => Ok(actor),
        }
    }

    /// Lets the operator through and nobody else.
    ///
    /// # Errors
    /// `permission.role`.
    pub fn operator(&self) -> Result<(), Error> {
        match self {
            Self::Operator => Ok(()),
            Self::User(_) => Err(Refusal::because(
                Code::PermissionRole,
                "This is the operator's alone; use the operator's token.",
            )
            .into()),
        }
    }

    /// Judges an action by a caller with this role in the workspace; `own` when the thing is the caller's.
    ///
    /// # Errors
    /// `permission.scope` or `permission.role`, in that order.
    pub fn may(&self, action: Action, role: Option<Role>, own: bool) -> Result<(), Error> {
        let Self::User(actor) = self else {
            return Ok(());
        };
        let scope = action.scope();
        if !actor.scopes.contains(&scope) {
            let detail = format!("The token does not have the scope {}.", scope.text());
            return Err(Refusal::because(Code::PermissionScope, detail).into());
        }
        action.permits(actor.state, role, own)
    }
}

impl Action {
    /// Judges a user in this state and with this role in the workspace, whatever their token; `own` when the thing is theirs.
    ///
    /// # Errors
    /// `permission.role`.
    pub fn permits(self, state: UserState, role: Option<Role>, own: bool) -> Result<(), Error> {
        if state != UserState::Active {
            let detail = format!("The user is {}.", state.text());
            return Err(Refusal::because(Code::PermissionRole, detail).into());
        }
        let least = match (own, self.own()) {
            (true, Some(least)) => Some(least),
            _ => self.role(),
        };
        match least {
            Some(least) if role.is_none_or(|role| role < least) => {
                let has = role.map_or("no member", Role::text);
                let detail = format!(
                    "This takes the role {} in the workspace; the user is {has}.",
                    least.text()
                );
                Err(Refusal::because(Code::PermissionRole, detail).into())
            }
            _ => Ok(()),
        }
    }
}

/// The table as it stands in the documentation.
#[must_use]
pub fn table() -> String {
    let mut text =
        String::from("| action | scope | least role | for one's own |\n|---|---|---|---|\n");
    for action in Action::ALL {
        let role = |role: Option<Role>| role.map_or("–", Role::text);
        text += &format!(
            "| {} | `{}` | {} | {} |\n",
            action.what(),
            action.scope().text(),
            role(action.role()),
            role(action.own())
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SystemChance, Timestamp};

    fn actor(state: UserState, scopes: &[Scope]) -> Principal {
        let now = Timestamp::from_millis(0);
        Principal::User(Actor {
            user: UserId::new(now, &SystemChance),
            organization: OrganizationId::new(now, &SystemChance),
            state,
            scopes: scopes.to_vec(),
            token: TokenId::new(now, &SystemChance),
        })
    }

    fn code(judged: Result<(), Error>) -> Option<Code> {
        match judged {
            Ok(()) => None,
            Err(Error::Refused(refusal)) => Some(refusal.code),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn viewers_read_members_work_admins_manage_owners_budget() {
        // The sentence of Work §11, by hand: the least role of each.
        let rows = [
            (Action::RunRead, Role::Viewer),
            (Action::AgentRead, Role::Viewer),
            (Action::RunStart, Role::Member),
            (Action::ArtifactWrite, Role::Member),
            (Action::AgentCreate, Role::Member),
            (Action::MembersWrite, Role::Admin),
            (Action::WorkspaceLimits, Role::Admin),
            (Action::TriggerWrite, Role::Admin),
            (Action::WorkspaceBudget, Role::Owner),
        ];
        for (action, least) in rows {
            let caller = actor(UserState::Active, &[action.scope()]);
            assert_eq!(
                code(caller.may(action, None, false)),
                Some(Code::PermissionRole)
            );
            for role in Role::ALL {
                let judged = code(caller.may(action, Some(*role), false));
                let expected = (*role < least).then_some(Code::PermissionRole);
                assert_eq!(judged, expected, "{action:?} {role:?}");
            }
        }
    }

    #[test]
    fn the_scope_is_judged_before_state_and_role() {
        for action in Action::ALL {
            let none = actor(UserState::Locked, &[]);
            assert_eq!(
                code(none.may(*action, None, false)),
                Some(Code::PermissionScope)
            );
            let locked = actor(UserState::Locked, &[action.scope()]);
            assert_eq!(
                code(locked.may(*action, Some(Role::Owner), true)),
                Some(Code::PermissionRole)
            );
            assert_eq!(code(Principal::Operator.may(*action, None, false)), None);
            // A token can do what its scopes and its user's role allow, and nothing else.
            let others: Vec<Scope> = Scope::ALL
                .iter()
                .copied()
                .filter(|scope| *scope != action.scope())
                .collect();
            let other = actor(UserState::Active, &others);
            assert_eq!(
                code(other.may(*action, Some(Role::Owner), true)),
                Some(Code::PermissionScope)
            );
        }
    }

    #[test]
    fn members_change_what_is_theirs_and_admins_everything() {
        let caller = actor(UserState::Active, &[Scope::AgentsWrite]);
        let member = Some(Role::Member);
        assert_eq!(code(caller.may(Action::AgentChange, member, true)), None);
        assert_eq!(
            code(caller.may(Action::AgentChange, member, false)),
            Some(Code::PermissionRole)
        );
        assert_eq!(
            code(caller.may(Action::AgentChange, Some(Role::Admin), false)),
            None
        );
        assert_eq!(
            code(caller.may(Action::AgentChange, Some(Role::Viewer), true)),
            Some(Code::PermissionRole)
        );
    }

    #[test]
    fn the_documentation_holds_the_table() {
        let docs = include_str!("../../../docs/access.md");
        assert!(
            docs.contains(&table()),
            "docs/access.md lacks:\n{}",
            table()
        );
    }
}

//! Organizations, users, workspaces, members, tokens, limits.

use super::Platform;
use crate::{
    access::Principal,
    error::Error,
    identity::{
        organizations,
        tokens::{self, NewToken},
        workspaces,
    },
    model::{Limits, Member, Organization, Scope, Token, User, Workspace},
    paging::{Listing, PageRequest},
    runs,
};
use serde_json::{Value, json};

/// What the first start of an empty store makes.
#[derive(Clone, Debug)]
pub struct Bootstrapped {
    /// The tenant.
    pub organization: Organization,
    /// Its first user.
    pub user: User,
    /// Their workspace.
    pub workspace: Workspace,
    /// Their token, with every scope.
    pub token: NewToken,
}

impl Platform {
    /// Makes one organization, user, workspace and owner token if there is no organization yet; otherwise nothing.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn bootstrap(&self) -> Result<Option<Bootstrapped>, Error> {
        self.write(|session, cx| {
            // Nodes may start together: the row is there before anything else, so they look one after the other.
            session.row("SELECT id FROM limits WHERE id = 1 /*pg:FOR UPDATE*/", &[])?;
            if session
                .row("SELECT id FROM organizations LIMIT 1", &[])?
                .is_some()
            {
                return Ok(None);
            }
            let operator = Principal::Operator;
            let name = json!({ "name": "Organization" });
            let organization = organizations::create_organization(session, cx, &operator, &name)?;
            let user = json!({ "organization_id": organization.id, "display_name": "Owner" });
            let user = organizations::create_user(session, cx, &operator, &user)?;
            let approved = json!({ "approved": true });
            let id = user.id.to_string();
            let user = organizations::update_user(session, &operator, &id, &approved)?;
            let workspace = json!({
                "organization_id": organization.id, "name": "Workspace", "owner_id": user.id,
            });
            let workspace = workspaces::create(session, cx, &operator, &workspace)?;
            let token = tokens::issue(session, cx, user.id, Scope::ALL.to_vec(), None)?;
            Ok(Some(Bootstrapped {
                organization,
                user,
                workspace,
                token,
            }))
        })
        .await
    }

    /// `POST /v1/admin/organizations`.
    ///
    /// # Errors
    /// Any refusal of Work §2; failures of the store.
    pub async fn create_organization(
        &self,
        caller: Principal,
        body: Value,
    ) -> Result<Organization, Error> {
        self.write(move |session, cx| {
            organizations::create_organization(session, cx, &caller, &body)
        })
        .await
    }

    /// Whether the caller may write the catalog of this server: the operator, and with the scope `catalog:write` the users of the organization
    /// that was made first.
    ///
    /// # Errors
    /// `permission.scope`, `permission.role`; failures of the store.
    pub async fn may_write_catalog(&self, caller: Principal) -> Result<(), Error> {
        self.read(move |session, _| organizations::may_write_catalog(session, &caller))
            .await
    }

    /// `POST /v1/admin/users`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn create_user(&self, caller: Principal, body: Value) -> Result<User, Error> {
        self.write(move |session, cx| organizations::create_user(session, cx, &caller, &body))
            .await
    }

    /// `PATCH /v1/admin/users/{id}`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn update_user(
        &self,
        caller: Principal,
        id: String,
        body: Value,
    ) -> Result<User, Error> {
        self.write(move |session, _| organizations::update_user(session, &caller, &id, &body))
            .await
    }

    /// `GET /v1/admin/limits`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn limits(&self, caller: Principal) -> Result<Limits, Error> {
        self.read(move |session, _| organizations::read_limits(session, &caller))
            .await
    }

    /// `PATCH /v1/admin/limits`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn update_limits(&self, caller: Principal, body: Value) -> Result<Limits, Error> {
        self.write(move |session, _| organizations::update_limits(session, &caller, &body))
            .await
    }

    /// `POST /v1/workspaces`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn create_workspace(
        &self,
        caller: Principal,
        body: Value,
    ) -> Result<Workspace, Error> {
        self.write(move |session, cx| workspaces::create(session, cx, &caller, &body))
            .await
    }

    /// `GET /v1/workspaces`: those that the caller is a member of.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn workspaces(
        &self,
        caller: Principal,
        page: PageRequest,
    ) -> Result<Listing<Workspace>, Error> {
        self.read(move |session, _| workspaces::list(session, &caller, &page))
            .await
    }

    /// `GET /v1/workspaces/{ws}`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn workspace(&self, caller: Principal, id: String) -> Result<Workspace, Error> {
        use crate::access::Action::WorkspaceRead;
        self.read(
            move |session, _| Ok(workspaces::allowed(session, &caller, &id, WorkspaceRead)?.0),
        )
        .await
    }

    /// `PATCH /v1/workspaces/{ws}`. Runs that wait get the slots that a higher limit brings.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn update_workspace(
        &self,
        caller: Principal,
        id: String,
        body: Value,
    ) -> Result<Workspace, Error> {
        self.write(move |session, cx| {
            let workspace = workspaces::update(session, &caller, &id, &body)?;
            runs::promote_waiting(session, cx, workspace.id)?;
            Ok(workspaces::find(session, &caller, &id)?.0)
        })
        .await
    }

    /// `GET /v1/workspaces/{ws}/members`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn members(&self, caller: Principal, id: String) -> Result<Listing<Member>, Error> {
        self.read(move |session, _| workspaces::members(session, &caller, &id))
            .await
    }

    /// `PUT /v1/workspaces/{ws}/members/{user}`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn put_member(
        &self,
        caller: Principal,
        id: String,
        user: String,
        body: Value,
    ) -> Result<Member, Error> {
        self.write(move |session, cx| {
            workspaces::put_member(session, cx, &caller, &id, &user, &body)
        })
        .await
    }

    /// `DELETE /v1/workspaces/{ws}/members/{user}`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn remove_member(
        &self,
        caller: Principal,
        id: String,
        user: String,
    ) -> Result<(), Error> {
        self.write(move |session, _| workspaces::remove_member(session, &caller, &id, &user))
            .await
    }

    /// `POST /v1/tokens`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn create_token(&self, caller: Principal, body: Value) -> Result<NewToken, Error> {
        self.write(move |session, cx| tokens::create(session, cx, &caller, &body))
            .await
    }

    /// `GET /v1/tokens`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn tokens(
        &self,
        caller: Principal,
        page: PageRequest,
    ) -> Result<Listing<Token>, Error> {
        self.read(move |session, _| tokens::list(session, &caller, &page))
            .await
    }

    /// `DELETE /v1/tokens/{id}`.
    ///
    /// # Errors
    /// As [`Self::create_organization`].
    pub async fn revoke_token(&self, caller: Principal, id: String) -> Result<(), Error> {
        self.write(move |session, cx| tokens::revoke(session, cx.now, &caller, &id))
            .await
    }
}

//! The stable codes of failures (Work §2–7, §11): one table for answers, runs and documentation.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

macro_rules! codes {
    ($($name:ident $text:literal $title:literal $detail:literal;)*) => {
        /// A stable code: dotted lower case, never renamed. The detail says what happened and what to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs)]
        pub enum Code { $($name),* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its dotted text.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// The code with this text.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$name),)* _ => None }
            }

            /// A title of few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }

            /// What happened and what to do about it.
            #[must_use]
            pub const fn detail(self) -> &'static str {
                match self { $(Self::$name => $detail),* }
            }
        }
    };
}

codes! {
    RequestInvalid "request.invalid" "Invalid request"
        "The request breaks rules; errors says which, and where. Do not send it again unchanged.";
    AuthMissing "auth.missing" "Not authenticated"
        "This needs a token, as Authorization: Bearer.";
    AuthInvalid "auth.invalid" "Not authenticated"
        "The bearer token is not one of this server's, or its time is over; replace it.";
    AuthRevoked "auth.revoked" "Token revoked"
        "The bearer token was revoked; replace it.";
    PermissionScope "permission.scope" "Token lacks a scope"
        "The token does not have the scope for this; use a token that does.";
    PermissionRole "permission.role" "Role does not allow this"
        "The user's role in the workspace, or state, does not allow this; an admin or owner of the workspace can.";
    PermissionVisibility "permission.visibility" "Not shared with you"
        "This is private to others of the organization; ask its owner to share it.";
    NotFound "resource.not_found" "Not found"
        "There is nothing here with this id; check the id and the organization.";
    KeyMissing "idempotency.key_missing" "Idempotency-Key is missing"
        "Send an Idempotency-Key of 1 to 255 visible ASCII characters.";
    KeyReused "idempotency.key_reused" "Idempotency-Key used for another request"
        "The key has named another request before; use a new key for a new request, the same request for the same key.";
    StateConflict "state.conflict" "Conflict with the present state"
        "The request does not fit the state that things are in; read them again.";
    QueueFull "queue.full" "Queue is full"
        "As many runs wait in this workspace as its queue limit allows; wait as long as Retry-After says.";
    RateLimited "rate.limited" "Too many requests"
        "More requests came than the server is set to take; wait as long as Retry-After says.";
    BudgetStopped "budget.stopped" "Spending is stopped"
        "An operator has stopped all spending; it goes on when they allow it, not by waiting.";
    DailyCost "daily.cost_cents" "Daily limit of the workspace"
        "The workspace has spent what its owner allows for a day; it resets at midnight UTC.";
    DailyAllowance "daily.allowance_cents" "Daily free allowance"
        "The free allowance of the workspace's owner is used up for today, over all their workspaces; it resets at midnight UTC.";
    DailyPlatform "daily.platform_cents" "Daily limit of the platform"
        "The platform's free usage for today is used up; it resets at midnight UTC.";
    NeedsApproval "account.needs_approval" "Account needs approval"
        "The workspace's owner joined by an invitation and shares no workspace with who invited them, so has no free usage until an operator approves the account.";
    DequeueAgentPaused "dequeue.agent_paused" "Agent was paused meanwhile"
        "The agent was paused while the run waited; start again once it is resumed.";
    DequeueActorNotMember "dequeue.actor_not_member" "Starter left the workspace"
        "Who started the run left the workspace while it waited.";
    DequeueActorUnavailable "dequeue.actor_unavailable" "Starter can no longer start work"
        "Who started the run is still a member but was deactivated, locked, deleted or made a viewer while it waited.";
    DequeueTriggerDisabled "dequeue.trigger_disabled" "Trigger was turned off meanwhile"
        "The schedule or webhook that started the run was turned off while it waited.";
    DequeueThreadClosed "dequeue.thread_closed" "Thread was closed meanwhile"
        "The thread was closed while the run waited.";
    DequeueThreadPaused "dequeue.thread_paused" "Thread was paused meanwhile"
        "The thread was paused while the run waited; its request waits and is run anew when the thread is resumed.";
    DequeueTurnRequesterUnavailable "dequeue.turn_requester_unavailable" "Requester can no longer start work"
        "Who sent the request that this turn answers can no longer start work in the workspace.";
    ProviderRateLimited "provider.rate_limited" "Provider limits requests"
        "The model provider limits requests; the run goes on by itself at resets_at, or has failed after five times in a row or past its time limit.";
    ProviderFailed "provider.failed" "Provider failed"
        "The model provider failed or could not be reached after several attempts; start again later.";
    ProviderRejected "provider.rejected" "Provider refused the request"
        "The model provider refused the request; check the agent's model and settings.";
    VerificationFailed "verification.failed" "Output breaks the contract"
        "The output does not fit the agent's output contract; mend the agent or the contract before starting again.";
    SizeMismatch "artifact.size_mismatch" "Size differs"
        "The bytes that came are not as many as X-Upload-Size says; mend the header or the body and use a new key.";
    ChecksumMismatch "artifact.checksum_mismatch" "Checksum differs"
        "The bytes that came do not have the SHA-256 that X-Content-SHA256 says; mend the header or the body and use a new key.";
    RequestTooLarge "request.too_large" "Request too large"
        "The upload is larger than this server takes; make it smaller and use a new key.";
    RequestTimeout "request.timeout" "Request took too long"
        "The upload stalled or came too slowly and was recorded as failed; send it again with a new key.";
    RequestBroken "request.broken" "Broken request"
        "The connection was lost before the upload was complete, so it was recorded as failed; send it again with a new key.";
    UploadActive "artifact.upload_active" "Upload is still active"
        "This upload is still being received; wait as long as Retry-After says, then send the same request with the same key.";
    UploadFailed "artifact.upload_failed" "Upload has failed"
        "This upload was recorded as failed, so nothing of it is kept; send it again with a new key.";
    ArtifactDeleted "artifact.deleted" "Artifact was deleted"
        "The artifact was deleted and its bytes are gone; to have it again, upload it with a new key.";
    MetadataMismatch "artifact.metadata_mismatch" "Key names another upload"
        "The key has named an upload of another filename, description, size or checksum; use a new key for it and never change a request under its key.";
    UploadCapacity "artifact.capacity" "Too many uploads at once"
        "The organization has as many uploads under way as it may; wait as long as Retry-After says.";
    StorageQuota "artifact.storage_quota" "Storage is used up"
        "The organization's artifacts would take more room than it has; delete some, or ask the operator for more.";
    RunTimeLimit "run.time_limit" "Time limit reached"
        "The run took longer than the agent's time limit, pauses included.";
    RunCrashed "run.crashed" "Run crashed"
        "The run's worker ended several times without finishing it; see the server's log.";
    ServerError "server.error" "Internal error"
        "The server failed; its log names the cause under the request id.";
    ServerUnavailable "server.unavailable" "Server is busy"
        "The server cannot do this now; wait as long as Retry-After says, then send it again.";
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_text(&text).ok_or_else(|| D::Error::custom("must be a known code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_dotted_lower_case_and_found_by_their_text() {
        for code in Code::ALL {
            let text = code.text();
            assert_eq!(Code::from_text(text), Some(*code));
            assert_eq!(text.split('.').count(), 2, "{text}");
            assert!(
                text.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || b"._".contains(&byte))
            );
        }
        assert_eq!(Code::from_text("no.such"), None);
    }
}

//! The rules of tenants, people, keys and the tools they write, without HTTP and without SQL.

mod answer_link;
mod approval_rules;
mod approvals;
mod attempts;
mod audit;
mod authored;
mod calls;
mod events;
mod file_type;
mod grants;
mod guard;
mod idempotency;
mod identity;
mod inbox;
mod jobs;
mod key_rotation;
mod keys;
mod length_of_time;
mod logins;
mod master_key;
mod media;
mod metrics;
mod notices;
mod oauth;
mod oidc;
mod password;
mod people;
mod permission;
mod plain_text;
mod platform;
mod quota_cache;
mod quotas;
mod random;
mod receipts;
mod roles;
mod rules;
mod runs;
mod secrets;
mod servers;
mod sessions;
mod sign_in;
mod submit_token;
mod tenant_settings;
mod tenant_web;
mod tenants;
mod workspaces;

pub use answer_link::{ChosenAnswer, LinkHolder};
pub use approval_rules::{ApprovalRules, Approvers, OnExpiry, WrittenApprovalRule};
pub use approvals::{AgreementRecord, QuestionFilter, QuestionPage, alike_of, digest_of};
pub use audit::{Actor, ActorView, AuditAction, AuditCheck, AuditFilter, AuditView, acting_as, still_acting};
pub use authored::{
    AuthoredTool, AuthoredTools, ExecutionType, PatchedTools, SavedContent, SavedTool, ToolOrigin, ToolOverride,
    ToolStanding, VersionView,
};
pub use calls::{CallFilter, CallOrigin, CallRow};
pub use events::{EventStream, EventsOf, JournalEvent, StreamItem, ToldEvent};
pub use grants::{GrantFilter, GrantRow};
pub use guard::TenantGuard;
pub use haft_store::ChannelRecord;
pub use identity::{CallerIdentity, Credential};
pub use inbox::{InboxItem, InboxItemId, InboxOrder, InboxPage, InboxState};
pub use jobs::{JobEnd, JobLoop, JobRunner};
pub use key_rotation::{KeyRotation, rotate_master_key};
pub use keys::{KeyView, KeyWish, MadeKey};
pub use length_of_time::length_of_time;
pub use logins::{LoginAt, LoginHolder, LoginPerson};
pub use master_key::MasterKey;
pub use media::{MEDIA_PIECE, MediaLimits, MediaRecord, MediaSignature, MediaUpload, MediaView, is_safe_to_show};
pub use metrics::ToolMetrics;
pub use notices::{
    MailServer, MailTls, MailWish, Mailer, NoticeChannel, NoticeKind, NoticeTimes, NoticeWebhook, Notices,
    PersonNotices, TenantNotices,
};
pub use oauth::{
    ClientDescription, CodeExchange, ConsentPlace, ConsentView, ConsentWish, DEVICE_GRANT, DeviceView, DeviceWish,
    GivenDeviceCode, GivenTokens, OAuthClient, OAuthError, resource_parts, with_answer,
};
pub use oidc::{OidcAnswer, OidcJoin, OidcProvider, OidcSignIn, OidcWish};
pub use people::{AddedPerson, NewPerson, PersonChange, PersonView};
pub use permission::Permission;
pub use plain_text::{plain_line, plain_lines};
pub use platform::{LatencyCounts, LatencyHistogram, Platform};
pub use quotas::{QuotaKind, QuotaView};
pub use receipts::{Receipt, ReceiptAnswer, ReceiptKey};
pub use roles::{KeyScope, Role, RoleView};
pub use rules::{TenantRules, read_rules};
pub use runs::{RunSource, ToolRun};
pub use secrets::SecretView;
pub use servers::{
    HttpServerFields, LoginFor, PinsChange, ResolvedServer, ServerDefinition, ServerLogin, ServerReach, ServerRecord,
    StdioCommand,
};
pub use sessions::{SessionCounts, SessionStanding, SessionView};
pub use sign_in::{PasswordChange, PasswordSignIn, SignInRecord, SignInView, SignInsLast, SignedIn};
pub use submit_token::SubmitToken;
pub use tenant_settings::{TENANT_SETTINGS, TenantRetention, TenantSettings, tenant_settings};
pub use tenant_web::TenantWeb;
pub use tenants::TenantView;
pub use workspaces::{WorkspaceFolder, WorkspaceSummary, is_node_name};

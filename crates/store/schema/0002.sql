-- What the gateway keeps. It only adds, so that a program of the first version goes on beside it.

alter table open_calls add column session {text};
create index open_calls_of_session on open_calls (tenant, session, id) where session is not null;
alter table calls add column session {text};
create index calls_of_session on calls (tenant, session, id) where session is not null;

-- A question is waited for while its caller's request is held: the answer goes to whoever waits there, and otherwise to the
-- caller's inbox.
alter table questions add column kind {text} not null default 'approval';
alter table questions add column waited {int} not null default 0;
-- When people are to be told of it next; empty when nobody is.
alter table questions add column notice_at {int};
create index questions_to_tell on questions (notice_at) where open = 1 and notice_at is not null;

alter table grants add column given_by {text};

-- Tenants. The version changes with everything that decides which tools and workspaces a tenant has, so that whoever keeps
-- them at hand knows when to look again.
create table tenants (
    id {text} primary key,
    slug {text} not null,
    name {text} not null,
    version {int} not null,
    created_at {int} not null
) {small_table};
create unique index tenants_by_slug on tenants (slug);

-- People, who may belong to several tenants. A password is kept as its argon2id hash.
create table people (
    id {text} primary key,
    email {text} not null,
    name {text} not null,
    password {text},
    created_at {int} not null
) {small_table};
create unique index people_by_email on people (email);

create table memberships (
    tenant {text} not null,
    person {text} not null,
    role {text} not null,
    created_at {int} not null,
    notices {text},
    primary key (tenant, person)
) {small_table};
create index memberships_of_person on memberships (person, tenant);

-- A sign-in and a link are found by the hash of what their person holds. A link is deleted when it is used.
create table sign_ins (
    id {text} primary key,
    person {text} not null,
    tenant {text} not null,
    csrf {text} not null,
    process {text},
    created_at {int} not null,
    expires_at {int} not null
) {small_table};
create index sign_ins_of_person on sign_ins (person, id);
create index sign_ins_by_end on sign_ins (expires_at);

create table sign_in_links (
    id {text} primary key,
    person {text} not null,
    tenant {text} not null,
    expires_at {int} not null
) {small_table};
create index sign_in_links_by_end on sign_in_links (expires_at);

-- Keys of programs; the secret is kept as its hash. Who made one is empty when the operator did. A secret that was replaced
-- may count for a while longer.
create table api_keys (
    id {text} primary key,
    tenant {text} not null,
    name {text} not null,
    secret {text} not null,
    scopes {text} not null,
    workspace {text},
    made_by {text},
    created_at {int} not null,
    expires_at {int},
    last_used_at {int},
    old_secret {text},
    old_until {int}
) {small_table};
create index api_keys_of_tenant on api_keys (tenant, id);

-- Folders to work in: managed beside the data folder, or a folder of the host. A workspace lives on one node.
create table workspaces (
    tenant {text} not null,
    id {text} not null,
    name {text} not null,
    folder {text},
    node {text},
    created_at {int} not null,
    primary key (tenant, id)
) {small_table};
create unique index workspaces_by_name on workspaces (tenant, name);

-- Tools as data, and what a tenant changes of the tools in code. The nil tenant stands for all of them.
create table tools (
    tenant {text} not null,
    slug {text} not null,
    kind {text} not null,
    enabled {int} not null,
    version {int} not null,
    body {text} not null,
    saved_by {text} not null,
    saved_at {int} not null,
    primary key (tenant, slug, kind)
) {small_table};

-- Every save is a version. What it holds lies once under its hash, however often it is saved.
create table tool_versions (
    tenant {text} not null,
    slug {text} not null,
    kind {text} not null,
    version {int} not null,
    hash {text} not null,
    saved_by {text} not null,
    saved_at {int} not null,
    primary key (tenant, slug, kind, version)
) {small_table};

create table contents (
    tenant {text} not null,
    hash {text} not null,
    body {text} not null,
    primary key (tenant, hash)
) {table};

-- Secrets of a tenant, sealed by the master key, each with the hosts that it may be sent to.
create table secrets (
    tenant {text} not null,
    name {text} not null,
    hosts {text} not null,
    sealed {bytes} not null,
    created_at {int} not null,
    last_used_at {int},
    primary key (tenant, name)
) {small_table};

-- Upstream MCP servers of a tenant, and what is known of their tools. The revision changes with every write, and begins with
-- the time when the server was added: no number comes twice, also when one is removed and added again.
create table mcp_servers (
    tenant {text} not null,
    name {text} not null,
    revision {int} not null,
    saved_by {text} not null,
    created_at {int} not null,
    body {text} not null,
    pins {text},
    primary key (tenant, name)
) {table};

-- A request that was sent twice with the same key starts one call. The owner is the process that was about to start it.
create table idempotency_keys (
    tenant {text} not null,
    caller {text} not null,
    name {text} not null,
    digest {text} not null,
    call {text} not null,
    owner {text} not null,
    created_at {int} not null,
    primary key (tenant, caller, name)
) {small_table};
create index idempotency_keys_by_age on idempotency_keys (created_at);

-- The threads that calls belong to, each of whoever began it.
create table sessions (
    tenant {text} not null,
    id {text} not null,
    title {text} not null,
    caller {text} not null,
    caller_name {text} not null,
    created_at {int} not null,
    primary key (tenant, id)
) {small_table};
create index sessions_of_caller on sessions (tenant, caller, id);

-- What reaches a caller after nobody waited for it any more.
create table inbox_items (
    tenant {text} not null,
    id {text} not null,
    caller {text} not null,
    kind {text} not null,
    call {text},
    body {text} not null,
    created_at {int} not null,
    consumed_at {int},
    primary key (tenant, id)
) {table};
create index inbox_items_open on inbox_items (tenant, caller, id) where consumed_at is null;
create index inbox_items_of_caller on inbox_items (tenant, caller, id);

-- A result that came after its call had timed out. The call's own row never changes.
create table late_results (
    tenant {text} not null,
    call {text} not null,
    body {text} not null,
    given_by {text} not null,
    given_at {int} not null,
    primary key (tenant, call)
) {table};

-- What was uploaded, in pieces of 1 MiB. Until the last piece is there it is not ready, and nobody sees it.
create table media (
    tenant {text} not null,
    id {text} not null,
    name {text} not null,
    mime {text} not null,
    size {int} not null,
    sha256 {text} not null,
    ready {int} not null,
    made_by {text} not null,
    created_at {int} not null,
    primary key (tenant, id)
) {table};
create unique index media_by_id on media (id);
create index media_unfinished on media (created_at) where ready = 0;

create table media_pieces (
    tenant {text} not null,
    media {text} not null,
    piece {int} not null,
    body {bytes} not null,
    primary key (tenant, media, piece)
) {table};

-- Work that goes on by itself. Whoever holds the lease does it; when the lease runs out, another node may. A job is due when
-- somebody has to look at it next, which is the end of the lease while a node has it. The node is '' where any may do it.
create table jobs (
    tenant {text} not null,
    id {text} not null,
    kind {text} not null,
    name {text} not null,
    payload {text} not null,
    due {int} not null,
    node {text} not null,
    owner {text} not null,
    lease_until {int} not null,
    attempts {int} not null,
    primary key (tenant, id)
) {small_table};
create index jobs_due on jobs (due);
create unique index jobs_by_name on jobs (tenant, kind, name);

create table tenant_settings (
    tenant {text} not null,
    name {text} not null,
    value {text} not null,
    primary key (tenant, name)
) {small_table};

-- Programs that registered themselves to be let in by OAuth. One that nobody let in is forgotten after a day.
create table oauth_clients (
    id {text} primary key,
    name {text} not null,
    redirect_uris {text} not null,
    created_at {int} not null,
    used_at {int}
) {small_table};
create index oauth_clients_unused on oauth_clients (created_at) where used_at is null;

-- The yes of a person to a program. Every code and token hangs on it and goes with it.
create table oauth_consents (
    id {text} primary key,
    tenant {text} not null,
    workspace {text},
    person {text} not null,
    client {text} not null,
    client_name {text} not null,
    scopes {text} not null,
    resource {text} not null,
    created_at {int} not null,
    expires_at {int} not null
) {small_table};
create index oauth_consents_of_person on oauth_consents (tenant, person, id);
create index oauth_consents_by_end on oauth_consents (expires_at);

-- Codes and tokens, found by the hash of what the program holds. A code and a token to refresh with work once; both are kept
-- until their time is over, so that a second use is noticed.
create table oauth_tokens (
    id {text} primary key,
    consent {text} not null,
    kind {text} not null,
    redirect_uri {text},
    challenge {text},
    expires_at {int} not null,
    used_at {int}
) {small_table};
create index oauth_tokens_of_consent on oauth_tokens (consent, id);
create index oauth_tokens_by_end on oauth_tokens (expires_at);

-- Programs on devices without a browser, each while it waits for somebody to say yes. It is found by the hash of what the
-- program holds, and by a hash with the master key of the short code that a person types. After the yes the program's code is
-- among the tokens.
create table oauth_devices (
    id {text} primary key,
    user_code {text} not null,
    client {text} not null,
    scopes {text} not null,
    resource {text} not null,
    asked_from {text},
    state {text} not null,
    created_at {int} not null,
    expires_at {int} not null,
    polled_at {int}
) {small_table};
create unique index oauth_devices_by_user_code on oauth_devices (user_code);
create index oauth_devices_by_end on oauth_devices (expires_at);

-- Browsers that were sent to an OpenID Connect provider and have not come back. It is found by the hash of the state, counts
-- only in the browser that has its cookie, and is deleted when it is used.
create table oidc_requests (
    id {text} primary key,
    provider {text} not null,
    browser {text} not null,
    tenant_slug {text},
    page {text} not null,
    expires_at {int} not null
) {small_table};
create index oidc_requests_by_end on oidc_requests (expires_at);

-- Which account of which provider is whom: one of each provider for a person.
create table oidc_accounts (
    issuer {text} not null,
    subject {text} not null,
    person {text} not null,
    created_at {int} not null,
    primary key (issuer, subject)
) {small_table};
create unique index oidc_accounts_of_person on oidc_accounts (person, issuer);

-- Who has agreed to what a question asks, by approval rules of this version: each person once.
create table agreements (
    tenant {text} not null,
    call {text} not null,
    number {int} not null,
    person {text} not null,
    given_by {text} not null,
    source {text} not null,
    answer {text} not null,
    digest {text} not null,
    rules_version {int} not null,
    at {int} not null,
    primary key (tenant, call, number, person)
) {small_table};

-- Who is still to be told of which question, by mail or by the tenant's webhook (which has no person). What is sent together
-- has one batch, so that it is sent together again when nobody knows whether it went.
create table notices (
    tenant {text} not null,
    channel {text} not null,
    person {text} not null,
    call {text} not null,
    number {int} not null,
    escalated {int} not null,
    tries {int} not null,
    batch {text},
    primary key (tenant, channel, person, call, number)
) {small_table};

-- How a channel of a tenant went last.
create table notice_channels (
    tenant {text} not null,
    channel {text} not null,
    sent_at {int},
    failed_at {int},
    failure {text},
    given_up {int} not null,
    primary key (tenant, channel)
) {small_table};

-- What somebody has chosen on a page that they were sent a link to, until they confirm it: one choice for each person and
-- question, found by the hash of what only that page holds.
create table link_choices (
    tenant {text} not null,
    call {text} not null,
    number {int} not null,
    person {text} not null,
    nonce {text} not null,
    body {text} not null,
    expires_at {int} not null,
    primary key (tenant, call, number, person)
) {small_table};
create index link_choices_by_end on link_choices (expires_at);

-- The audit log: one row for each administrative act, in the transaction of the act. The rows of a tenant are a chain, each
-- with the hash of the one before. They stay when their tenant is removed.
create table audit (
    tenant {text} not null,
    seq {int} not null,
    at {int} not null,
    action {text} not null,
    subject {text} not null,
    actor {text} not null,
    actor_name {text} not null,
    source {text} not null,
    via {text},
    address {text},
    detail {text} not null,
    previous {text} not null,
    hash {text} not null,
    primary key (tenant, seq)
) {table};
create index audit_by_action on audit (tenant, action, seq);
create index audit_by_actor on audit (tenant, actor, seq);
create index audit_by_subject on audit (tenant, subject, seq);
create index audit_by_time on audit (tenant, at);

-- The most that a tenant may have or use of something, as the operator says.
create table quotas (
    tenant {text} not null,
    name {text} not null,
    most {int} not null,
    primary key (tenant, name)
) {small_table};

-- How much of something a tenant has used in a period that has a quota, such as calls on a day since the epoch.
create table usage (
    tenant {text} not null,
    name {text} not null,
    period {int} not null,
    used {int} not null,
    primary key (tenant, name, period)
) {small_table};

-- Logins at upstream MCP servers, each of one person or of everybody in a tenant, sealed by the master key. Whoever has the
-- turn refreshes the tokens: one at a time, on whichever node. The revision changes with every write, and begins with the time.
create table upstream_logins (
    tenant {text} not null,
    server {text} not null,
    holder {text} not null,
    revision {int} not null,
    sealed {bytes} not null,
    turn_until {int} not null,
    primary key (tenant, server, holder)
) {small_table};

-- Logins that somebody has begun, found by the hash of what the authorization server sends back. Each is used once.
create table upstream_login_attempts (
    id {text} primary key,
    tenant {text} not null,
    server {text} not null,
    holder {text} not null,
    person {text} not null,
    sign_in {text} not null,
    sealed {bytes} not null,
    expires_at {int} not null
) {small_table};
create index upstream_login_attempts_by_end on upstream_login_attempts (expires_at);
create index upstream_login_attempts_of_server on upstream_login_attempts (tenant, server, holder);

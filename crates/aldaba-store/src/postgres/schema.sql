-- The tables of the schema as PostgreSQL has them. What columns mean is said in the steps of SQLite (`sqlite/schema/`), and a test
-- (`tests/postgres.rs`) compares the two. Text is sorted by its bytes, as SQLite does. An index ends with the primary key where
-- SQLite appends that by itself.

CREATE TABLE application (
    id            BYTEA            NOT NULL,
    org           BYTEA            NOT NULL,
    uid           TEXT COLLATE "C",
    name          TEXT COLLATE "C" NOT NULL,
    throttle_rate BIGINT,
    version       BIGINT           NOT NULL,
    deleted       BIGINT           NOT NULL DEFAULT 0,
    created_at    BIGINT           NOT NULL,
    updated_at    BIGINT           NOT NULL,
    metadata      TEXT COLLATE "C" NOT NULL,
    alert_email   TEXT COLLATE "C",
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX application_uid ON application (org, uid) WHERE uid IS NOT NULL;
CREATE INDEX application_org ON application (org, id);
CREATE INDEX application_deleted ON application (id) WHERE deleted = 1;

CREATE TABLE endpoint (
    id                        BYTEA            NOT NULL,
    app                       BYTEA            NOT NULL,
    org                       BYTEA            NOT NULL,
    uid                       TEXT COLLATE "C",
    deleted                   BIGINT           NOT NULL DEFAULT 0,
    disabled                  BIGINT           NOT NULL,
    version                   BIGINT           NOT NULL,
    throttle_rate             BIGINT,
    created_at                BIGINT           NOT NULL,
    updated_at                BIGINT           NOT NULL,
    health_status             BIGINT           NOT NULL,
    health_failure_count      BIGINT           NOT NULL,
    health_failing_since      BIGINT,
    health_changed_at         BIGINT,
    health_next_probe_at      BIGINT,
    health_probe_gap          BIGINT           NOT NULL,
    health_quiet_until        BIGINT,
    policy                    TEXT COLLATE "C" NOT NULL,
    profile                   TEXT COLLATE "C",
    url                       TEXT COLLATE "C" NOT NULL,
    description               TEXT COLLATE "C" NOT NULL,
    event_types               TEXT COLLATE "C" NOT NULL,
    channels                  TEXT COLLATE "C" NOT NULL,
    metadata                  TEXT COLLATE "C" NOT NULL,
    sealed                    BYTEA            NOT NULL,
    http2                     BIGINT           NOT NULL DEFAULT 0,
    ordering                  BIGINT           NOT NULL DEFAULT 0,
    when_disabled             BIGINT           NOT NULL DEFAULT 0,
    health_released_at        BIGINT,
    health_epoch              BIGINT           NOT NULL DEFAULT 0,
    error_at                  BIGINT,
    error_status              BIGINT,
    error_text                TEXT COLLATE "C",
    filter                    TEXT COLLATE "C",
    direct                    BIGINT           NOT NULL DEFAULT 0,
    health_released_by_person BIGINT           NOT NULL DEFAULT 0,
    name                      TEXT COLLATE "C",
    owner_email               TEXT COLLATE "C",
    certificate_expires_at    BIGINT,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX endpoint_uid ON endpoint (app, uid) WHERE uid IS NOT NULL;
CREATE INDEX endpoint_app ON endpoint (app, id) WHERE deleted = 0 AND direct = 0;
CREATE INDEX endpoint_walk ON endpoint (app, id, org, policy, deleted, direct);
CREATE INDEX endpoint_policy ON endpoint (org, policy, app) WHERE deleted = 0;
CREATE INDEX endpoint_profile ON endpoint (org, profile, app) WHERE deleted = 0 AND profile IS NOT NULL;
CREATE INDEX endpoint_given_up ON endpoint (org) WHERE health_status >= 1 AND health_status <= 2 AND deleted = 0;
CREATE INDEX endpoint_url ON endpoint (url, org, app) WHERE deleted = 0;
CREATE INDEX endpoint_certificate ON endpoint (org, certificate_expires_at)
    WHERE certificate_expires_at IS NOT NULL AND deleted = 0 AND disabled = 0;

CREATE TABLE message (
    app            BYTEA            NOT NULL,
    id             BYTEA            NOT NULL,
    created_at     BIGINT           NOT NULL,
    event_type     TEXT COLLATE "C" NOT NULL,
    channels       TEXT COLLATE "C" NOT NULL,
    event_id       TEXT COLLATE "C",
    payload        BYTEA            NOT NULL,
    tags           TEXT COLLATE "C" NOT NULL DEFAULT '',
    version        TEXT COLLATE "C",
    deliver_at     BIGINT,
    expunged       BIGINT           NOT NULL DEFAULT 0,
    only_for       BYTEA,
    headers        TEXT COLLATE "C" NOT NULL DEFAULT '',
    sealed_headers BYTEA,
    job            TEXT COLLATE "C",
    payload_until  BIGINT
);
CREATE UNIQUE INDEX message_app ON message (app, id);
CREATE INDEX message_job ON message (app, job, id) WHERE job IS NOT NULL;
CREATE INDEX message_payload_until ON message (payload_until, app, id) WHERE payload_until IS NOT NULL AND expunged = 0;

CREATE TABLE unique_key (
    owner      BYTEA  NOT NULL,
    kind       BIGINT NOT NULL,
    key        BYTEA  NOT NULL,
    resource   BYTEA  NOT NULL,
    expires_at BIGINT,
    at_least   BIGINT,
    PRIMARY KEY (owner, kind, key)
);

CREATE TABLE delivery (
    seq         BIGINT NOT NULL,
    endpoint    BYTEA  NOT NULL,
    message     BYTEA  NOT NULL,
    state       BIGINT NOT NULL DEFAULT 0,
    due_at      BIGINT NOT NULL,
    attempts    BIGINT NOT NULL DEFAULT 0,
    clock_start BIGINT NOT NULL,
    settled_at  BIGINT,
    reason      BIGINT,
    ordered     BIGINT NOT NULL DEFAULT 0,
    dispatched  BIGINT NOT NULL DEFAULT 0,
    app         BYTEA,
    replayed    BIGINT NOT NULL DEFAULT 0,
    discarded   BIGINT NOT NULL DEFAULT 0,
    place       BIGINT,
    retries     BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (seq)
);
CREATE INDEX delivery_lane ON delivery (endpoint, due_at, seq) WHERE state = 0;
CREATE INDEX delivery_due ON delivery (due_at, seq, endpoint) WHERE state = 0;
CREATE INDEX delivery_message ON delivery (message, seq);
CREATE INDEX delivery_delivered ON delivery (endpoint, settled_at, seq) WHERE state = 1;
CREATE INDEX delivery_dead ON delivery (endpoint, settled_at, seq, state) WHERE state >= 2;
CREATE INDEX delivery_dispatched ON delivery (app, dispatched, state, message, seq) WHERE dispatched > 0;
CREATE INDEX delivery_dispatched_due ON delivery (app, due_at, seq) WHERE dispatched > 0 AND state = 0;
CREATE INDEX delivery_tried ON delivery (endpoint, clock_start, seq) WHERE state = 0 AND clock_start < due_at;
CREATE INDEX delivery_discarded ON delivery (endpoint, settled_at, seq) WHERE state = 2 AND discarded = 1;
CREATE INDEX delivery_in_order ON delivery (endpoint, coalesce(place, seq), seq) WHERE state = 0 AND ordered = 1;
CREATE INDEX delivery_takes_place ON delivery (due_at, seq) WHERE state = 0 AND ordered = 2;

CREATE TABLE attempt (
    id          BYTEA            NOT NULL,
    seq         BIGINT           NOT NULL,
    endpoint    BYTEA            NOT NULL,
    message     BYTEA            NOT NULL,
    started_at  BIGINT           NOT NULL,
    duration    BIGINT           NOT NULL,
    status_code BIGINT,
    failure     BIGINT,
    made_by     BIGINT           NOT NULL,
    success     BIGINT           NOT NULL,
    error       TEXT COLLATE "C" NOT NULL,
    response    BYTEA            NOT NULL
);
CREATE UNIQUE INDEX attempt_endpoint ON attempt (endpoint, id);
CREATE INDEX attempt_message ON attempt (message, seq, id);
CREATE INDEX attempt_unusual ON attempt (endpoint, id)
    WHERE success = 0 OR status_code < 200 OR status_code > 299;

CREATE TABLE endpoint_minute (
    endpoint     BYTEA  NOT NULL,
    minute       BIGINT NOT NULL,
    attempts     BIGINT NOT NULL,
    successes    BIGINT NOT NULL,
    retries      BIGINT NOT NULL,
    delivered    BIGINT NOT NULL,
    dead         BIGINT NOT NULL,
    within_5     BIGINT NOT NULL,
    within_10    BIGINT NOT NULL,
    within_25    BIGINT NOT NULL,
    within_50    BIGINT NOT NULL,
    within_100   BIGINT NOT NULL,
    within_250   BIGINT NOT NULL,
    within_500   BIGINT NOT NULL,
    within_1000  BIGINT NOT NULL,
    within_2500  BIGINT NOT NULL,
    within_5000  BIGINT NOT NULL,
    within_10000 BIGINT NOT NULL,
    within_30000 BIGINT NOT NULL,
    slower       BIGINT NOT NULL,
    no_answer    BIGINT NOT NULL DEFAULT 0,
    status_1xx   BIGINT NOT NULL DEFAULT 0,
    status_2xx   BIGINT NOT NULL DEFAULT 0,
    status_3xx   BIGINT NOT NULL DEFAULT 0,
    status_4xx   BIGINT NOT NULL DEFAULT 0,
    status_5xx   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (endpoint, minute)
);

CREATE TABLE total (
    name  TEXT COLLATE "C" NOT NULL,
    value BIGINT           NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE organization_minute (
    org                   BYTEA   NOT NULL,
    minute                BIGINT  NOT NULL,
    accepted              BIGINT  NOT NULL,
    deliveries            BIGINT  NOT NULL,
    success               BIGINT  NOT NULL,
    retry                 BIGINT  NOT NULL,
    failed                BIGINT  NOT NULL,
    retries               BIGINT  NOT NULL,
    delivered             BIGINT  NOT NULL,
    settled_after_retry   BIGINT  NOT NULL,
    settled_retries       BIGINT  NOT NULL,
    inbound_received      BIGINT  NOT NULL,
    inbound_duplicates    BIGINT  NOT NULL,
    attempt_millis        BIGINT  NOT NULL,
    latency_millis        BIGINT  NOT NULL,
    dead_exhausted        BIGINT  NOT NULL,
    dead_rejected         BIGINT  NOT NULL,
    dead_stop_date        BIGINT  NOT NULL,
    dead_endpoint_gone    BIGINT  NOT NULL,
    dead_target_forbidden BIGINT  NOT NULL,
    dead_cancelled        BIGINT  NOT NULL,
    dead_expired          BIGINT  NOT NULL,
    dead_payload_deleted  BIGINT  NOT NULL,
    attempt_5             BIGINT  NOT NULL,
    attempt_10            BIGINT  NOT NULL,
    attempt_25            BIGINT  NOT NULL,
    attempt_50            BIGINT  NOT NULL,
    attempt_100           BIGINT  NOT NULL,
    attempt_250           BIGINT  NOT NULL,
    attempt_500           BIGINT  NOT NULL,
    attempt_1000          BIGINT  NOT NULL,
    attempt_2500          BIGINT  NOT NULL,
    attempt_5000          BIGINT  NOT NULL,
    attempt_10000         BIGINT  NOT NULL,
    attempt_15000         BIGINT  NOT NULL,
    attempt_20000         BIGINT  NOT NULL,
    attempt_25000         BIGINT  NOT NULL,
    attempt_30000         BIGINT  NOT NULL,
    attempt_slower        BIGINT  NOT NULL,
    latency_10            BIGINT  NOT NULL,
    latency_50            BIGINT  NOT NULL,
    latency_100           BIGINT  NOT NULL,
    latency_250           BIGINT  NOT NULL,
    latency_500           BIGINT  NOT NULL,
    latency_1000          BIGINT  NOT NULL,
    latency_2500          BIGINT  NOT NULL,
    latency_5000          BIGINT  NOT NULL,
    latency_10000         BIGINT  NOT NULL,
    latency_30000         BIGINT  NOT NULL,
    latency_60000         BIGINT  NOT NULL,
    latency_300000        BIGINT  NOT NULL,
    latency_900000        BIGINT  NOT NULL,
    latency_3600000       BIGINT  NOT NULL,
    latency_21600000      BIGINT  NOT NULL,
    latency_86400000      BIGINT  NOT NULL,
    latency_slower        BIGINT  NOT NULL,
    PRIMARY KEY (org, minute)
);
CREATE INDEX organization_minute_time ON organization_minute (minute, org);

CREATE TABLE organization_hour (
    org                   BYTEA   NOT NULL,
    hour                  BIGINT  NOT NULL,
    accepted              BIGINT  NOT NULL,
    deliveries            BIGINT  NOT NULL,
    success               BIGINT  NOT NULL,
    retry                 BIGINT  NOT NULL,
    failed                BIGINT  NOT NULL,
    retries               BIGINT  NOT NULL,
    delivered             BIGINT  NOT NULL,
    settled_after_retry   BIGINT  NOT NULL,
    settled_retries       BIGINT  NOT NULL,
    inbound_received      BIGINT  NOT NULL,
    inbound_duplicates    BIGINT  NOT NULL,
    attempt_millis        BIGINT  NOT NULL,
    latency_millis        BIGINT  NOT NULL,
    dead_exhausted        BIGINT  NOT NULL,
    dead_rejected         BIGINT  NOT NULL,
    dead_stop_date        BIGINT  NOT NULL,
    dead_endpoint_gone    BIGINT  NOT NULL,
    dead_target_forbidden BIGINT  NOT NULL,
    dead_cancelled        BIGINT  NOT NULL,
    dead_expired          BIGINT  NOT NULL,
    dead_payload_deleted  BIGINT  NOT NULL,
    attempt_5             BIGINT  NOT NULL,
    attempt_10            BIGINT  NOT NULL,
    attempt_25            BIGINT  NOT NULL,
    attempt_50            BIGINT  NOT NULL,
    attempt_100           BIGINT  NOT NULL,
    attempt_250           BIGINT  NOT NULL,
    attempt_500           BIGINT  NOT NULL,
    attempt_1000          BIGINT  NOT NULL,
    attempt_2500          BIGINT  NOT NULL,
    attempt_5000          BIGINT  NOT NULL,
    attempt_10000         BIGINT  NOT NULL,
    attempt_15000         BIGINT  NOT NULL,
    attempt_20000         BIGINT  NOT NULL,
    attempt_25000         BIGINT  NOT NULL,
    attempt_30000         BIGINT  NOT NULL,
    attempt_slower        BIGINT  NOT NULL,
    latency_10            BIGINT  NOT NULL,
    latency_50            BIGINT  NOT NULL,
    latency_100           BIGINT  NOT NULL,
    latency_250           BIGINT  NOT NULL,
    latency_500           BIGINT  NOT NULL,
    latency_1000          BIGINT  NOT NULL,
    latency_2500          BIGINT  NOT NULL,
    latency_5000          BIGINT  NOT NULL,
    latency_10000         BIGINT  NOT NULL,
    latency_30000         BIGINT  NOT NULL,
    latency_60000         BIGINT  NOT NULL,
    latency_300000        BIGINT  NOT NULL,
    latency_900000        BIGINT  NOT NULL,
    latency_3600000       BIGINT  NOT NULL,
    latency_21600000      BIGINT  NOT NULL,
    latency_86400000      BIGINT  NOT NULL,
    latency_slower        BIGINT  NOT NULL,
    PRIMARY KEY (org, hour)
);
CREATE INDEX organization_hour_time ON organization_hour (hour, org);

CREATE TABLE setting (
    name  TEXT COLLATE "C" NOT NULL,
    value BYTEA            NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE policy (
    org        BYTEA            NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    body       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT           NOT NULL,
    updated_at BIGINT           NOT NULL,
    PRIMARY KEY (org, name)
);

CREATE TABLE replay (
    id           BYTEA            NOT NULL,
    org          BYTEA            NOT NULL,
    app          BYTEA            NOT NULL,
    endpoint     BYTEA            NOT NULL,
    kind         BIGINT           NOT NULL,
    state        BIGINT           NOT NULL,
    since        BIGINT           NOT NULL,
    until        BIGINT           NOT NULL,
    wanted       BIGINT           NOT NULL,
    status_class BIGINT,
    died_since   BIGINT,
    rate         BIGINT           NOT NULL,
    reached      BYTEA,
    looked_at    BIGINT           NOT NULL,
    opened       BIGINT           NOT NULL,
    created_at   BIGINT           NOT NULL,
    updated_at   BIGINT           NOT NULL,
    event_types  TEXT COLLATE "C" NOT NULL,
    channel      TEXT COLLATE "C",
    tag          TEXT COLLATE "C",
    PRIMARY KEY (id)
);
CREATE INDEX replay_org ON replay (org, id);
CREATE INDEX replay_running ON replay (id) WHERE state = 0;
CREATE INDEX replay_app ON replay (app, id) WHERE state = 0;
CREATE INDEX replay_of_application ON replay (app, id);
CREATE INDEX replay_ended ON replay (updated_at, id) WHERE state > 0;

CREATE TABLE erasure (
    id         BYTEA  NOT NULL,
    org        BYTEA  NOT NULL,
    app        BYTEA  NOT NULL,
    state      BIGINT NOT NULL,
    messages   BIGINT NOT NULL,
    deliveries BIGINT NOT NULL,
    attempts   BIGINT NOT NULL,
    endpoints  BIGINT NOT NULL,
    others     BIGINT NOT NULL,
    audit      BIGINT NOT NULL,
    first      BYTEA,
    reached    BYTEA,
    audited    BYTEA,
    entry      BYTEA  NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX erasure_org ON erasure (org, id);
CREATE INDEX erasure_running ON erasure (app, id) WHERE state = 0;
CREATE INDEX erasure_ended ON erasure (updated_at, id) WHERE state > 0;

CREATE TABLE dead_letter (
    seq        BIGINT           NOT NULL,
    org        BYTEA            NOT NULL,
    app        BYTEA            NOT NULL,
    endpoint   BYTEA            NOT NULL,
    settled_at BIGINT           NOT NULL,
    reason     BIGINT           NOT NULL,
    event_type TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (seq)
);
CREATE INDEX dead_letter_org ON dead_letter (org, settled_at, seq);
CREATE INDEX dead_letter_app ON dead_letter (app, settled_at, seq);
CREATE INDEX dead_letter_endpoint ON dead_letter (endpoint, settled_at, seq);

CREATE TABLE profile (
    org        BYTEA            NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    body       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT           NOT NULL,
    updated_at BIGINT           NOT NULL,
    PRIMARY KEY (org, name)
);

CREATE TABLE health_change (
    endpoint BYTEA            NOT NULL,
    number   BIGINT           NOT NULL,
    at       BIGINT           NOT NULL,
    was      BIGINT           NOT NULL,
    became   BIGINT           NOT NULL,
    cause    BIGINT           NOT NULL,
    detail   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (endpoint, number)
);

CREATE TABLE endpoint_hour (
    endpoint     BYTEA  NOT NULL,
    hour         BIGINT NOT NULL,
    attempts     BIGINT NOT NULL,
    successes    BIGINT NOT NULL,
    retries      BIGINT NOT NULL,
    delivered    BIGINT NOT NULL,
    dead         BIGINT NOT NULL,
    within_5     BIGINT NOT NULL,
    within_10    BIGINT NOT NULL,
    within_25    BIGINT NOT NULL,
    within_50    BIGINT NOT NULL,
    within_100   BIGINT NOT NULL,
    within_250   BIGINT NOT NULL,
    within_500   BIGINT NOT NULL,
    within_1000  BIGINT NOT NULL,
    within_2500  BIGINT NOT NULL,
    within_5000  BIGINT NOT NULL,
    within_10000 BIGINT NOT NULL,
    within_30000 BIGINT NOT NULL,
    slower       BIGINT NOT NULL,
    no_answer    BIGINT NOT NULL DEFAULT 0,
    status_1xx   BIGINT NOT NULL DEFAULT 0,
    status_2xx   BIGINT NOT NULL DEFAULT 0,
    status_3xx   BIGINT NOT NULL DEFAULT 0,
    status_4xx   BIGINT NOT NULL DEFAULT 0,
    status_5xx   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (endpoint, hour)
);

CREATE TABLE application_hour (
    app        BYTEA            NOT NULL,
    hour       BIGINT           NOT NULL,
    event_type TEXT COLLATE "C" NOT NULL,
    attempts   BIGINT           NOT NULL,
    successes  BIGINT           NOT NULL,
    PRIMARY KEY (app, hour, event_type)
);

CREATE TABLE event_type (
    org           BYTEA            NOT NULL,
    name          TEXT COLLATE "C" NOT NULL,
    id            BYTEA            NOT NULL,
    archived      BIGINT           NOT NULL,
    deprecated    BIGINT           NOT NULL,
    validate      BIGINT           NOT NULL,
    created_at    BIGINT           NOT NULL,
    updated_at    BIGINT           NOT NULL,
    feature_flags TEXT COLLATE "C" NOT NULL,
    group_name    TEXT COLLATE "C",
    description   TEXT COLLATE "C" NOT NULL,
    schemas       TEXT COLLATE "C",
    PRIMARY KEY (org, name)
);

CREATE TABLE api_key (
    id           BYTEA            NOT NULL,
    org          BYTEA            NOT NULL,
    app          BYTEA,
    name         TEXT COLLATE "C" NOT NULL,
    prefix       TEXT COLLATE "C" NOT NULL,
    digest       BYTEA            NOT NULL,
    scope        BIGINT           NOT NULL,
    created_at   BIGINT           NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    PRIMARY KEY (id),
    UNIQUE (prefix),
    UNIQUE (digest)
);
CREATE INDEX api_key_org ON api_key (org, id);
CREATE INDEX api_key_app ON api_key (app, id) WHERE app IS NOT NULL;

CREATE TABLE revoked_token (
    mark       BYTEA  NOT NULL,
    org        BYTEA  NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (mark)
);
CREATE INDEX revoked_token_end ON revoked_token (expires_at, mark) WHERE expires_at IS NOT NULL;

CREATE TABLE portal_cut (
    app           BYTEA            NOT NULL,
    session       TEXT COLLATE "C" NOT NULL,
    issued_before BIGINT           NOT NULL,
    ends_at       BIGINT           NOT NULL,
    expires_at    BIGINT,
    PRIMARY KEY (app, session, issued_before)
);
CREATE INDEX portal_cut_end ON portal_cut (expires_at, app, session, issued_before) WHERE expires_at IS NOT NULL;

CREATE TABLE audit (
    id           BYTEA            NOT NULL,
    org          BYTEA            NOT NULL,
    app          BYTEA,
    endpoint     BYTEA,
    actor_kind   BIGINT           NOT NULL,
    actor_id     BYTEA,
    actor_prefix TEXT COLLATE "C",
    actor_name   TEXT COLLATE "C",
    action       TEXT COLLATE "C" NOT NULL,
    resource     TEXT COLLATE "C" NOT NULL,
    fields       TEXT COLLATE "C" NOT NULL,
    count        BIGINT           NOT NULL,
    changes      TEXT COLLATE "C",
    kind         TEXT COLLATE "C" GENERATED ALWAYS AS (split_part(action, '.', 1)) STORED,
    PRIMARY KEY (id)
);
CREATE INDEX audit_org ON audit (org, id);
CREATE INDEX audit_app ON audit (org, app, id) WHERE app IS NOT NULL;
CREATE INDEX audit_kind ON audit (org, kind, id);
CREATE INDEX audit_resource ON audit (org, resource, id);
CREATE INDEX audit_endpoint ON audit (org, endpoint, id) WHERE endpoint IS NOT NULL;

CREATE TABLE message_count (
    day   BIGINT NOT NULL,
    owner BYTEA  NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (day, owner)
);

CREATE TABLE notice (
    seq   BIGINT           NOT NULL,
    org   BYTEA            NOT NULL,
    event TEXT COLLATE "C" NOT NULL,
    body  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (seq)
);
CREATE INDEX notice_org ON notice (org, seq);

CREATE TABLE notice_count (
    org      BYTEA  NOT NULL,
    waiting  BIGINT NOT NULL,
    left_out BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (org)
);

CREATE TABLE mail (
    seq        BIGINT           NOT NULL,
    org        BYTEA            NOT NULL,
    app        BYTEA,
    endpoint   BYTEA,
    address    TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    body       TEXT COLLATE "C" NOT NULL,
    more       BIGINT           NOT NULL,
    created_at BIGINT           NOT NULL,
    due_at     BIGINT           NOT NULL,
    attempts   BIGINT           NOT NULL,
    message_id TEXT COLLATE "C",
    reader     TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (seq)
);
CREATE INDEX mail_due ON mail (due_at, seq);
CREATE INDEX mail_reader_waiting ON mail (org, reader, seq);
CREATE INDEX mail_reader ON mail (reader, seq);
CREATE INDEX mail_turn ON mail (org, due_at, seq);
CREATE INDEX mail_of_application ON mail (app, seq);
CREATE INDEX mail_message ON mail (message_id, seq) WHERE message_id IS NOT NULL;

CREATE TABLE mail_count (
    org      BYTEA  NOT NULL,
    waiting  BIGINT NOT NULL,
    left_out BIGINT NOT NULL,
    PRIMARY KEY (org)
);

CREATE TABLE mail_day (
    day     BIGINT           NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    count   BIGINT           NOT NULL,
    last_at BIGINT           NOT NULL DEFAULT 0,
    PRIMARY KEY (day, address)
);

CREATE TABLE mail_outage (
    endpoint BYTEA  NOT NULL,
    level    BIGINT NOT NULL,
    PRIMARY KEY (endpoint)
);

CREATE TABLE mail_unsubscribed (
    subject BYTEA            NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    at      BIGINT           NOT NULL,
    PRIMARY KEY (subject, address)
);

CREATE TABLE mail_address (
    app          BYTEA            NOT NULL,
    address      TEXT COLLATE "C" NOT NULL,
    asked_at     BIGINT,
    confirmed_at BIGINT,
    given_at     BIGINT           NOT NULL DEFAULT 0,
    PRIMARY KEY (app, address)
);
CREATE INDEX mail_address_unconfirmed ON mail_address (app, given_at, address) WHERE confirmed_at IS NULL;

CREATE TABLE source (
    id         BYTEA            NOT NULL,
    org        BYTEA            NOT NULL,
    app        BYTEA            NOT NULL,
    uid        TEXT COLLATE "C",
    name       TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT           NOT NULL,
    updated_at BIGINT           NOT NULL,
    metadata   TEXT COLLATE "C" NOT NULL,
    settings   TEXT COLLATE "C" NOT NULL,
    sealed     BYTEA            NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (app)
);
CREATE UNIQUE INDEX source_uid ON source (org, uid) WHERE uid IS NOT NULL;
CREATE INDEX source_org ON source (org, id);

CREATE TABLE source_token (
    digest     BYTEA  NOT NULL,
    source     BYTEA  NOT NULL,
    number     BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (digest)
);
CREATE INDEX source_token_source ON source_token (source, number, digest);

CREATE TABLE gate (
    org        BYTEA            NOT NULL,
    origin     TEXT COLLATE "C" NOT NULL,
    scope      BYTEA            NOT NULL,
    failures   BIGINT           NOT NULL,
    held_until BIGINT,
    hold       BIGINT           NOT NULL,
    failed_at  BIGINT,
    probing    BIGINT           NOT NULL,
    since      BIGINT,
    why        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org, origin, scope)
);

CREATE TABLE alert (
    id              BYTEA            NOT NULL,
    org             BYTEA            NOT NULL,
    app             BYTEA,
    endpoint        BYTEA,
    rule            TEXT COLLATE "C" NOT NULL,
    value           TEXT COLLATE "C" NOT NULL,
    threshold       TEXT COLLATE "C" NOT NULL,
    fired_at        BIGINT           NOT NULL,
    resolved_at     BIGINT,
    acknowledged_at BIGINT,
    acknowledged_by TEXT COLLATE "C",
    PRIMARY KEY (id)
);
CREATE INDEX alert_org ON alert (org, id);
CREATE INDEX alert_firing ON alert (org, id) WHERE resolved_at IS NULL;
CREATE INDEX alert_past ON alert (org, resolved_at, id) WHERE resolved_at IS NOT NULL;
CREATE INDEX alert_judged ON alert (id) WHERE endpoint IS NULL AND resolved_at IS NULL;
CREATE INDEX alert_app ON alert (app, id) WHERE app IS NOT NULL;
CREATE INDEX alert_endpoint ON alert (endpoint, id) WHERE endpoint IS NOT NULL;

CREATE TABLE pending_alert (
    org       BYTEA            NOT NULL,
    rule      TEXT COLLATE "C" NOT NULL,
    threshold TEXT COLLATE "C" NOT NULL,
    since     BIGINT           NOT NULL,
    PRIMARY KEY (org, rule)
);

INSERT INTO total (name, value) VALUES ('hours_begun', -1), ('hours_summed', -1), ('numbers', 0);

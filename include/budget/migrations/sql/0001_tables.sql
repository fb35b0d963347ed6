-- The tables of the ledger, the same on PostgreSQL and SQLite (there WHOLE is INTEGER and tables are
-- STRICT; here it is BIGINT). Amounts are whole numbers of 1e-12. Statements end with a line of `;;`.

CREATE TABLE dp_charge (
  charge_id TEXT NOT NULL,
  key TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  dataset TEXT NOT NULL,
  requester TEXT NOT NULL,
  actor TEXT NOT NULL,
  release TEXT NOT NULL,
  period TEXT NOT NULL,
  partition TEXT,
  mechanism TEXT NOT NULL,
  parameters TEXT NOT NULL,
  snapshot_id TEXT,
  requested_pico WHOLE NOT NULL,
  accept_at_least_pico WHOLE NOT NULL,
  granted_pico WHOLE NOT NULL,
  planned_rho_pico WHOLE,
  planned_epsilon_pure_pico WHOLE,
  binding TEXT NOT NULL,
  reason TEXT NOT NULL,
  dag_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  map_index TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT,
  decided_seq WHOLE NOT NULL,
  state TEXT NOT NULL,
  fence WHOLE NOT NULL,
  attempt TEXT,
  amounts TEXT NOT NULL,
  rounds_begun WHOLE NOT NULL,
  rounds_closed WHOLE NOT NULL,
  rounds_answered WHOLE NOT NULL,
  cost_rho_pico WHOLE,
  cost_epsilon_pure_pico WHOLE,
  plan TEXT,
  plan_digest TEXT,
  events TEXT NOT NULL,
  transcript_digest TEXT,
  manifest_digest TEXT,
  release_id TEXT,
  uri TEXT,
  note TEXT,
  sealed_seq WHOLE,
  PRIMARY KEY (charge_id),
  CONSTRAINT dp_charge_requested CHECK (requested_pico > 0),
  CONSTRAINT dp_charge_granted CHECK (granted_pico >= 0 AND granted_pico <= requested_pico),
  CONSTRAINT dp_charge_floor CHECK (granted_pico = 0 OR granted_pico >= accept_at_least_pico),
  CONSTRAINT dp_charge_denied CHECK ((state = 'denied') = (granted_pico = 0)),
  CONSTRAINT dp_charge_state CHECK (state IN ('denied', 'reserved', 'opened', 'sealed', 'publishing', 'published', 'void', 'forfeited', 'withheld')),
  CONSTRAINT dp_charge_key UNIQUE (key)
) STRICT
;;
CREATE INDEX dp_charge_pending ON dp_charge (state, expires_at)
;;
CREATE UNIQUE INDEX dp_charge_period ON dp_charge (release, period) WHERE state NOT IN ('denied', 'void')
;;
CREATE TABLE dp_checkpoint (
  seq WHOLE NOT NULL,
  body TEXT NOT NULL,
  key_id TEXT NOT NULL,
  signature TEXT NOT NULL,
  PRIMARY KEY (seq)
) STRICT
;;
CREATE TABLE dp_dataset (
  name TEXT NOT NULL,
  schema_digest TEXT NOT NULL,
  reuse TEXT NOT NULL,
  PRIMARY KEY (name)
) STRICT
;;
CREATE TABLE dp_entry (
  seq WHOLE NOT NULL,
  kind TEXT NOT NULL,
  charge_id TEXT,
  prev_hash TEXT NOT NULL,
  hash TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (seq),
  CONSTRAINT dp_entry_seq CHECK (seq >= 1),
  CONSTRAINT dp_entry_hash UNIQUE (hash)
) STRICT
;;
CREATE INDEX dp_entry_charge ON dp_entry (charge_id, seq)
;;
CREATE TABLE dp_head (
  id WHOLE NOT NULL,
  ledger_id TEXT NOT NULL,
  seq WHOLE NOT NULL,
  hash TEXT NOT NULL,
  declared WHOLE DEFAULT 0 NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT dp_head_one CHECK (id = 1)
) STRICT
;;
CREATE TABLE dp_limit (
  limit_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  value_pico WHOLE,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  at TEXT NOT NULL,
  PRIMARY KEY (limit_id)
) STRICT
;;
CREATE INDEX dp_limit_subject ON dp_limit (subject)
;;
CREATE TABLE dp_pool (
  pool_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  owner TEXT NOT NULL,
  dataset TEXT,
  partition TEXT,
  accounting TEXT NOT NULL,
  delta_exponent WHOLE NOT NULL,
  generation WHOLE NOT NULL,
  epsilon_pico WHOLE NOT NULL,
  cap_pico WHOLE NOT NULL,
  limit_pico WHOLE,
  status TEXT NOT NULL,
  held_pico WHOLE DEFAULT 0 NOT NULL,
  spent_pico WHOLE DEFAULT 0 NOT NULL,
  PRIMARY KEY (pool_id),
  CONSTRAINT dp_pool_held CHECK (held_pico >= 0),
  CONSTRAINT dp_pool_spent CHECK (spent_pico >= 0),
  CONSTRAINT dp_pool_cap CHECK (held_pico + spent_pico <= cap_pico),
  CONSTRAINT dp_pool_status CHECK (status IN ('open', 'frozen', 'retired')),
  CONSTRAINT dp_pool_kind CHECK (kind IN ('dataset', 'partition', 'user')),
  CONSTRAINT dp_pool_accounting CHECK (accounting IN ('zcdp', 'epsilon'))
) STRICT
;;
CREATE INDEX dp_pool_owner ON dp_pool (owner, dataset)
;;
CREATE TABLE dp_population (
  name TEXT NOT NULL,
  privacy_unit TEXT NOT NULL,
  neighbouring TEXT NOT NULL,
  accounting TEXT NOT NULL,
  delta_exponent WHOLE NOT NULL,
  PRIMARY KEY (name),
  CONSTRAINT dp_population_delta CHECK (delta_exponent BETWEEN 5 AND 15)
) STRICT
;;
CREATE TABLE dp_claim (
  claim TEXT NOT NULL,
  population TEXT NOT NULL,
  dataset TEXT NOT NULL,
  rule TEXT NOT NULL,
  at_most WHOLE NOT NULL,
  PRIMARY KEY (claim),
  CONSTRAINT dp_claim_at_most CHECK (at_most >= 1),
  FOREIGN KEY(population) REFERENCES dp_population (name),
  FOREIGN KEY(dataset) REFERENCES dp_dataset (name)
) STRICT
;;
CREATE TABLE dp_dataset_population (
  link TEXT NOT NULL,
  dataset TEXT NOT NULL,
  population TEXT NOT NULL,
  id_column TEXT,
  max_rows WHOLE NOT NULL,
  PRIMARY KEY (link),
  CONSTRAINT dp_dataset_population_pair UNIQUE (dataset, population),
  CONSTRAINT dp_dataset_population_rows CHECK (max_rows >= 1),
  FOREIGN KEY(dataset) REFERENCES dp_dataset (name),
  FOREIGN KEY(population) REFERENCES dp_population (name)
) STRICT
;;
CREATE TABLE dp_posting (
  seq WHOLE NOT NULL,
  line WHOLE NOT NULL,
  pool_id TEXT NOT NULL,
  account TEXT NOT NULL,
  amount_pico WHOLE NOT NULL,
  PRIMARY KEY (seq, line),
  CONSTRAINT dp_posting_account CHECK (account IN ('issued', 'available', 'held', 'spent')),
  CONSTRAINT dp_posting_spent_grows CHECK (account <> 'spent' OR amount_pico > 0)
) STRICT
;;
CREATE INDEX dp_posting_pool ON dp_posting (pool_id, seq)
;;
CREATE TABLE dp_release (
  release_id TEXT NOT NULL,
  charge_id TEXT NOT NULL,
  manifest_digest TEXT NOT NULL,
  uri TEXT NOT NULL,
  published_at TEXT NOT NULL,
  withdrawn_at TEXT,
  withdrawn_reason TEXT,
  PRIMARY KEY (release_id),
  CONSTRAINT dp_release_charge UNIQUE (charge_id),
  FOREIGN KEY(charge_id) REFERENCES dp_charge (charge_id)
) STRICT
;;
CREATE TABLE dp_snapshot (
  snapshot_id TEXT NOT NULL,
  dataset TEXT NOT NULL,
  commitment TEXT NOT NULL,
  mac TEXT NOT NULL,
  locator TEXT NOT NULL,
  PRIMARY KEY (snapshot_id),
  CONSTRAINT dp_snapshot_content UNIQUE (dataset, mac),
  FOREIGN KEY(dataset) REFERENCES dp_dataset (name)
) STRICT
;;

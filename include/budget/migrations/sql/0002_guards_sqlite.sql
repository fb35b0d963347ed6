-- Guards of the ledger on SQLite. Statements end with a line that holds `;;` alone.
-- SQLite knows no roles: whoever owns the file can drop a trigger. They stop accidents, programs and
-- SQL shells; `verify` with an outside anchor finds what an owner does.

-- The journal: entries follow the head, are never changed, never removed, never replaced.
-- INSERT OR REPLACE walks past BEFORE DELETE triggers; the insert guard stops it.
CREATE TRIGGER dp_entry_follows BEFORE INSERT ON dp_entry
WHEN NOT EXISTS (SELECT 1 FROM dp_head WHERE seq + 1 = NEW.seq AND hash = NEW.prev_hash)
BEGIN SELECT RAISE(ABORT, 'dp_entry: an entry must follow the head of the journal'); END
;;
CREATE TRIGGER dp_entry_update BEFORE UPDATE ON dp_entry
BEGIN SELECT RAISE(ABORT, 'dp_entry: the journal is append-only'); END
;;
CREATE TRIGGER dp_entry_delete BEFORE DELETE ON dp_entry
BEGIN SELECT RAISE(ABORT, 'dp_entry: the journal is append-only'); END
;;
-- The journal is the only door: postings and balances move because an entry was written.
CREATE TRIGGER dp_entry_post AFTER INSERT ON dp_entry
BEGIN
  INSERT INTO dp_posting (seq, line, pool_id, account, amount_pico)
    SELECT NEW.seq, key, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
    FROM json_each(NEW.body, '$.postings');
  SELECT RAISE(ABORT, 'dp_posting: the postings of an entry must sum to zero in every pool, and every pool must be there')
    WHERE EXISTS (SELECT 1 FROM dp_posting WHERE seq = NEW.seq GROUP BY pool_id
                  HAVING sum(amount_pico) <> 0 OR pool_id NOT IN (SELECT pool_id FROM dp_pool));
  UPDATE dp_pool SET
    held_pico = held_pico + (SELECT coalesce(sum(amount_pico), 0) FROM dp_posting d
      WHERE d.seq = NEW.seq AND d.pool_id = dp_pool.pool_id AND d.account = 'held'),
    spent_pico = spent_pico + (SELECT coalesce(sum(amount_pico), 0) FROM dp_posting d
      WHERE d.seq = NEW.seq AND d.pool_id = dp_pool.pool_id AND d.account = 'spent')
    WHERE pool_id IN (SELECT pool_id FROM dp_posting WHERE seq = NEW.seq);
  -- Partitions compose in parallel only up to the cap of their population's pool.
  SELECT RAISE(ABORT, 'dp_pool: held and spent, with the largest partitions, are above the cap')
    WHERE EXISTS (
      SELECT 1 FROM dp_pool p
      WHERE p.kind = 'dataset'
        AND p.owner IN (SELECT a.owner FROM dp_pool a JOIN dp_posting d ON d.pool_id = a.pool_id
                        JOIN dp_claim c ON c.population = a.owner WHERE d.seq = NEW.seq)
        AND p.held_pico + p.spent_pico + coalesce((
          SELECT sum(total) FROM (
            SELECT l.held_pico + l.spent_pico AS total, c.at_most AS at_most,
                   row_number() OVER (PARTITION BY c.claim ORDER BY l.held_pico + l.spent_pico DESC) AS place
            FROM dp_pool l JOIN dp_claim c ON c.population = l.owner AND c.dataset = l.dataset
            WHERE l.kind = 'partition' AND l.owner = p.owner AND l.accounting = p.accounting
              AND l.generation = p.generation)
          WHERE place <= at_most), 0) > p.cap_pico);
  UPDATE dp_head SET seq = NEW.seq, hash = NEW.hash, declared = iif(NEW.charge_id IS NULL, NEW.seq, declared);
END
;;
CREATE TRIGGER dp_posting_insert BEFORE INSERT ON dp_posting
WHEN NOT EXISTS (SELECT 1 FROM dp_head WHERE seq + 1 = NEW.seq)
  OR EXISTS (SELECT 1 FROM dp_posting WHERE seq = NEW.seq AND line = NEW.line)
BEGIN SELECT RAISE(ABORT, 'dp_posting: postings come from journal entries only'); END
;;
CREATE TRIGGER dp_posting_update BEFORE UPDATE ON dp_posting
BEGIN SELECT RAISE(ABORT, 'dp_posting: the journal is append-only'); END
;;
CREATE TRIGGER dp_posting_delete BEFORE DELETE ON dp_posting
BEGIN SELECT RAISE(ABORT, 'dp_posting: the journal is append-only'); END
;;
CREATE TRIGGER dp_head_insert BEFORE INSERT ON dp_head WHEN EXISTS (SELECT 1 FROM dp_head)
BEGIN SELECT RAISE(ABORT, 'dp_head: a ledger has one head'); END
;;
CREATE TRIGGER dp_head_update BEFORE UPDATE ON dp_head
WHEN NEW.seq <> OLD.seq + 1 OR NEW.ledger_id <> OLD.ledger_id OR NEW.id <> OLD.id
  OR NOT EXISTS (SELECT 1 FROM dp_entry WHERE seq = NEW.seq AND hash = NEW.hash)
BEGIN SELECT RAISE(ABORT, 'dp_head: the head moves to the next entry only'); END
;;
CREATE TRIGGER dp_head_delete BEFORE DELETE ON dp_head
BEGIN SELECT RAISE(ABORT, 'dp_head: a ledger keeps its head'); END
;;
-- Pools: caps are for ever, spent never falls, balances move with the journal only.
CREATE TRIGGER dp_pool_insert BEFORE INSERT ON dp_pool
WHEN EXISTS (SELECT 1 FROM dp_pool WHERE pool_id = NEW.pool_id) OR NEW.held_pico <> 0 OR NEW.spent_pico <> 0
BEGIN SELECT RAISE(ABORT, 'dp_pool: a pool starts empty and is never replaced'); END
;;
CREATE TRIGGER dp_pool_fixed BEFORE UPDATE ON dp_pool
WHEN NEW.pool_id <> OLD.pool_id OR NEW.kind <> OLD.kind OR NEW.subject <> OLD.subject OR NEW.owner <> OLD.owner
  OR NEW.dataset IS NOT OLD.dataset OR NEW.partition IS NOT OLD.partition
  OR NEW.accounting <> OLD.accounting OR NEW.delta_exponent <> OLD.delta_exponent
  OR NEW.generation <> OLD.generation OR NEW.epsilon_pico <> OLD.epsilon_pico OR NEW.cap_pico <> OLD.cap_pico
BEGIN SELECT RAISE(ABORT, 'dp_pool: the cap of a pool and what it is for never change'); END
;;
CREATE TRIGGER dp_pool_spent_grows BEFORE UPDATE ON dp_pool WHEN NEW.spent_pico < OLD.spent_pico
BEGIN SELECT RAISE(ABORT, 'dp_pool: what is spent never falls'); END
;;
CREATE TRIGGER dp_pool_retired BEFORE UPDATE ON dp_pool WHEN OLD.status = 'retired' AND NEW.status <> 'retired'
BEGIN SELECT RAISE(ABORT, 'dp_pool: a retired pool stays retired'); END
;;
CREATE TRIGGER dp_pool_balance BEFORE UPDATE ON dp_pool
WHEN (NEW.held_pico <> OLD.held_pico OR NEW.spent_pico <> OLD.spent_pico)
  AND NOT EXISTS (SELECT 1 FROM dp_entry WHERE seq = (SELECT seq + 1 FROM dp_head))
BEGIN SELECT RAISE(ABORT, 'dp_pool: balances move with journal entries only'); END
;;
CREATE TRIGGER dp_pool_delete BEFORE DELETE ON dp_pool
BEGIN SELECT RAISE(ABORT, 'dp_pool: a pool is never removed'); END
;;
-- Charges: only legal arrows, only the columns that arrows change, a fence that never falls.
CREATE TRIGGER dp_charge_insert BEFORE INSERT ON dp_charge
WHEN NEW.state NOT IN ('reserved', 'denied')
  OR EXISTS (SELECT 1 FROM dp_charge WHERE charge_id = NEW.charge_id OR key = NEW.key)
  OR (NEW.state = 'reserved' AND EXISTS (SELECT 1 FROM dp_charge WHERE release = NEW.release
      AND period = NEW.period AND state NOT IN ('denied', 'void')))
BEGIN SELECT RAISE(ABORT, 'dp_charge: a charge starts reserved or denied, once for its key and period'); END
;;
CREATE TRIGGER dp_charge_arrow BEFORE UPDATE ON dp_charge
WHEN OLD.state || '>' || NEW.state NOT IN ('reserved>opened', 'reserved>void', 'opened>opened', 'opened>sealed',
  'opened>forfeited', 'sealed>publishing', 'sealed>withheld', 'publishing>published', 'published>published')
BEGIN SELECT RAISE(ABORT, 'dp_charge: that is no legal step of a charge'); END
;;
CREATE TRIGGER dp_charge_fence BEFORE UPDATE ON dp_charge
WHEN NEW.fence < OLD.fence OR (OLD.state = 'reserved' AND NEW.state = 'opened' AND NEW.fence <> OLD.fence + 1)
BEGIN SELECT RAISE(ABORT, 'dp_charge: the fence rises with every open and never falls'); END
;;
CREATE TRIGGER dp_charge_opened BEFORE UPDATE ON dp_charge
WHEN OLD.state <> 'reserved' AND (NEW.plan IS NOT OLD.plan OR NEW.plan_digest IS NOT OLD.plan_digest
  OR NEW.events IS NOT OLD.events OR NEW.amounts IS NOT OLD.amounts OR NEW.cost_rho_pico IS NOT OLD.cost_rho_pico
  OR NEW.cost_epsilon_pure_pico IS NOT OLD.cost_epsilon_pure_pico)
BEGIN SELECT RAISE(ABORT, 'dp_charge: what was opened never changes'); END
;;
CREATE TRIGGER dp_charge_kept BEFORE UPDATE ON dp_charge
WHEN NEW.rounds_begun < OLD.rounds_begun OR NEW.rounds_closed < OLD.rounds_closed
  OR NEW.rounds_answered < OLD.rounds_answered
  OR (OLD.state <> 'opened' AND (NEW.transcript_digest IS NOT OLD.transcript_digest
    OR NEW.sealed_seq IS NOT OLD.sealed_seq))
  OR (OLD.state = 'published' AND (NEW.manifest_digest IS NOT OLD.manifest_digest
    OR NEW.release_id IS NOT OLD.release_id OR NEW.uri IS NOT OLD.uri))
BEGIN SELECT RAISE(ABORT, 'dp_charge: what was measured, sealed and published never changes'); END
;;
CREATE TRIGGER dp_charge_fixed BEFORE UPDATE OF charge_id, key, request_digest, dataset, requester, actor, release,
  period, partition, mechanism, parameters, snapshot_id, requested_pico, accept_at_least_pico, granted_pico,
  planned_rho_pico, planned_epsilon_pure_pico, binding, reason, dag_id, run_id, task_id, map_index,
  created_at, expires_at, decided_seq ON dp_charge
BEGIN SELECT RAISE(ABORT, 'dp_charge: what was asked and decided never changes'); END
;;
CREATE TRIGGER dp_charge_delete BEFORE DELETE ON dp_charge
BEGIN SELECT RAISE(ABORT, 'dp_charge: a charge is never removed'); END
;;
CREATE TRIGGER dp_release_insert BEFORE INSERT ON dp_release
WHEN EXISTS (SELECT 1 FROM dp_release WHERE release_id = NEW.release_id OR charge_id = NEW.charge_id)
BEGIN SELECT RAISE(ABORT, 'dp_release: a release is recorded once'); END
;;
CREATE TRIGGER dp_release_fixed BEFORE UPDATE OF release_id, charge_id, manifest_digest, uri, published_at ON dp_release
BEGIN SELECT RAISE(ABORT, 'dp_release: what was published never changes'); END
;;
CREATE TRIGGER dp_release_withdrawn BEFORE UPDATE ON dp_release WHEN OLD.withdrawn_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'dp_release: what was published never changes, nor what was withdrawn'); END
;;
CREATE TRIGGER dp_release_delete BEFORE DELETE ON dp_release
BEGIN SELECT RAISE(ABORT, 'dp_release: a release is never removed'); END
;;
-- Declarations and history: written once.
CREATE TRIGGER dp_population_insert BEFORE INSERT ON dp_population WHEN EXISTS (SELECT 1 FROM dp_population WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'dp_population: rows are written once'); END
;;
CREATE TRIGGER dp_population_update BEFORE UPDATE ON dp_population
BEGIN SELECT RAISE(ABORT, 'dp_population: rows are written once'); END
;;
CREATE TRIGGER dp_population_delete BEFORE DELETE ON dp_population
BEGIN SELECT RAISE(ABORT, 'dp_population: rows are written once'); END
;;
CREATE TRIGGER dp_dataset_population_insert BEFORE INSERT ON dp_dataset_population WHEN EXISTS (SELECT 1 FROM dp_dataset_population WHERE link = NEW.link)
BEGIN SELECT RAISE(ABORT, 'dp_dataset_population: rows are written once'); END
;;
CREATE TRIGGER dp_dataset_population_update BEFORE UPDATE ON dp_dataset_population
BEGIN SELECT RAISE(ABORT, 'dp_dataset_population: rows are written once'); END
;;
CREATE TRIGGER dp_dataset_population_delete BEFORE DELETE ON dp_dataset_population
BEGIN SELECT RAISE(ABORT, 'dp_dataset_population: rows are written once'); END
;;
CREATE TRIGGER dp_claim_insert BEFORE INSERT ON dp_claim WHEN EXISTS (SELECT 1 FROM dp_claim WHERE claim = NEW.claim)
BEGIN SELECT RAISE(ABORT, 'dp_claim: rows are written once'); END
;;
CREATE TRIGGER dp_claim_update BEFORE UPDATE ON dp_claim
BEGIN SELECT RAISE(ABORT, 'dp_claim: rows are written once'); END
;;
CREATE TRIGGER dp_claim_delete BEFORE DELETE ON dp_claim
BEGIN SELECT RAISE(ABORT, 'dp_claim: rows are written once'); END
;;
CREATE TRIGGER dp_limit_insert BEFORE INSERT ON dp_limit WHEN EXISTS (SELECT 1 FROM dp_limit WHERE limit_id = NEW.limit_id)
BEGIN SELECT RAISE(ABORT, 'dp_limit: rows are written once'); END
;;
CREATE TRIGGER dp_limit_update BEFORE UPDATE ON dp_limit
BEGIN SELECT RAISE(ABORT, 'dp_limit: rows are written once'); END
;;
CREATE TRIGGER dp_limit_delete BEFORE DELETE ON dp_limit
BEGIN SELECT RAISE(ABORT, 'dp_limit: rows are written once'); END
;;
CREATE TRIGGER dp_snapshot_insert BEFORE INSERT ON dp_snapshot WHEN EXISTS (SELECT 1 FROM dp_snapshot WHERE snapshot_id = NEW.snapshot_id)
BEGIN SELECT RAISE(ABORT, 'dp_snapshot: rows are written once'); END
;;
CREATE TRIGGER dp_snapshot_update BEFORE UPDATE ON dp_snapshot
BEGIN SELECT RAISE(ABORT, 'dp_snapshot: rows are written once'); END
;;
CREATE TRIGGER dp_snapshot_delete BEFORE DELETE ON dp_snapshot
BEGIN SELECT RAISE(ABORT, 'dp_snapshot: rows are written once'); END
;;
CREATE TRIGGER dp_checkpoint_insert BEFORE INSERT ON dp_checkpoint WHEN EXISTS (SELECT 1 FROM dp_checkpoint WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'dp_checkpoint: rows are written once'); END
;;
CREATE TRIGGER dp_checkpoint_update BEFORE UPDATE ON dp_checkpoint
BEGIN SELECT RAISE(ABORT, 'dp_checkpoint: rows are written once'); END
;;
CREATE TRIGGER dp_checkpoint_delete BEFORE DELETE ON dp_checkpoint
BEGIN SELECT RAISE(ABORT, 'dp_checkpoint: rows are written once'); END
;;
CREATE TRIGGER dp_dataset_insert BEFORE INSERT ON dp_dataset WHEN EXISTS (SELECT 1 FROM dp_dataset WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'dp_dataset: rows are written once'); END
;;
CREATE TRIGGER dp_dataset_fixed BEFORE UPDATE OF name, reuse ON dp_dataset
BEGIN SELECT RAISE(ABORT, 'dp_dataset: of a dataset only the schema changes'); END
;;
CREATE TRIGGER dp_dataset_delete BEFORE DELETE ON dp_dataset
BEGIN SELECT RAISE(ABORT, 'dp_dataset: a dataset is never removed'); END
;;

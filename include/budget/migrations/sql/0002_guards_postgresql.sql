-- Guards of the ledger on PostgreSQL. Statements end with a line that holds `;;` alone.
-- The function that posts an entry runs as the tables' owner: a writer needs no right on postings, balances
-- or the head. It looks for functions and operators in pg_catalog only and for tables in @schema@, theirs:
-- whatever a writer may create elsewhere, under the same name, is not found.

CREATE FUNCTION dp_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$
;;
-- Compare and set: a row that does not hold what a step starts from stops the step.
CREATE FUNCTION dp_expected(holds boolean, value text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF holds IS NOT TRUE THEN
    RAISE EXCEPTION 'changed in between' USING ERRCODE = 'serialization_failure';
  END IF;
  RETURN value;
END $$
;;
-- The journal is the only door: the head, postings and balances move because an entry was written. What
-- only this function writes needs no foreign keys, which would ask eight times while everybody waits for
-- the head. `declared` is the last entry of no charge: only such an entry changes pools, limits, datasets.
CREATE FUNCTION dp_entry_post() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moves jsonb := NEW.body::jsonb -> 'postings';
  balanced bigint;
BEGIN
  UPDATE @schema@.dp_head SET seq = NEW.seq, hash = NEW.hash,
      declared = CASE WHEN NEW.charge_id IS NULL THEN NEW.seq ELSE declared END
    WHERE seq + 1 = NEW.seq AND hash = NEW.prev_hash;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'dp_entry: an entry must follow the head of the journal'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF jsonb_array_length(moves) > 0 THEN
    INSERT INTO @schema@.dp_posting (seq, line, pool_id, account, amount_pico)
      SELECT NEW.seq, place - 1, move ->> 0, move ->> 1, (move ->> 2)::bigint
      FROM jsonb_array_elements(moves) WITH ORDINALITY AS m (move, place);
    UPDATE @schema@.dp_pool p SET held_pico = p.held_pico + d.held, spent_pico = p.spent_pico + d.spent
      FROM (SELECT move ->> 0 AS pool_id,
                   coalesce(sum((move ->> 2)::bigint) FILTER (WHERE move ->> 1 = 'held'), 0) AS held,
                   coalesce(sum((move ->> 2)::bigint) FILTER (WHERE move ->> 1 = 'spent'), 0) AS spent
            FROM jsonb_array_elements(moves) AS m (move)
            GROUP BY 1 HAVING sum((move ->> 2)::bigint) = 0) d
      WHERE p.pool_id = d.pool_id;
    GET DIAGNOSTICS balanced = ROW_COUNT;
    IF balanced <> (SELECT count(DISTINCT move ->> 0) FROM jsonb_array_elements(moves) AS m (move)) THEN
      RAISE EXCEPTION 'dp_posting: the postings of an entry must sum to zero in every pool, and every pool must be there'
        USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF EXISTS (SELECT 1 FROM @schema@.dp_claim) THEN
      PERFORM @schema@.dp_claims_hold(NEW.seq);
    END IF;
  END IF;
  RETURN NULL;
END $$
;;
-- Nobody may hang it on a table of his own: it writes as the tables' owner.
REVOKE EXECUTE ON FUNCTION dp_entry_post() FROM PUBLIC
;;
-- Partitions compose in parallel only up to the cap of their population's pool.
CREATE FUNCTION dp_claims_hold(entry bigint) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM @schema@.dp_pool p
    WHERE p.kind = 'dataset'
      AND p.owner IN (SELECT a.owner FROM @schema@.dp_pool a JOIN @schema@.dp_posting d ON d.pool_id = a.pool_id
                      JOIN @schema@.dp_claim c ON c.population = a.owner WHERE d.seq = entry)
      AND p.held_pico + p.spent_pico + coalesce((
        SELECT sum(total) FROM (
          SELECT l.held_pico + l.spent_pico AS total, c.at_most AS at_most,
                 row_number() OVER (PARTITION BY c.claim ORDER BY l.held_pico + l.spent_pico DESC) AS place
          FROM @schema@.dp_pool l JOIN @schema@.dp_claim c ON c.population = l.owner AND c.dataset = l.dataset
          WHERE l.kind = 'partition' AND l.owner = p.owner AND l.accounting = p.accounting
            AND l.generation = p.generation) ranked
        WHERE place <= at_most), 0) > p.cap_pico) THEN
    RAISE EXCEPTION 'dp_pool: held and spent, with the largest partitions, are above the cap'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
END $$
;;
CREATE TRIGGER dp_entry_post AFTER INSERT ON dp_entry FOR EACH ROW EXECUTE FUNCTION dp_entry_post()
;;
CREATE FUNCTION dp_head_moves() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NEW.seq <> OLD.seq + 1 OR NEW.ledger_id <> OLD.ledger_id OR NEW.id <> OLD.id
     OR NOT EXISTS (SELECT 1 FROM @schema@.dp_entry WHERE seq = NEW.seq AND hash = NEW.hash) THEN
    RAISE EXCEPTION 'dp_head: the head moves to the next entry only'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$
;;
CREATE TRIGGER dp_head_update BEFORE UPDATE ON dp_head FOR EACH ROW EXECUTE FUNCTION dp_head_moves()
;;
CREATE TRIGGER dp_posting_insert BEFORE INSERT ON dp_posting FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0)
  EXECUTE FUNCTION dp_refuse('postings come from journal entries only')
;;
-- Pools: caps are for ever, spent never falls, balances move with the journal only.
CREATE FUNCTION dp_pool_changes() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  refused text;
BEGIN
  IF (NEW.pool_id, NEW.kind, NEW.subject, NEW.owner, NEW.dataset, NEW.partition, NEW.accounting,
      NEW.delta_exponent, NEW.generation, NEW.epsilon_pico, NEW.cap_pico)
     IS DISTINCT FROM
     (OLD.pool_id, OLD.kind, OLD.subject, OLD.owner, OLD.dataset, OLD.partition, OLD.accounting,
      OLD.delta_exponent, OLD.generation, OLD.epsilon_pico, OLD.cap_pico) THEN
    refused := 'the cap of a pool and what it is for never change';
  ELSIF NEW.spent_pico < OLD.spent_pico THEN
    refused := 'what is spent never falls';
  ELSIF OLD.status = 'retired' AND NEW.status <> 'retired' THEN
    refused := 'a retired pool stays retired';
  ELSIF (NEW.held_pico <> OLD.held_pico OR NEW.spent_pico <> OLD.spent_pico) AND pg_trigger_depth() = 1 THEN
    refused := 'balances move with journal entries only';
  END IF;
  IF refused IS NOT NULL THEN
    RAISE EXCEPTION 'dp_pool: %', refused USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$
;;
CREATE TRIGGER dp_pool_update BEFORE UPDATE ON dp_pool FOR EACH ROW EXECUTE FUNCTION dp_pool_changes()
;;
CREATE TRIGGER dp_pool_insert BEFORE INSERT ON dp_pool FOR EACH ROW
  WHEN (NEW.held_pico <> 0 OR NEW.spent_pico <> 0)
  EXECUTE FUNCTION dp_refuse('a pool starts empty and is never replaced')
;;
-- Charges: only legal arrows, only the columns that arrows change, a fence that never falls.
CREATE TRIGGER dp_charge_insert BEFORE INSERT ON dp_charge FOR EACH ROW
  WHEN (NEW.state NOT IN ('reserved', 'denied'))
  EXECUTE FUNCTION dp_refuse('a charge starts reserved or denied, once for its key and period')
;;
-- (Five conditions in one function, whose plan is kept: a WHEN is parsed again at every step.)
CREATE FUNCTION dp_charge_changes() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  refused text;
BEGIN
  IF (OLD.state || '>' || NEW.state) NOT IN ('reserved>opened', 'reserved>void', 'opened>opened', 'opened>sealed',
      'opened>forfeited', 'sealed>publishing', 'sealed>withheld', 'publishing>published', 'published>published') THEN
    refused := 'that is no legal step of a charge';
  ELSIF NEW.fence < OLD.fence OR (OLD.state = 'reserved' AND NEW.state = 'opened' AND NEW.fence <> OLD.fence + 1) THEN
    refused := 'the fence rises with every open and never falls';
  ELSIF OLD.state <> 'reserved'
        AND (NEW.plan, NEW.plan_digest, NEW.events, NEW.amounts, NEW.cost_rho_pico, NEW.cost_epsilon_pure_pico)
        IS DISTINCT FROM
        (OLD.plan, OLD.plan_digest, OLD.events, OLD.amounts, OLD.cost_rho_pico, OLD.cost_epsilon_pure_pico) THEN
    refused := 'what was opened never changes';
  ELSIF NEW.rounds_begun < OLD.rounds_begun OR NEW.rounds_closed < OLD.rounds_closed
        OR NEW.rounds_answered < OLD.rounds_answered
        OR (OLD.state <> 'opened' AND (NEW.transcript_digest, NEW.sealed_seq)
            IS DISTINCT FROM (OLD.transcript_digest, OLD.sealed_seq))
        OR (OLD.state = 'published' AND (NEW.manifest_digest, NEW.release_id, NEW.uri)
            IS DISTINCT FROM (OLD.manifest_digest, OLD.release_id, OLD.uri)) THEN
    refused := 'what was measured, sealed and published never changes';
  ELSIF (NEW.charge_id, NEW.key, NEW.request_digest, NEW.dataset, NEW.requester, NEW.actor, NEW.release,
      NEW.period, NEW.partition, NEW.mechanism, NEW.parameters, NEW.snapshot_id, NEW.requested_pico,
      NEW.accept_at_least_pico, NEW.granted_pico, NEW.planned_rho_pico, NEW.planned_epsilon_pure_pico,
      NEW.binding, NEW.reason, NEW.dag_id, NEW.run_id, NEW.task_id, NEW.map_index, NEW.created_at,
      NEW.expires_at, NEW.decided_seq)
     IS DISTINCT FROM
     (OLD.charge_id, OLD.key, OLD.request_digest, OLD.dataset, OLD.requester, OLD.actor, OLD.release,
      OLD.period, OLD.partition, OLD.mechanism, OLD.parameters, OLD.snapshot_id, OLD.requested_pico,
      OLD.accept_at_least_pico, OLD.granted_pico, OLD.planned_rho_pico, OLD.planned_epsilon_pure_pico,
      OLD.binding, OLD.reason, OLD.dag_id, OLD.run_id, OLD.task_id, OLD.map_index, OLD.created_at,
      OLD.expires_at, OLD.decided_seq) THEN
    refused := 'what was asked and decided never changes';
  END IF;
  IF refused IS NOT NULL THEN
    RAISE EXCEPTION 'dp_charge: %', refused USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$
;;
CREATE TRIGGER dp_charge_step BEFORE UPDATE ON dp_charge FOR EACH ROW EXECUTE FUNCTION dp_charge_changes()
;;
CREATE TRIGGER dp_release_fixed BEFORE UPDATE ON dp_release FOR EACH ROW
  WHEN (OLD.withdrawn_at IS NOT NULL
   OR (NEW.release_id, NEW.charge_id, NEW.manifest_digest, NEW.uri, NEW.published_at)
   IS DISTINCT FROM (OLD.release_id, OLD.charge_id, OLD.manifest_digest, OLD.uri, OLD.published_at))
  EXECUTE FUNCTION dp_refuse('what was published never changes, nor what was withdrawn')
;;
-- Journal, declarations and history: written once.
CREATE TRIGGER dp_entry_update BEFORE UPDATE ON dp_entry FOR EACH ROW EXECUTE FUNCTION dp_refuse('the journal is append-only')
;;
CREATE TRIGGER dp_posting_update BEFORE UPDATE ON dp_posting FOR EACH ROW EXECUTE FUNCTION dp_refuse('the journal is append-only')
;;
CREATE TRIGGER dp_population_update BEFORE UPDATE ON dp_population FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_dataset_fixed BEFORE UPDATE ON dp_dataset FOR EACH ROW
  WHEN ((NEW.name, NEW.reuse) IS DISTINCT FROM (OLD.name, OLD.reuse))
  EXECUTE FUNCTION dp_refuse('of a dataset only the schema changes')
;;
CREATE TRIGGER dp_dataset_population_update BEFORE UPDATE ON dp_dataset_population FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_claim_update BEFORE UPDATE ON dp_claim FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_limit_update BEFORE UPDATE ON dp_limit FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_snapshot_update BEFORE UPDATE ON dp_snapshot FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_checkpoint_update BEFORE UPDATE ON dp_checkpoint FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
-- Nothing is ever removed; TRUNCATE needs a trigger of its own.
CREATE TRIGGER dp_entry_delete BEFORE DELETE ON dp_entry FOR EACH ROW EXECUTE FUNCTION dp_refuse('the journal is append-only')
;;
CREATE TRIGGER dp_entry_truncate BEFORE TRUNCATE ON dp_entry FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('the journal is append-only')
;;
CREATE TRIGGER dp_posting_delete BEFORE DELETE ON dp_posting FOR EACH ROW EXECUTE FUNCTION dp_refuse('the journal is append-only')
;;
CREATE TRIGGER dp_posting_truncate BEFORE TRUNCATE ON dp_posting FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('the journal is append-only')
;;
CREATE TRIGGER dp_population_delete BEFORE DELETE ON dp_population FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_population_truncate BEFORE TRUNCATE ON dp_population FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_dataset_population_delete BEFORE DELETE ON dp_dataset_population FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_dataset_population_truncate BEFORE TRUNCATE ON dp_dataset_population FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_claim_delete BEFORE DELETE ON dp_claim FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_claim_truncate BEFORE TRUNCATE ON dp_claim FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_limit_delete BEFORE DELETE ON dp_limit FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_limit_truncate BEFORE TRUNCATE ON dp_limit FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_snapshot_delete BEFORE DELETE ON dp_snapshot FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_snapshot_truncate BEFORE TRUNCATE ON dp_snapshot FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_checkpoint_delete BEFORE DELETE ON dp_checkpoint FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_checkpoint_truncate BEFORE TRUNCATE ON dp_checkpoint FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are written once')
;;
CREATE TRIGGER dp_pool_delete BEFORE DELETE ON dp_pool FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are never removed')
;;
CREATE TRIGGER dp_pool_truncate BEFORE TRUNCATE ON dp_pool FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are never removed')
;;
CREATE TRIGGER dp_charge_delete BEFORE DELETE ON dp_charge FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are never removed')
;;
CREATE TRIGGER dp_charge_truncate BEFORE TRUNCATE ON dp_charge FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are never removed')
;;
CREATE TRIGGER dp_release_delete BEFORE DELETE ON dp_release FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are never removed')
;;
CREATE TRIGGER dp_release_truncate BEFORE TRUNCATE ON dp_release FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are never removed')
;;
CREATE TRIGGER dp_head_delete BEFORE DELETE ON dp_head FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are never removed')
;;
CREATE TRIGGER dp_head_truncate BEFORE TRUNCATE ON dp_head FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are never removed')
;;
CREATE TRIGGER dp_dataset_delete BEFORE DELETE ON dp_dataset FOR EACH ROW EXECUTE FUNCTION dp_refuse('rows are never removed')
;;
CREATE TRIGGER dp_dataset_truncate BEFORE TRUNCATE ON dp_dataset FOR EACH STATEMENT EXECUTE FUNCTION dp_refuse('rows are never removed')
;;

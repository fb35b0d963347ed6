-- What each role may do, given to those roles that exist. Statements end with a line that holds `;;` alone.
-- The column right on dp_head is what SELECT ... FOR UPDATE needs; a guard refuses any real use.
DO $$
DECLARE
  rights text[][] := ARRAY[
    ['dp_ledger_auditor', 'SELECT ON dp_population, dp_dataset, dp_dataset_population, dp_pool, dp_claim, dp_limit, dp_charge, dp_release, dp_entry, dp_posting, dp_head, dp_checkpoint'],
    ['dp_ledger_auditor', 'SELECT (snapshot_id, dataset, commitment) ON dp_snapshot'],
    ['dp_ledger_writer', 'SELECT ON dp_population, dp_dataset, dp_dataset_population, dp_snapshot, dp_pool, dp_claim, dp_limit, dp_charge, dp_release, dp_entry, dp_posting, dp_head, dp_checkpoint'],
    ['dp_ledger_writer', 'INSERT ON dp_entry, dp_charge, dp_release, dp_snapshot, dp_checkpoint'],
    ['dp_ledger_writer', 'UPDATE (state, fence, attempt, amounts, rounds_begun, rounds_closed, rounds_answered, cost_rho_pico, cost_epsilon_pure_pico, plan, plan_digest, events, transcript_digest, manifest_digest, release_id, uri, note, sealed_seq) ON dp_charge'],
    ['dp_ledger_writer', 'UPDATE (withdrawn_at, withdrawn_reason) ON dp_release'],
    ['dp_ledger_writer', 'UPDATE (seq) ON dp_head'],
    ['dp_ledger_admin', 'INSERT ON dp_population, dp_dataset, dp_dataset_population, dp_pool, dp_claim, dp_limit'],
    ['dp_ledger_admin', 'UPDATE (status, limit_pico) ON dp_pool'],
    ['dp_ledger_admin', 'UPDATE (schema_digest) ON dp_dataset']
  ];
  i int;
BEGIN
  FOR i IN 1 .. array_length(rights, 1) LOOP
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = rights[i][1]) THEN
      EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), rights[i][1]);
      EXECUTE format('GRANT %s TO %I', rights[i][2], rights[i][1]);
    END IF;
  END LOOP;
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'dp_ledger_admin')
     AND EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'dp_ledger_writer') THEN
    GRANT dp_ledger_writer TO dp_ledger_admin;
  END IF;
END $$
;;

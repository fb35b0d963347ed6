-- Group roles of the ledger. Statements end with a line that holds `;;` alone.
DO $$
DECLARE
  wanted text;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['dp_ledger_owner', 'dp_ledger_writer', 'dp_ledger_admin', 'dp_ledger_auditor'] LOOP
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
    END IF;
  END LOOP;
END $$
;;

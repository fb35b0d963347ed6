DO $$
BEGIN
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'dp_ledger_auditor') THEN
    GRANT SELECT (partition) ON dp_snapshot TO dp_ledger_auditor;
  END IF;
END $$
;;

-- Hand everything of the ledger to its owner role: whoever merely logs in as Airflow cannot disable a guard.
DO $$
DECLARE
  thing text;
BEGIN
  FOR thing IN SELECT format('TABLE %I', c.relname) FROM pg_class c
      WHERE c.relkind = 'r' AND c.relname LIKE 'dp\_%' AND c.relnamespace = quote_ident(current_schema())::regnamespace
    UNION ALL SELECT format('FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
      WHERE p.proname LIKE 'dp\_%' AND p.pronamespace = quote_ident(current_schema())::regnamespace LOOP
    EXECUTE format('ALTER %s OWNER TO dp_ledger_owner', thing);
  END LOOP;
  -- Functions that run as the owner create nothing, but must be able to see the schema.
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO dp_ledger_owner', current_schema());
END $$
;;

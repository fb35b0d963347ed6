-- Numbers, chains and writes an entry where the journal's head is, so that nobody waits for a client
-- that holds it. No guard: the writer could insert the same entry himself, and dp_entry_post checks it. It
-- finds what pg_catalog has all the same, because it runs as its caller, who may be an admin.
-- A step that rests on pools and limits names the last declaration it has seen.
-- The commit does not wait for the disk; the client waits for a later one that does.
CREATE FUNCTION dp_append(new_kind text, new_charge_id text, draft text, placeholder text, format text, declared bigint,
                          OUT seq bigint, OUT hash text) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  head @schema@.dp_head%ROWTYPE;
  told text;
BEGIN
  told := set_config('synchronous_commit', 'off', true);
  SELECT * INTO head FROM @schema@.dp_head FOR UPDATE;
  IF declared <> head.declared THEN
    RAISE EXCEPTION 'changed in between' USING ERRCODE = 'serialization_failure';
  END IF;
  seq := head.seq + 1;
  told := replace(draft, placeholder, seq::text);
  hash := encode(sha256(convert_to(concat_ws(E'\n', format, seq, head.hash, told), 'UTF8')), 'hex');
  INSERT INTO @schema@.dp_entry (seq, kind, charge_id, prev_hash, hash, body)
    VALUES (dp_append.seq, new_kind, new_charge_id, head.hash, dp_append.hash, told);
END $$
;;

-- Which partition of its dataset a snapshot holds; a charge on another one may not measure it.
ALTER TABLE dp_snapshot ADD COLUMN partition TEXT
;;
